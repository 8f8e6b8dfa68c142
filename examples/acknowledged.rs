//! Appends to a log from several threads and notes what was acknowledged; or looks whether a log
//! that a crash left has all of it, in order, and nothing else. A workload of `tools/powercut`.
//!
//! `acknowledged write DIR NOTES WRITES` or `acknowledged check DIR NOTES ENTRY`: `WRITES` is the
//! log of block writes, whose bytes 16 to 24 count what reached the device; `ENTRY` is the last
//! write that a crash left. SYNC is `each` or a number of milliseconds, COUNT the records of a
//! thread.
#![expect(clippy::print_stdout, reason = "an example tells what it did")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use waystage::log::verify::{Depth, verify};
use waystage::log::{Log, LogSettings, Recovered, Sync};

type Outcome<T> = Result<T, Box<dyn Error + Send + std::marker::Sync>>;

const THREADS: usize = 3;
/// The log is opened so often; every second time it was not closed before.
const LIVES: u64 = 4;
const BODY_BYTES_MAX: u64 = 3000;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", directory, notes, writes] => {
            write(&Path::new(directory).join("log"), Path::new(notes), Path::new(writes))
        }
        ["check", directory, notes, entry] => {
            check(&Path::new(directory).join("log"), Path::new(notes), entry.parse()?)
        }
        _ => Err("acknowledged write DIR NOTES WRITES | check DIR NOTES ENTRY".into()),
    }
}

/// Segments so small that there are many.
fn settings() -> Outcome<LogSettings> {
    let sync = match std::env::var("SYNC").as_deref() {
        Err(_) | Ok("each") => Sync::Each,
        Ok(time) => Sync::Within(Duration::from_millis(time.parse()?)),
    };
    Ok(LogSettings { segment_bytes: 128 << 10, sync, ..LogSettings::default() })
}

/// What thread `thread` appends as its record `number`: both, and bytes that follow from them.
fn body(thread: u64, number: u64) -> Vec<u8> {
    let mut random = (thread << 32 | number) + 1;
    let mut next = || {
        random = (random ^ random >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        random ^= random >> 29;
        random
    };
    let mut bytes: Vec<u8> = [thread, number].iter().flat_map(|word| word.to_le_bytes()).collect();
    let (length, zeros) = (next() % BODY_BYTES_MAX, next() % 3 == 0);
    for _ in 0..length / 8 {
        let word = if zeros { 0 } else { next() };
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

/// The notes: one line for everything that must be true of a crash from some block write on.
struct Notes {
    file: Mutex<File>,
    writes: PathBuf,
}

impl Notes {
    fn entries(&self) -> io::Result<u64> {
        let mut file = File::open(&self.writes)?;
        let mut bytes = [0; 8];
        file.seek(SeekFrom::Start(16))?;
        file.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn add(&self, what: &str) -> Outcome<()> {
        let line = format!("{what} {}\n", self.entries()?);
        let mut file = self.file.lock().map_err(|_poisoned| "another thread failed")?;
        Ok(file.write_all(line.as_bytes())?)
    }
}

fn write(directory: &Path, notes: &Path, writes: &Path) -> Outcome<()> {
    let file = File::options().create(true).append(true).open(notes)?;
    let notes = Notes { file: Mutex::new(file), writes: writes.to_path_buf() };
    notes.add("ready")?;
    let count: u64 = std::env::var("COUNT").map_or(Ok(200), |count| count.parse())?;
    for life in 0..LIVES {
        let (log, _) = Log::open(directory, settings()?)?;
        let numbers = count * life / LIVES..count * (life + 1) / LIVES;
        std::thread::scope(|scope| -> Outcome<()> {
            let spawn = |thread| {
                let (log, notes, numbers) = (&log, &notes, numbers.clone());
                scope.spawn(move || append(log, notes, thread, numbers))
            };
            let threads: Vec<_> = (0..THREADS as u64).map(spawn).collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_panic| "a panic")?)
        })?;
        println!("{} records, {} block writes", log.appended(), notes.entries()?);
        if life % 2 == 0 {
            log.close()?;
        }
    }
    Ok(())
}

fn append(log: &Log, notes: &Notes, thread: u64, numbers: std::ops::Range<u64>) -> Outcome<()> {
    for number in numbers {
        let receipt = log.append(&body(thread, number))?;
        // Where an acknowledgement is not yet safety, every tenth record waits until it is.
        let is_each = settings()?.sync == Sync::Each;
        if is_each || number % 10 == 0 {
            let sequence = receipt.wait_durable()?;
            notes.add(&format!("safe {sequence} {thread} {number}"))?;
        } else {
            receipt.wait()?;
        }
    }
    Ok(())
}

/// What a log has: thread and number of each record; a mark has none.
type Held = Vec<Option<(u64, u64)>>;

fn check(directory: &Path, notes: &Path, entry: u64) -> Outcome<()> {
    let safe = safe(notes, entry)?;
    let has_begun = fs::read_dir(directory).is_ok_and(|mut names| {
        names.any(|name| {
            name.is_ok_and(|name| name.path().extension().is_some_and(|e| e == "segment"))
        })
    });
    if has_begun {
        let verified = verify(directory, Depth::Records)?;
        if verified.is_damaged() {
            return Err(format!("verify finds {:?}", verified.findings).into());
        }
    }
    let (log, recovered) = Log::open(directory, settings()?)?;
    let mut held = held(recovered.as_ref())?;
    for (sequence, record) in &safe {
        let index = usize::try_from(*sequence)? - 1;
        if held.get(index) != Some(&Some(*record)) {
            let (found, length) = (held.get(index), held.len());
            return Err(format!("{sequence} is {found:?} of {length}, not {record:?}").into());
        }
    }
    // What is appended behind a repaired end is there after the next crash.
    let thread = THREADS as u64;
    for number in 0..3 {
        log.append(&body(thread, number))?.wait_durable()?;
        held.push(Some((thread, number)));
    }
    drop(log);
    let (log, recovered) = Log::open(directory, settings()?)?;
    if self::held(recovered.as_ref())? != held {
        return Err("another opening finds something else".into());
    }
    Ok(log.close()?)
}

/// What was acknowledged when the power went: sequences with what must be there.
fn safe(notes: &Path, entry: u64) -> Outcome<Vec<(u64, (u64, u64))>> {
    let mut safe = Vec::new();
    for line in fs::read_to_string(notes)?.lines() {
        let Some(numbers) = line.strip_prefix("safe ") else { continue };
        let numbers: Vec<u64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [sequence, thread, number, entries] = numbers[..] else {
            return Err(format!("a note that says nothing: {line}").into());
        };
        if entries <= entry {
            safe.push((sequence, (thread, number)));
        }
    }
    Ok(safe)
}

/// All records in order: each is what a thread appended, and a thread's follow each other.
fn held(recovered: Option<&Recovered>) -> Outcome<Held> {
    let (mut held, mut next) = (Held::new(), [0; THREADS + 1]);
    let Some(recovered) = recovered else { return Ok(held) };
    recovered.visit(|_, record| -> Outcome<()> {
        let sequence = record.stamp.sequence;
        if sequence != held.len() as u64 + 1 {
            return Err(format!("record {sequence} after {}", held.len()).into());
        }
        let bytes = record.body();
        if bytes.is_empty() {
            held.push(None);
            return Ok(());
        }
        let words = bytes.as_chunks::<8>().0;
        let [thread, number] = [0, 1].map(|index| u64::from_le_bytes(words[index]));
        let expected = next.get_mut(usize::try_from(thread)?).ok_or("an unknown thread")?;
        if number != *expected || bytes != body(thread, number) {
            return Err(format!("{sequence} is {thread}:{number}, not {thread}:{expected}").into());
        }
        *expected += 1;
        held.push(Some((thread, number)));
        Ok(())
    })?;
    Ok(held)
}
