//! Bodies without runs of zeros: what makes a record that was cut short show.
//!
//! A word is *light* when at most one of its bits is set. A stored body has no eight light words in
//! a row, so that neither it nor it with one bit flipped has 64 bytes of zeros (`torn.rs`).

/// As many light words in a row are masked.
const RUN: usize = 8;
/// Bytes of a word.
const WORD: usize = 8;

/// Whether the body has to be stored masked.
pub fn needs_mask(body: &[u8]) -> bool {
    has_run(body, |word, _| word)
}

/// The first mask that leaves no run, with the identity of the segment as its seed.
///
/// `None` when all 255 leave one, which a body could only bring about by knowing the identity.
pub fn choose(body: &[u8], identity: u64) -> Option<u8> {
    (1..=u8::MAX).find(|&mask| {
        let stream = Stream::new(identity, mask);
        !has_run(body, |word, place| word ^ stream.word(place))
    })
}

/// Applies `mask` to `body`, or takes it off: the same operation.
pub fn apply(body: &mut [u8], identity: u64, mask: u8) {
    let stream = Stream::new(identity, mask);
    for (place, word) in body.chunks_mut(WORD).enumerate() {
        let pattern = stream.word(place as u64).to_le_bytes();
        for (byte, pattern) in word.iter_mut().zip(pattern) {
            *byte ^= pattern;
        }
    }
}

fn has_run(body: &[u8], change: impl Fn(u64, u64) -> u64) -> bool {
    let mut run = 0;
    for (place, part) in body.chunks(WORD).enumerate() {
        // The last word may be short; the padding behind it is zero, masked or not.
        let mut word = [0; WORD];
        word[..part.len()].copy_from_slice(part);
        let kept = u64::MAX >> (8 * (WORD - part.len()));
        let is_light = (change(u64::from_le_bytes(word), place as u64) & kept).count_ones() <= 1;
        run = if is_light { run + 1 } else { 0 };
        if run == RUN {
            return true;
        }
    }
    false
}

/// Pseudo-random words by place: splitmix64 (Steele, Lea, Flood, *Fast Splittable Pseudorandom
/// Number Generators*, OOPSLA 2014), which can start anywhere.
struct Stream(u64);

impl Stream {
    fn new(identity: u64, mask: u8) -> Self {
        Self(identity ^ u64::from(mask).wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    fn word(&self, place: u64) -> u64 {
        let step = place.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0.wrapping_add(step);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
