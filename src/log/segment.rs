//! A segment: its file's name, and the 64 bytes it begins with.

use bytemuck::{Pod, Zeroable};

use super::frame::{RECORD_BYTES_MIN, check_of};

/// Bytes before the first record.
pub const HEADER_BYTES: usize = 64;
/// The smallest segment.
pub const SEGMENT_BYTES_MIN: u64 = 4096;
/// The largest segment.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 31;
/// The ending of files in the making.
pub const UNFINISHED: &str = ".tmp";

const MAGIC: [u8; 8] = *b"WAYSTLOG";
const VERSION: u32 = 1;
const ENDING: &str = ".segment";
const DIGITS: usize = 20;
const CHECKED_BYTES: usize = HEADER_BYTES - 8;
/// Flag: records are acknowledged as written, by `Os`.
const FLAG_OS: u32 = 1;

/// What the header of a segment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The size of the file in bytes.
    pub size: u64,
    /// The log's id, the same in all its segments.
    pub log: [u8; 16],
    /// Its number, from 1.
    pub number: u64,
    /// Part of every checksum inside.
    pub identity: u64,
    /// Whether its records are acknowledged as soon as they are written, without a flush.
    pub is_os: bool,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Location {
    /// The number of its segment.
    pub segment: u64,
    /// Bytes from the beginning of the file.
    pub offset: u64,
}

/// Why 64 bytes are no header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// They begin with something else.
    Foreign,
    /// A version that this crate does not read.
    Version(u32),
    /// The checksum differs, or what is written is out of its range.
    Damaged,
}

/// The header as it stands on the medium; little-endian, no alignment, no padding.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Raw {
    magic: [u8; 8],
    version: [u8; 4],
    flags: [u8; 4],
    size: [u8; 8],
    log: [u8; 16],
    number: [u8; 8],
    identity: [u8; 8],
    check: [u8; 8],
}

impl SegmentHeader {
    /// The bytes on the medium.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut raw = Raw {
            magic: MAGIC,
            version: VERSION.to_le_bytes(),
            flags: (if self.is_os { FLAG_OS } else { 0 }).to_le_bytes(),
            size: self.size.to_le_bytes(),
            log: self.log,
            number: self.number.to_le_bytes(),
            identity: self.identity.to_le_bytes(),
            check: [0; 8],
        };
        raw.check = check_of(&bytemuck::bytes_of(&raw)[..CHECKED_BYTES], 0).to_le_bytes();
        bytemuck::cast(raw)
    }

    /// Reads the bytes back.
    ///
    /// # Errors
    /// When they are no header, or one of another version.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderFault> {
        let raw: &Raw = bytemuck::from_bytes(bytes);
        if raw.magic != MAGIC {
            return Err(HeaderFault::Foreign);
        }
        let holds = raw.check == check_of(&bytes[..CHECKED_BYTES], 0).to_le_bytes();
        let version = u32::from_le_bytes(raw.version);
        if version != VERSION {
            // Every version keeps the check, so that a flipped bit never passes for a version.
            return Err(if holds { HeaderFault::Version(version) } else { HeaderFault::Damaged });
        }
        let flags = u32::from_le_bytes(raw.flags);
        let header = Self {
            size: u64::from_le_bytes(raw.size),
            log: raw.log,
            number: u64::from_le_bytes(raw.number),
            identity: u64::from_le_bytes(raw.identity),
            is_os: flags & FLAG_OS != 0,
        };
        let in_range = (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&header.size)
            && header.size.is_multiple_of(8)
            && header.number > 0
            && header.identity != 0
            && flags & !FLAG_OS == 0;
        if holds && in_range { Ok(header) } else { Err(HeaderFault::Damaged) }
    }
}

/// The name of the segment with this number.
pub fn name(number: u64) -> String {
    format!("{number:0DIGITS$}{ENDING}")
}

/// Whether this is the name of a segment in the making.
pub fn is_unfinished(name: &str) -> bool {
    name.strip_suffix(UNFINISHED).is_some_and(|name| number(name).is_some())
}

/// The number in a segment's name; `None` for other files, and for a number that no other follows.
pub fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(ENDING)?;
    let is_number = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && (1..u64::MAX).contains(number))
}

/// The longest record that fits into a segment of this size.
pub fn record_bytes_max(size: u64) -> u64 {
    size - HEADER_BYTES as u64
}

/// The longest body that fits into a segment of this size.
pub fn body_bytes_max(size: u64) -> usize {
    usize::try_from(record_bytes_max(size)).map_or(usize::MAX, |room| room - RECORD_BYTES_MIN)
        & !(super::frame::ALIGNMENT - 1)
}
