//! Whether the writing of a record was cut short, as opposed to its bytes being damaged.
//!
//! A sector of 512 bytes is written wholly or not at all, and held zeros before. A valid record has
//! no piece of zeros and none that ends in 64 bytes of zeros, not even with one bit flipped
//! (`mask.rs`), so zeros there mean that a sector never arrived.

use super::frame::{ALIGNMENT, HEADER_BYTES};

/// What a medium writes wholly or not at all.
pub const SECTOR_BYTES: usize = 512;
/// As many zeros at the end of a piece prove that it was cut short.
const ZEROS: usize = 64;

/// Whether a record whose header's check holds was cut short.
pub fn is_torn(record: &[u8], offset: usize) -> bool {
    pieces(record, offset).any(|piece| is_zero(piece) || ends_in_zeros(piece))
}

/// Whether a header whose check does not hold was cut short: its first word, its check, or a whole
/// piece is zero. Its length is not believed, so nothing behind it counts.
pub fn is_header_torn(header: &[u8; HEADER_BYTES], offset: usize) -> bool {
    let (first, check) = (&header[..ALIGNMENT], &header[HEADER_BYTES - ALIGNMENT..]);
    is_zero(first) || is_zero(check) || pieces(header, offset).any(is_zero)
}

/// Cuts what stands at `offset` of its file at the sectors' lines.
fn pieces(bytes: &[u8], offset: usize) -> impl Iterator<Item = &[u8]> {
    let first = (SECTOR_BYTES - offset % SECTOR_BYTES).min(bytes.len());
    let (head, rest) = bytes.split_at(first);
    std::iter::once(head).chain(rest.chunks(SECTOR_BYTES))
}

fn ends_in_zeros(piece: &[u8]) -> bool {
    piece.len() > ZEROS && is_zero(&piece[piece.len() - ZEROS..])
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}
