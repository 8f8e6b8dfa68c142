//! Readers against a list, while a writer appends, rolls and crashes; and over damaged bytes.

use std::collections::BTreeMap;

use super::model::crashes;
use super::reading::all_from;
use super::*;
use crate::log::simulated::Fault;
use crate::log::{Reader, Start};

type Model = Vec<(u64, u64, Vec<u8>)>;

/// A reader, and what it has to show next.
struct Watch {
    reader: Reader,
    next: Option<u64>,
    time: u64,
}

struct Run {
    random: Random,
    disk: SimulatedDisk,
    written: Model,
    /// All that any reader has shown.
    shown: BTreeMap<u64, (u64, Vec<u8>)>,
    watches: Vec<Watch>,
    now: u64,
}

impl Run {
    fn watch(&mut self, start: Start) {
        let reader = Reader::on(Arc::new(self.disk.clone()), start);
        let (next, time) = match start {
            Start::Oldest => (Some(1), 0),
            Start::Sequence(sequence) => (Some(sequence.max(1)), 0),
            Start::Time(time) => (None, time),
        };
        self.watches.push(Watch { reader, next, time });
    }

    fn watch_anywhere(&mut self) {
        let start = match self.random.below(3) {
            0 => Start::Oldest,
            1 => Start::Sequence(self.random.below(self.written.len() + 3) as u64),
            _ => Start::Time(self.now.saturating_sub(self.random.next() % 900)),
        };
        self.watch(start);
    }

    /// Some reader shows some of what there is.
    fn look(&mut self, known: u64) {
        let index = self.random.below(self.watches.len());
        let watch = &mut self.watches[index];
        for _ in 0..self.random.below(12) {
            let Some(shown) = watch.reader.next().expect("nothing is removed") else { return };
            let stamp = shown.record.stamp;
            assert!(shown.is_durable && stamp.sequence <= known, "{stamp:?}, {known} is known");
            if let Some(next) = watch.next {
                assert_eq!(stamp.sequence, next);
            } else {
                let first = self.written.iter().find(|record| record.1 >= watch.time);
                assert_eq!(first.map(|record| record.0), Some(stamp.sequence));
            }
            watch.next = Some(stamp.sequence + 1);
            let (_, time, body) = &self.written[usize::try_from(stamp.sequence - 1).unwrap()];
            assert_eq!((stamp.time, &*shown.record.body()), (*time, &body[..]));
            self.shown.insert(stamp.sequence, (*time, body.clone()));
        }
    }

    #[expect(clippy::panic_in_result_fn, reason = "errors are the disk's, panics are failures")]
    fn live(&mut self, segment_bytes: u64) -> Result<(), LogError> {
        let seed = self.random.next();
        let (recovered, mut tail) = open(&self.disk, settings(seed, segment_bytes))?;
        let found = records(recovered.as_ref());
        assert_eq!(found[..], self.written[..found.len()], "a prefix of what was written");
        self.written = found;
        for (sequence, (time, body)) in &self.shown {
            let record = self.written.get(usize::try_from(sequence - 1).unwrap());
            assert_eq!(record, Some(&(*sequence, *time, body.clone())), "it was shown");
        }
        for _ in 0..self.random.below(60) {
            self.now = (self.now + self.random.next() % 50).saturating_sub(self.random.next() % 40);
            match self.random.below(12) {
                0..5 => {
                    let body = self.random.body(tail.body_bytes_max());
                    let time = self.written.last().map_or(0, |record| record.1).max(self.now);
                    let sequence = self.written.len() as u64 + 1;
                    self.written.push((sequence, time, body.clone()));
                    assert_eq!(tail.push(Kind::Entries, &body, self.now)?, sequence);
                    if self.random.below(3) > 0 {
                        tail.write()?;
                    }
                }
                5 => tail.write()?,
                6 => tail.flush()?,
                7 => self.watch_anywhere(),
                _ => self.look(tail.watermark()),
            }
        }
        Ok(())
    }
}

/// Lives of a log that end in a kill, a power cut or an error, with readers beside.
fn lives(seed: u64) {
    let mut random = Random(seed);
    let segment_bytes = [4_096, 8_192, 65_536][random.below(3)];
    let disk = SimulatedDisk::default();
    let (written, shown) = (Vec::new(), BTreeMap::new());
    let mut run = Run { random, disk, written, shown, watches: Vec::new(), now: 1_000 };
    run.watch(Start::Oldest);
    for _ in 0..run.random.below(4) + 2 {
        let fault = [Fault::Crash, Fault::Error(std::io::ErrorKind::Other)][run.random.below(2)];
        run.disk.fail_at(run.random.below(80), fault);
        if let Err(LogError::Damaged(damage)) = run.live(segment_bytes) {
            panic!("seed {seed}: {damage}");
        }
        let random = &mut run.random;
        run.disk = match random.below(4) {
            0 => run.disk.after_kill(),
            _ => run.disk.after_power_cut(&mut |bound| random.below(bound)),
        };
        // Readers go on where they were.
        for watch in std::mem::take(&mut run.watches) {
            let start = watch.reader.position();
            if watch.next.is_some() || matches!(start, Start::Time(_)) {
                run.watch(start);
            }
        }
    }
    run.live(segment_bytes).expect("nothing fails any more");
}

#[test]
fn b20_readers_show_what_stays() {
    for seed in 0..crashes() {
        let result = std::panic::catch_unwind(|| lives(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// A log of two segments, known to be durable but for the last record.
fn small_log() -> (SimulatedDisk, Vec<Vec<u8>>) {
    let mut bodies = vec![vec![0; 64], vec![0; 500], Vec::new(), vec![0xFF; 40], vec![1; 3_000]];
    bodies.extend([vec![7; 90], vec![0; 120], b"the last".to_vec()]);
    let disk = log_with(&bodies, 4_096);
    let (_, mut tail) = open(&disk, settings(9, 4_096)).unwrap();
    tail.push(Kind::Mark, &[], 1).unwrap();
    tail.flush().unwrap();
    (disk, bodies)
}

/// What is shown has to be a part of `bodies`, each at its own sequence.
fn shows_only(disk: &SimulatedDisk, bodies: &[Vec<u8>], what: &str) -> usize {
    let mut count = 0;
    for start in [Start::Oldest, Start::Sequence(6), Start::Time(1)] {
        let mut reader = Reader::on(Arc::new(disk.clone()), start);
        let mut before = None;
        // An error is an answer too.
        while let Ok(Some(shown)) = reader.next() {
            let sequence = shown.record.stamp.sequence;
            assert_eq!(before.unwrap_or(sequence - 1), sequence - 1, "{what}: none is left out");
            before = Some(sequence);
            let index = usize::try_from(shown.record.stamp.sequence - 1).unwrap();
            assert_eq!(
                Some(&*shown.record.body()),
                bodies.get(index).map(|body| &**body),
                "{what}"
            );
            count += 1;
        }
    }
    count
}

#[test]
fn b4_no_flipped_bit_makes_a_reader_show_anything_else() {
    let (disk, bodies) = small_log();
    let good = disk.everything();
    assert_eq!(all_from(&disk, Start::Oldest).0.len(), 8);
    for (name, bytes) in &good {
        for bit in 0..bytes.len() * 8 {
            disk.tamper(name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            shows_only(&disk, &bodies, &format!("{name}: bit {bit}"));
            disk.tamper(name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        }
    }
    assert_eq!(shows_only(&disk, &bodies, "whole"), 8 + 3 + 8);
}

#[test]
fn files_shortened_grown_swapped_or_foreign_show_nothing_else() {
    let (disk, bodies) = small_log();
    let good = disk.everything();
    let all = names(&disk);
    let (first, second) = (&good[&all[0]], &good[&all[1]]);
    let with = |files: &[(&str, &[u8])]| {
        let disk = SimulatedDisk::default();
        for (name, bytes) in files {
            disk.put(name, bytes.to_vec());
        }
        disk
    };
    for length in (0..first.len()).step_by(37) {
        let disk = with(&[(&all[0], &first[..length]), (&all[1], second)]);
        shows_only(&disk, &bodies, &format!("{length} bytes"));
        let mut reader = Reader::on(Arc::new(disk), Start::Oldest);
        assert!(reader.next().is_err(), "the header says how long it is");
    }
    let fails = |disk: SimulatedDisk, word: &str| {
        let mut reader = Reader::on(Arc::new(disk), Start::Oldest);
        let error = loop {
            match reader.next() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{word}: {:?}", reader.stop()),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(word), "{error} says {word}");
    };
    let grown = [first, &[0; 8][..]].concat();
    fails(with(&[(&all[0], &grown), (&all[1], second)]), "4104 bytes where its header says 4096");
    fails(with(&[(&all[0], second), (&all[1], first)]), "that this is segment 2");
    fails(with(&[(&all[0], &[b'x'; 200])]), "has the name of a segment and is none");
    fails(with(&[(&all[0], first), (&all[1], &[b'x'; 200])]), "is none");
    let strange = SimulatedDisk::default();
    let (_, mut tail) = open(&strange, settings(99, 4_096)).unwrap();
    for body in &bodies {
        tail.push(Kind::Entries, body, 1).unwrap();
    }
    tail.flush().unwrap();
    fails(with(&[(&all[0], first), (&all[1], &strange.contents(&all[1]))]), "another log");
    let mut newer = first.clone();
    newer[8] = 2;
    let check = crate::log::frame::check_of(&newer[..56], 0).to_le_bytes();
    newer[56..64].copy_from_slice(&check);
    fails(with(&[(&all[0], &newer)]), "version 2");
}

#[test]
fn a_file_that_shrinks_under_a_reader_ends_it() {
    let bodies: Vec<_> = (0..60).map(|number| vec![number; 1_000]).collect();
    let disk = log_with(&bodies, 65_536);
    let (_, mut tail) = open(&disk, settings(9, 65_536)).unwrap();
    tail.push(Kind::Mark, &[], 1).unwrap();
    tail.flush().unwrap();
    let mut reader = Reader::on(Arc::new(disk.clone()), Start::Oldest);
    assert!(reader.next().unwrap().is_some());
    disk.tamper(&names(&disk)[0], |bytes| bytes.truncate(1_500));
    let mut count = 1;
    while let Ok(Some(shown)) = reader.next() {
        assert_eq!(*shown.record.body(), bodies[count]);
        count += 1;
    }
    assert!(count < 5, "only what the reader's window held");
}
