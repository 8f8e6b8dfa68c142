//! Logs for the tests of `waystage log`: made with the library, damaged by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use waystage::EnvelopeId;
use waystage::envelope::codec::Parts;
use waystage::log::entry::{CauseCode, DurableLevel, Entry};
use waystage::log::segment;
use waystage::log::{Log, LogSettings, Sync};

use crate::support::Scratch;

pub(crate) fn id(number: u64) -> EnvelopeId {
    EnvelopeId::from_key(&number.to_le_bytes())
}

fn parts(number: u64, stage: &'static str, payload: &'static [u8]) -> Parts<'static> {
    Parts { current: Some(stage), payload: Some(payload), ..Parts::new(id(number)) }
}

pub(crate) fn body(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        entry.encode(&mut body).unwrap();
    }
    body
}

pub(crate) fn accept(number: u64) -> Vec<u8> {
    let envelope = parts(number, "parse", b"{\"mag\":4.5}");
    body(&[Entry::Accept { level: DurableLevel::ExactlyOnce, envelope }])
}

pub(crate) fn settings() -> LogSettings {
    LogSettings { segment_bytes: 4_096, ..LogSettings::default() }
}

/// A log of a flow: each envelope came in, hopped, and ended, but for every tenth, which is open,
/// and every seventh, which is dead.
pub(crate) fn flow_log(path: &Path, envelopes: u64) {
    let (log, _) = Log::open(path, settings()).unwrap();
    for number in 1..=envelopes {
        log.append(&accept(number)).unwrap().wait().unwrap();
        let envelope = Parts { payload: None, hops: 1, ..parts(number, "archive", b"") };
        let _receipt = log.append(&body(&[Entry::Hop { envelope }])).unwrap();
        let id = id(number);
        let end = match number {
            _ if number % 10 == 0 => continue,
            _ if number % 7 == 0 => {
                let (cause, reason) = (CauseCode::HandlerFailed, "no such event");
                let at_ms = 1_704_067_200_000 + number;
                Entry::Dead { id, at_ms, attempts: 1, cause, reason }
            }
            _ => Entry::Completed { id },
        };
        let tally = Entry::State { name: "tally", value: b"39" };
        let _receipt = log.append(&body(&[end, tally])).unwrap();
    }
    log.close().unwrap();
}

/// A log that is not written by a flow, and whose policy is `sync`.
pub(crate) fn plain_log(path: &Path, sync: Sync, records: u8) -> Log {
    let (log, _) = Log::open(path, LogSettings { sync, ..settings() }).unwrap();
    for number in 0..records {
        let _receipt = log.append(&[number; 500]).unwrap();
    }
    log
}

pub(crate) fn file(path: &Path, number: u64) -> PathBuf {
    path.join(segment::name(number))
}

/// Changes the bytes of a segment.
pub(crate) fn tamper(path: &Path, number: u64, change: impl FnOnce(&mut Vec<u8>)) {
    let name = file(path, number);
    let mut bytes = std::fs::read(&name).unwrap();
    change(&mut bytes);
    std::fs::write(name, bytes).unwrap();
}

/// All files of a directory with what they hold.
pub(crate) fn everything(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), std::fs::read(&path).unwrap_or_default())).collect()
}

/// A folder with a log, of whose last record the second half never arrived.
pub(crate) fn torn_log() -> Scratch {
    let scratch = Scratch::new();
    let log = plain_log(&scratch.path("log"), Sync::Each, 3);
    log.flush().unwrap();
    let _receipt = log.append(&[1; 1_000]).unwrap();
    log.flush().unwrap();
    drop(log);
    tamper(&scratch.path("log"), 1, |bytes| bytes[2_048..].fill(0));
    scratch
}
