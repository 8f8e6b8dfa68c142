//! One record as bytes: header with its own check, body, trailer over everything.
//!
//! The byte table is in `README.md`. Reading never panics, allocates only to take a mask off, and
//! never looks behind the given bytes.

use std::borrow::Cow;

use bytemuck::{Pod, Zeroable};
use twox_hash::XxHash3_64;

use super::mask;
use super::torn;

/// Bytes before the body.
pub const HEADER_BYTES: usize = 40;
/// Bytes behind the body and its padding.
pub const TRAILER_BYTES: usize = 8;
/// The size of a record with an empty body, the smallest there is.
pub const RECORD_BYTES_MIN: usize = HEADER_BYTES + TRAILER_BYTES;
/// Records begin at multiples of this.
pub const ALIGNMENT: usize = 8;
/// The longest body.
pub const BODY_BYTES_MAX: usize = 1 << 30;

/// Bytes that the header's check covers.
const CHECKED_BYTES: usize = 32;
/// Keeps the first word from being one flipped bit away from zero.
const MARKER: u8 = 0xA5;

/// What a record is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Entries: what one settlement changed.
    Entries,
    /// Nothing but its watermark.
    Mark,
    /// A part of a checkpoint.
    CheckpointPart,
    /// The end of a checkpoint, which makes its parts count.
    CheckpointEnd,
}

impl Kind {
    /// The number on the medium.
    pub fn number(self) -> u8 {
        match self {
            Self::Entries => 1,
            Self::Mark => 2,
            Self::CheckpointPart => 3,
            Self::CheckpointEnd => 4,
        }
    }

    /// The kind with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Entries, Self::Mark, Self::CheckpointPart, Self::CheckpointEnd]
            .into_iter()
            .find(|kind| kind.number() == number)
    }
}

/// What the header says besides lengths and checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// What the record is for.
    pub kind: Kind,
    /// Its number, from 1.
    pub sequence: u64,
    /// Unix nanoseconds, never less than those of the record before.
    pub time: u64,
    /// The highest sequence known to be durable when it was written.
    pub watermark: u64,
}

/// The header as it stands on the medium; little-endian, no alignment, no padding.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    length: [u8; 4],
    kind: u8,
    marker: u8,
    mask: u8,
    reserved: u8,
    sequence: [u8; 8],
    time: [u8; 8],
    watermark: [u8; 8],
    check: [u8; 8],
}

impl Header {
    /// What it says; `None` where its kind is none of this version.
    fn stamp(&self) -> Option<Stamp> {
        Some(Stamp {
            kind: Kind::from_number(self.kind)?,
            sequence: u64::from_le_bytes(self.sequence),
            time: u64::from_le_bytes(self.time),
            watermark: u64::from_le_bytes(self.watermark),
        })
    }
}

/// A record that passed both checks, borrowed from where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// What its header says.
    pub stamp: Stamp,
    mask: u8,
    identity: u64,
    stored: &'a [u8],
}

impl<'a> Record<'a> {
    /// The body as it was given to [`append`].
    pub fn body(&self) -> Cow<'a, [u8]> {
        if self.mask == 0 {
            return Cow::Borrowed(self.stored);
        }
        let mut body = self.stored.to_vec();
        mask::apply(&mut body, self.identity, self.mask);
        Cow::Owned(body)
    }

    /// Bytes from its beginning to that of the next record.
    pub fn size(&self) -> usize {
        size(self.stored.len())
    }
}

/// What stands where a record could begin.
#[derive(Debug, Clone, Copy)]
pub enum Found<'a> {
    /// A record.
    Record(Record<'a>),
    /// Zeros from here on.
    End,
    /// Something else.
    Bad(Bad),
}

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The header's own check differs.
    Header,
    /// The length leads out of the segment or is above the limit.
    Length,
    /// The trailer differs from the checksum.
    Checksum,
    /// The kind is none of this version.
    Kind,
    /// Fewer bytes are left than a record takes, and they are not zero.
    Rest,
}

impl Fault {
    /// What is wrong, in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Header => "the check of a record's header differs",
            Self::Length => "a record's length leads out of the segment",
            Self::Checksum => "the checksum of a record differs",
            Self::Kind => "a record is of a kind that this version does not know",
            Self::Rest => "the end of the segment is not zero",
        }
    }
}

/// Bytes that are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bad {
    /// What is wrong.
    pub fault: Fault,
    /// Whether its writing was provably cut short.
    pub is_torn: bool,
    /// The sequence, where the header's check holds.
    pub sequence: Option<u64>,
}

/// Bytes of a record whose body has `length` bytes.
pub fn size(length: usize) -> usize {
    HEADER_BYTES + length.next_multiple_of(ALIGNMENT) + TRAILER_BYTES
}

/// Appends a record to `out`, which must end at a multiple of eight.
///
/// # Panics
/// When the body is longer than [`BODY_BYTES_MAX`], which callers check.
pub fn append(out: &mut Vec<u8>, identity: u64, stamp: Stamp, body: &[u8]) {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= BODY_BYTES_MAX);
    let length = length.expect("callers check the length of a body");
    let mask = if mask::needs_mask(body) { mask::choose(body, identity) } else { None };
    let start = out.len();
    let mut header = Header {
        length: length.to_le_bytes(),
        kind: stamp.kind.number(),
        marker: MARKER,
        mask: mask.unwrap_or(0),
        reserved: 0,
        sequence: stamp.sequence.to_le_bytes(),
        time: stamp.time.to_le_bytes(),
        watermark: stamp.watermark.to_le_bytes(),
        check: [0; 8],
    };
    header.check = check_of(&bytemuck::bytes_of(&header)[..CHECKED_BYTES], identity).to_le_bytes();
    out.extend_from_slice(bytemuck::bytes_of(&header));
    out.extend_from_slice(body);
    if let Some(mask) = mask {
        mask::apply(&mut out[start + HEADER_BYTES..], identity, mask);
    }
    out.resize(start + size(body.len()) - TRAILER_BYTES, 0);
    let trailer = check_of(&out[start..], identity);
    out.extend_from_slice(&trailer.to_le_bytes());
}

/// What stands at `offset` of a segment's bytes.
pub fn read(segment: &[u8], offset: usize, identity: u64) -> Found<'_> {
    let bytes = segment.get(offset..).unwrap_or_default();
    let Some(head) =
        bytes.first_chunk::<HEADER_BYTES>().filter(|_| bytes.len() >= RECORD_BYTES_MIN)
    else {
        let is_end = bytes.iter().all(|&byte| byte == 0);
        return if is_end { Found::End } else { bad(Fault::Rest, false, None) };
    };
    let header: &Header = bytemuck::from_bytes(head);
    if u64::from_le_bytes(header.check) != check_of(&head[..CHECKED_BYTES], identity) {
        if bytes.iter().all(|&byte| byte == 0) {
            return Found::End;
        }
        return bad(Fault::Header, torn::is_header_torn(head, offset), None);
    }
    let sequence = u64::from_le_bytes(header.sequence);
    let length = u32::from_le_bytes(header.length) as usize;
    if length > BODY_BYTES_MAX || size(length) > bytes.len() {
        return bad(Fault::Length, false, Some(sequence));
    }
    let record = &bytes[..size(length)];
    let (checked, trailer) = record.split_at(record.len() - TRAILER_BYTES);
    if trailer != check_of(checked, identity).to_le_bytes() {
        return bad(Fault::Checksum, torn::is_torn(record, offset), Some(sequence));
    }
    let Some(stamp) = header.stamp() else {
        return bad(Fault::Kind, false, Some(sequence));
    };
    let stored = &record[HEADER_BYTES..HEADER_BYTES + length];
    Found::Record(Record { stamp, mask: header.mask, identity, stored })
}

/// What the header of a record says, where its own check holds: the stamp, and the size of the
/// whole. The rest of the record may be anything.
pub(super) fn head(head: &[u8; HEADER_BYTES], identity: u64) -> Option<(Stamp, usize)> {
    let header: &Header = bytemuck::from_bytes(head);
    if u64::from_le_bytes(header.check) != check_of(&head[..CHECKED_BYTES], identity) {
        return None;
    }
    let length = u32::from_le_bytes(header.length) as usize;
    let stamp = header.stamp()?;
    (length <= BODY_BYTES_MAX).then(|| (stamp, size(length)))
}

/// A record once more that [`read`] has found there before: nothing is checked.
pub(super) fn again(record: &[u8], identity: u64) -> Option<Record<'_>> {
    let head = record.first_chunk::<HEADER_BYTES>()?;
    let header: &Header = bytemuck::from_bytes(head);
    let length = u32::from_le_bytes(header.length) as usize;
    let stored = record.get(HEADER_BYTES..)?.get(..length)?;
    Some(Record { stamp: header.stamp()?, mask: header.mask, identity, stored })
}

/// The first record at or behind `offset`, whatever stands before it.
pub fn find(segment: &[u8], offset: usize, identity: u64) -> Option<(usize, Record<'_>)> {
    (offset..segment.len()).step_by(ALIGNMENT).find_map(|place| {
        // Most places are dismissed by their marker, without a hash.
        if segment.get(place + 5) != Some(&MARKER) {
            return None;
        }
        match read(segment, place, identity) {
            Found::Record(record) => Some((place, record)),
            Found::End | Found::Bad(_) => None,
        }
    })
}

/// XXH3-64 with the identity of the segment, never less than two bits from zero.
pub(super) fn check_of(bytes: &[u8], identity: u64) -> u64 {
    let sum = XxHash3_64::oneshot(bytes).wrapping_add(identity);
    if sum.count_ones() < 2 { u64::MAX } else { sum }
}

fn bad(fault: Fault, is_torn: bool, sequence: Option<u64>) -> Found<'static> {
    Found::Bad(Bad { fault, is_torn, sequence })
}
