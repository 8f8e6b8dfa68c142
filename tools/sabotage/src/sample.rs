//! Draws a sample that a seed fixes.

/// `count` of `items` (all, if there are fewer), in their order.
pub(crate) fn draw<T>(items: Vec<T>, count: usize, seed: u64) -> Vec<T> {
    let (mut state, mut needed, mut left) = (seed, count as u64, items.len() as u64);
    let mut keep = |_: &T| {
        // Selection sampling: each item is taken with the chance needed / left.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let taken = mix(state) % left < needed;
        left -= 1;
        needed -= u64::from(taken);
        taken
    };
    items.into_iter().filter(|item| keep(item)).collect()
}

/// The output function of SplitMix64.
fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn samples_have_their_size_and_depend_on_the_seed() {
        let all = || (0..50).collect::<Vec<u32>>();
        for seed in 0..100 {
            let drawn = draw(all(), 7, seed);
            assert_eq!(drawn.len(), 7);
            assert!(drawn.is_sorted());
            assert_eq!(drawn, draw(all(), 7, seed));
        }
        assert_ne!(draw(all(), 7, 1), draw(all(), 7, 2));
        assert_eq!(draw(all(), 80, 1), all());
        assert!(draw(all(), 0, 1).is_empty());
    }
}
