//! Any bytes as a segment: reading, verifying and salvaging never panic; a reader shows nothing
//! but records that were written, one after the other; what is salvaged is whole.

#![no_main]

use std::path::Path;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use waystage::log::frame::{self, Kind, Stamp};
use waystage::log::salvage::salvage;
use waystage::log::segment::{self, SegmentHeader};
use waystage::log::verify::{Depth, verify};
use waystage::log::{LogError, Reader, Start, outline};

/// A record whose checks hold, and which may be told at the wrong time.
#[derive(Arbitrary, Debug)]
struct Record<'a> {
    kind: u8,
    skips: u8,
    time: u8,
    behind: u8,
    body: &'a [u8],
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    records: Vec<Record<'a>>,
    /// Bytes that are changed after that.
    damage: Vec<(u16, u8)>,
    /// Bytes that are missing, or too many.
    length: i8,
    /// Whether nobody flushes it.
    is_os: bool,
}

const IDENTITY: u64 = 0x0123_4567_89AB_CDEF;
const SIZE: usize = 8_192;

fn stamp(record: &Record<'_>, sequence: &mut u64, time: &mut u64) -> Stamp {
    let kinds =
        [Kind::Entries, Kind::Entries, Kind::Mark, Kind::CheckpointPart, Kind::CheckpointEnd];
    *sequence += 1 + u64::from(record.skips / 240);
    *time += u64::from(record.time);
    let watermark = sequence.saturating_sub(1 + u64::from(record.behind % 4));
    let kind = kinds[usize::from(record.kind) % kinds.len()];
    Stamp { kind, sequence: *sequence, time: *time, watermark }
}

fuzz_target!(|input: Input<'_>| {
    let header = SegmentHeader {
        size: SIZE as u64,
        log: [7; 16],
        number: 1,
        identity: IDENTITY,
        is_os: input.is_os,
    };
    let mut bytes = header.to_bytes().to_vec();
    let (mut sequence, mut time) = (0, 0);
    let mut written = Vec::new();
    for record in &input.records {
        let before = bytes.len();
        let stamp = stamp(record, &mut sequence, &mut time);
        frame::append(&mut bytes, IDENTITY, stamp, record.body);
        if bytes.len() > SIZE {
            bytes.truncate(before);
            break;
        }
        written.push((stamp, record.body));
    }
    bytes.resize(SIZE, 0);
    for &(place, change) in &input.damage {
        bytes[usize::from(place) % SIZE] ^= change;
    }
    let length = SIZE.saturating_add_signed(isize::from(input.length));
    bytes.resize(length, 0);

    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory } else { Path::new("/tmp") };
    let directory = tempfile::tempdir_in(place).expect("there is room for a directory");
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    std::fs::create_dir(&from).expect("it is new");
    std::fs::write(from.join(segment::name(1)), &bytes).expect("there is room for a segment");

    for start in [Start::Oldest, Start::Sequence(3), Start::Time(100)] {
        let mut reader = Reader::open(&from, start).expect("the directory is there");
        let mut before = 0;
        while let Ok(Some(shown)) = reader.next() {
            let stamp = shown.record.stamp;
            let body = shown.record.body();
            assert!(written.iter().any(|known| *known == (stamp, &*body)), "{stamp:?}");
            assert!(before == 0 || stamp.sequence == before + 1);
            before = stamp.sequence;
        }
    }
    drop(outline(&from).expect("the files can be read"));
    for depth in [Depth::Records, Depth::Entries, Depth::All] {
        drop(verify(&from, depth).expect("the files can be read"));
    }
    match salvage(&from, &to) {
        Ok(salvaged) => {
            let depth = if salvaged.is_raw { Depth::Records } else { Depth::All };
            let verified = verify(&to, depth).expect("the files can be read");
            assert!(!verified.is_damaged(), "{:?}", verified.findings);
        }
        Err(LogError::NothingLeft(_) | LogError::Version { .. }) => {}
        Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
    }
});
