//! Envelope ids: 128 bits in the layouts of RFC 9562, and the generator that makes them.
//!
//! | bits    | from a generator (UUIDv7)              | from a key (v8) | derived (v8)        |
//! |---------|----------------------------------------|-----------------|---------------------|
//! | 127..80 | unix time in ms, never stepping back   | hash            | parent's bits       |
//! | 79..76  | version, 7                             | version, 8      | version, 8          |
//! | 75..64  | counter, upper 12 bits                 | hash            | hash                |
//! | 63..62  | variant, `0b10`                        | variant, `0b10` | variant, `0b10`     |
//! | 61..50  | counter, lower 12 bits                 | hash            | hash                |
//! | 49..0   | random, fixed for the generator's life | hash            | hash                |
//!
//! Invariants: ids of one generator rise strictly, whatever the clock does; equal inputs of
//! [`EnvelopeId::from_key`] and [`EnvelopeId::derived`] give equal ids in every version of this
//! crate (golden tests pin both). Time and seed are passed in: nothing here reads a clock.

use std::fmt;
use std::str::FromStr;

use twox_hash::XxHash3_128;

/// The version field within the high word.
const VERSION_MASK: u64 = 0xF000;
const VERSION_7: u64 = 0x7000;
const VERSION_8: u64 = 0x8000;
/// The variant field within the low word.
const VARIANT_MASK: u64 = 0b11 << 62;
const VARIANT: u64 = 0b10 << 62;
/// Where the time starts within the high word.
const TIME_SHIFT: u32 = 16;
/// The bits of the high word below the time and the version: the counter's upper part.
const COUNTER_UPPER_MASK: u64 = 0xFFF;
/// Random bits of a generator, at the bottom of the low word.
const RANDOM_BITS: u32 = 50;
const RANDOM_MASK: u64 = (1 << RANDOM_BITS) - 1;
/// One step of the counter.
const STEP: u64 = 1 << RANDOM_BITS;
/// Set in the low word when the counter's lower part ran over into the variant.
const OVERFLOW: u64 = 1 << 62;
/// Later readings of the wall clock (past the year 10,854) count as this one. The 2^40 ms above it
/// are room for 2^64 ids made without time, so that the time field never wraps.
const WALL_MS_MAX: u64 = (1 << 48) - (1 << 40) - 1;
/// Length of the text form.
const TEXT_BYTES: usize = 36;

/// The identity of an envelope: 128 bits, ordered by value.
///
/// ```
/// use waystage::envelope::EnvelopeId;
/// let id = EnvelopeId::from_key(b"order-17");
/// assert_eq!(id, EnvelopeId::from_key(b"order-17"));
/// assert_eq!(id.to_string().parse::<EnvelopeId>()?, id);
/// assert_ne!(EnvelopeId::derived(id, 1, 0), EnvelopeId::derived(id, 1, 1));
/// # Ok::<(), waystage::envelope::EnvelopeIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnvelopeId {
    // Two words rather than one u128: an alignment of 8 keeps the envelope free of padding. The
    // order of the fields makes the derived order the order by value.
    high: u64,
    low: u64,
}

impl EnvelopeId {
    /// All bits zero: no envelope has it.
    pub const NIL: Self = Self { high: 0, low: 0 };

    /// A number that is evenly spread over all ids, those of one generator included: twelve bits,
    /// for choosing one envelope in N.
    #[inline]
    pub(crate) fn lot(self) -> u64 {
        // Counter and time in their own bits, then Fibonacci hashing (Knuth, TAOCP 3, 6.4): the
        // counter alone starts at zero in each new millisecond.
        let mixed = self.high ^ self.low.rotate_left(64 - RANDOM_BITS);
        mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52
    }

    /// The id of a producer's own key: the XXH3-128 of its bytes as a UUIDv8.
    ///
    /// The hash is made for speed, not against an adversary: who chooses keys freely can make two
    /// that collide.
    #[must_use]
    pub fn from_key(key: &[u8]) -> Self {
        Self::from_u128(XxHash3_128::oneshot(key)).as_version_8()
    }

    /// The id of what the handling of `parent` emits: hop number `hop`, emit number `ordinal`.
    ///
    /// A handler that runs again gives its emits the same ids. The upper 48 bits are the parent's,
    /// so that families stay together in time order; the other 74 are the XXH3-128 of parent, hop
    /// and ordinal.
    #[must_use]
    pub fn derived(parent: Self, hop: u32, ordinal: u32) -> Self {
        let mut input = [0; 24];
        input[..16].copy_from_slice(&parent.to_bytes());
        input[16..20].copy_from_slice(&hop.to_le_bytes());
        input[20..].copy_from_slice(&ordinal.to_le_bytes());
        let hash = Self::from_u128(XxHash3_128::oneshot(&input));
        let time = u64::MAX << TIME_SHIFT;
        Self { high: parent.high & time | hash.high & !time, low: hash.low }.as_version_8()
    }

    /// The id with this value.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "splits the value into its two halves")]
    pub const fn from_u128(value: u128) -> Self {
        Self { high: (value >> 64) as u64, low: value as u64 }
    }

    /// The value.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }

    /// The id with these bytes, least significant first.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self::from_u128(u128::from_le_bytes(bytes))
    }

    /// The bytes of the value, least significant first, as on the wire; text runs the other way.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.as_u128().to_le_bytes()
    }

    /// Whether this is [`NIL`](Self::NIL).
    #[must_use]
    pub const fn is_nil(self) -> bool {
        self.high == 0 && self.low == 0
    }

    const fn as_version_8(self) -> Self {
        Self {
            high: self.high & !VERSION_MASK | VERSION_8,
            low: self.low & !VARIANT_MASK | VARIANT,
        }
    }
}

impl fmt::Display for EnvelopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            self.high >> 32,
            self.high >> 16 & 0xFFFF,
            self.high & 0xFFFF,
            self.low >> 48,
            self.low & 0xFFFF_FFFF_FFFF
        )
    }
}

impl fmt::Debug for EnvelopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not an envelope id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeIdError {
    /// The text is not 36 bytes long.
    #[error(
        "an envelope id has 36 characters (8-4-4-4-12 hex digits), this text has {found} bytes"
    )]
    Length {
        /// Bytes of the text.
        found: usize,
    },
    /// A hyphen is missing.
    #[error("expected a hyphen at byte {offset} of the envelope id")]
    Hyphen {
        /// Where it belongs.
        offset: usize,
    },
    /// A character is no hex digit.
    #[error("expected a hex digit at byte {offset} of the envelope id")]
    Digit {
        /// Where the other character stands.
        offset: usize,
    },
}

impl FromStr for EnvelopeId {
    type Err = EnvelopeIdError;

    /// Reads the hyphenated form; upper-case digits are taken too.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != TEXT_BYTES {
            return Err(EnvelopeIdError::Length { found: text.len() });
        }
        let mut value = 0;
        for (offset, byte) in text.bytes().enumerate() {
            if matches!(offset, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return Err(EnvelopeIdError::Hyphen { offset });
                }
                continue;
            }
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(EnvelopeIdError::Digit { offset });
            };
            value = value << 4 | u128::from(digit);
        }
        Ok(Self::from_u128(value))
    }
}

/// Makes ids that rise strictly: one per publisher, not shared.
///
/// The 50 random bits are drawn from the seed once and stay. Two generators can then only collide
/// when these bits are equal: a chance of 2^-50 per pair, however long both run. Drawing anew each
/// millisecond would take that chance again in every millisecond they share. Give each generator
/// and each start of the program another seed, except where runs are to repeat.
///
/// A clock that stands still or steps back leaves the time field where it is while the 24 bits of
/// the counter go on; after 16,777,216 ids the time field moves ahead by one.
///
/// ```
/// use waystage::envelope::IdGenerator;
/// let mut ids = IdGenerator::new(7, 1_704_067_200_000);
/// let first = ids.next(1_704_067_200_000);
/// let second = ids.next_without_time();
/// let third = ids.next(1_704_067_100_000); // the clock stepped back
/// assert!(first < second && second < third);
/// ```
#[derive(Debug, Clone)]
pub struct IdGenerator {
    /// The next id's words.
    high: u64,
    low: u64,
}

impl IdGenerator {
    /// A generator with its own random bits, whose first id is of `wall_ms` (unix milliseconds).
    #[must_use]
    pub fn new(seed: u64, wall_ms: u64) -> Self {
        Self {
            high: high_at(wall_ms.min(WALL_MS_MAX)),
            low: VARIANT | splitmix64(seed) >> (64 - RANDOM_BITS),
        }
    }

    /// The next id, at `wall_ms` (unix milliseconds) or the latest time seen, whichever is later.
    #[inline]
    pub fn next(&mut self, wall_ms: u64) -> EnvelopeId {
        let wall_ms = wall_ms.min(WALL_MS_MAX);
        if wall_ms > self.high >> TIME_SHIFT {
            self.high = high_at(wall_ms);
            self.low = VARIANT | self.low & RANDOM_MASK;
        }
        self.next_without_time()
    }

    /// The next id, at the latest time seen: what a publisher calls between readings of the clock.
    #[inline]
    pub fn next_without_time(&mut self) -> EnvelopeId {
        let id = EnvelopeId { high: self.high, low: self.low };
        self.low += STEP;
        if self.low & OVERFLOW != 0 {
            self.carry();
        }
        id
    }

    /// Carries the counter's lower part into its upper part, and that into the time.
    #[cold]
    fn carry(&mut self) {
        self.low = VARIANT | self.low & RANDOM_MASK;
        self.high += 1;
        if self.high & COUNTER_UPPER_MASK == 0 {
            // The version field took the carry: it goes on into the time.
            let wall_ms = (self.high >> TIME_SHIFT) + 1;
            self.high = high_at(wall_ms);
        }
    }
}

/// The high word at the start of a millisecond.
#[inline]
fn high_at(wall_ms: u64) -> u64 {
    wall_ms << TIME_SHIFT | VERSION_7
}

/// Spreads a seed over all bits (Steele, Lea and Flood, 2014): neighbouring seeds, unlike bits.
fn splitmix64(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests;
