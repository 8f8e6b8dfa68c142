//! Layout, order and goldens of envelope ids.

use super::*;
use proptest::prelude::*;

const START_MS: u64 = 1_704_067_200_000;

fn time_ms(id: EnvelopeId) -> u64 {
    id.high >> TIME_SHIFT
}

fn assert_layout(id: EnvelopeId, version: char) {
    let text = id.to_string();
    assert_eq!(text.as_bytes()[14], version as u8, "version of {text}");
    assert!(matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "variant of {text}");
}

#[test]
fn generated_ids_are_laid_out_as_the_table_says() {
    let mut ids = IdGenerator::new(42, START_MS);
    let random = ids.low & RANDOM_MASK;
    for count in 0..10_000_u128 {
        let id = ids.next(START_MS);
        assert_layout(id, '7');
        let value = id.as_u128();
        assert_eq!(value >> 80, u128::from(START_MS));
        assert_eq!(value >> 64 & 0xFFF, count >> 12);
        assert_eq!(value >> 50 & 0xFFF, count & 0xFFF);
        assert_eq!(id.low & RANDOM_MASK, random);
    }
}

#[test]
fn a_seed_gives_the_same_ids_for_ever() {
    let mut ids = IdGenerator::new(42, START_MS);
    assert_eq!(ids.next(START_MS).to_string(), "018cc251-f400-7000-8002-f75cc898bfad");
    assert_eq!(ids.next_without_time().to_string(), "018cc251-f400-7000-8006-f75cc898bfad");
    assert_eq!(ids.next(START_MS + 1).to_string(), "018cc251-f401-7000-8002-f75cc898bfad");
}

#[test]
fn neighbouring_seeds_have_unlike_random_bits() {
    let random = |seed| IdGenerator::new(seed, 0).low & RANDOM_MASK;
    let mut all: Vec<u64> = (0..100_000).map(random).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 100_000);
    assert!((random(1) ^ random(2)).count_ones() > 10);
}

#[test]
fn a_clock_that_stands_still_for_millions_of_ids() {
    let mut ids = IdGenerator::new(1, START_MS);
    let mut last = ids.next(START_MS);
    for _ in 0..(1 << 24) + 10_000 {
        let id = ids.next(START_MS);
        assert!(id > last);
        last = id;
    }
    assert_layout(last, '7');
    assert_eq!(time_ms(last), START_MS + 1, "the time moved ahead when the counter was used up");
    let later = ids.next(START_MS + 1);
    assert!(later > last, "and the clock that catches up does not reset the counter");
    assert_eq!(time_ms(ids.next(START_MS + 2)), START_MS + 2);
}

#[test]
fn a_broken_clock_cannot_make_the_time_wrap() {
    let mut ids = IdGenerator::new(1, u64::MAX);
    let first = ids.next(u64::MAX);
    assert_eq!(time_ms(first), WALL_MS_MAX);
    ids.high = high_at((1 << 48) - 2) | COUNTER_UPPER_MASK;
    ids.low |= 0xFFF << RANDOM_BITS;
    let second = ids.next(u64::MAX);
    let third = ids.next(0);
    assert!(first < second && second < third);
    assert_layout(third, '7');
}

proptest! {
    #[test]
    fn ids_rise_whatever_the_clock_does(
        seed: u64,
        times in proptest::collection::vec(proptest::option::of(any::<u64>()), 1..200),
    ) {
        let mut ids = IdGenerator::new(seed, START_MS);
        let mut last = EnvelopeId::NIL;
        for time in times {
            let id = match time {
                Some(time) => ids.next(time >> 12),
                None => ids.next_without_time(),
            };
            prop_assert!(id > last);
            assert_layout(id, '7');
            last = id;
        }
    }

    #[test]
    fn order_text_and_bytes_follow_the_value(one: u128, other: u128) {
        let (a, b) = (EnvelopeId::from_u128(one), EnvelopeId::from_u128(other));
        prop_assert_eq!(a.cmp(&b), one.cmp(&other));
        prop_assert_eq!(a.to_string().cmp(&b.to_string()), one.cmp(&other));
        prop_assert_eq!(a.as_u128(), one);
        prop_assert_eq!(EnvelopeId::from_bytes(a.to_bytes()), a);
        prop_assert_eq!(a.to_string().parse::<EnvelopeId>(), Ok(a));
        prop_assert_eq!(a.to_string().to_uppercase().parse::<EnvelopeId>(), Ok(a));
    }

    #[test]
    fn reading_any_text_gives_an_id_or_an_error(text in ".{0,40}") {
        if let Ok(id) = text.parse::<EnvelopeId>() {
            prop_assert_eq!(id.to_string(), text.to_lowercase());
        }
    }
}

#[test]
fn texts_that_are_no_ids() {
    let check = |text: &str, want| assert_eq!(text.parse::<EnvelopeId>(), Err(want), "{text}");
    check("", EnvelopeIdError::Length { found: 0 });
    check("018cc251f40070008002f75cc898bfad", EnvelopeIdError::Length { found: 32 });
    check("018cc251-f400-7000-8002-f75cc898bfad ", EnvelopeIdError::Length { found: 37 });
    check("018cc251-f400-7000-8002+f75cc898bfad", EnvelopeIdError::Hyphen { offset: 23 });
    check("018cc251-f400-7000-8002-f75cc898bfg8", EnvelopeIdError::Digit { offset: 34 });
    check("+18cc251-f400-7000-8002-f75cc898bfad", EnvelopeIdError::Digit { offset: 0 });
    check("018cc251-f400-7000-8002-f75cc898b\u{20ac}", EnvelopeIdError::Digit { offset: 33 });
}

#[test]
fn nil() {
    assert!(EnvelopeId::NIL.is_nil());
    assert!(!EnvelopeId::from_u128(1).is_nil());
    assert!(!EnvelopeId::from_u128(1 << 127).is_nil());
    assert_eq!(format!("{:?}", EnvelopeId::NIL), "00000000-0000-0000-0000-000000000000");
    assert_eq!((size_of::<EnvelopeId>(), align_of::<EnvelopeId>()), (16, 8));
}

#[test]
fn keys_give_the_published_hashes() {
    // XXH3-128 with seed zero, as `xxhsum -H2` prints it; six bits are version and variant.
    let check = |key: &str, hash: u128, want: &str| {
        let id = EnvelopeId::from_key(key.as_bytes());
        assert_eq!(id.to_string(), want);
        let fixed = (0xF << 76) | (0b11 << 62);
        assert_eq!(id.as_u128() & !fixed, hash & !fixed);
    };
    check("", 0x99aa_06d3_0147_98d8_6001_c324_468d_497f, "99aa06d3-0147-88d8-a001-c324468d497f");
    check("a", 0xa96f_af70_5af1_6834_e6c6_32b6_1e96_4e1f, "a96faf70-5af1-8834-a6c6-32b61e964e1f");
    check("abc", 0x06b0_5ab6_733a_6185_78af_5f94_892f_3950, "06b05ab6-733a-8185-b8af-5f94892f3950");
}

#[test]
fn derived_ids_are_pinned() {
    let parent: EnvelopeId = "018cc251-f400-7000-8002-f75cc898bfad".parse().unwrap();
    let check = |hop, ordinal, want: &str| {
        let id = EnvelopeId::derived(parent, hop, ordinal);
        assert_eq!(id.to_string(), want);
        assert_layout(id, '8');
        assert_eq!(time_ms(id), time_ms(parent));
    };
    check(0, 0, "018cc251-f400-810b-8afa-b04f1cb1946c");
    check(1, 0, "018cc251-f400-84df-b48d-9198518089aa");
    check(0, 1, "018cc251-f400-8064-986c-aaebf288d229");
    check(u32::MAX, u32::MAX, "018cc251-f400-8a89-bf7f-1b4936b70383");
    // What is hashed, spelled out.
    let mut input = parent.as_u128().to_le_bytes().to_vec();
    input.extend([2, 1, 0, 0, 4, 3, 0, 0]);
    let hash = XxHash3_128::oneshot(&input);
    let id = EnvelopeId::derived(parent, 0x0102, 0x0304);
    let from_hash = (0xFFF << 64) | ((1 << 62) - 1);
    assert_eq!(id.as_u128() & from_hash, hash & from_hash);
}

#[test]
fn derived_ids_differ() {
    let mut all = Vec::new();
    for parent in [EnvelopeId::NIL, EnvelopeId::from_key(b"a"), EnvelopeId::from_key(b"b")] {
        for hop in 0..100 {
            all.extend((0..100).map(|ordinal| EnvelopeId::derived(parent, hop, ordinal)));
        }
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 30_000);
}

/// One in `every` of the ids of a generator is drawn, however they lie in time.
fn check_lots(per_reading: u64, ms_between: u64, every: u64) {
    let mut ids = IdGenerator::new(42, START_MS);
    let count = 400 * every.max(64);
    let mut drawn = 0;
    for number in 0..count {
        let id = ids.next(START_MS + number / per_reading * ms_between);
        drawn += u64::from(id.lot() & (every - 1) == 0);
    }
    let want = count / every;
    let words = format!("{drawn} of {count}, {per_reading} per {ms_between} ms, 1 in {every}");
    assert!(drawn.abs_diff(want) <= want / 4, "{words}");
}

#[test]
fn lots_are_drawn_evenly_at_any_pace() {
    for every in [1, 2, 16, 64, 1_024, 4_096] {
        for (per_reading, ms_between) in
            [(1, 1), (1, 2), (1, 10), (1, 1_000), (2, 1), (7, 1), (65, 1), (1_000, 1), (1 << 40, 1)]
        {
            check_lots(per_reading, ms_between, every);
        }
    }
}
