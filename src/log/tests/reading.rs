//! Readers of a directory and followers of an open log: what they show, and what never.

use super::*;
use crate::clock::ManualClock;
use crate::log::segment::SegmentHeader;
use crate::log::{Follower, Log, LogSettings, Reader, Shown, Start, Stop, Sync};

type Seen = (u64, u64, Vec<u8>);

fn seen(shown: &Shown<'_>) -> Seen {
    let stamp = shown.record.stamp;
    (stamp.sequence, stamp.time, shown.record.body().into_owned())
}

/// All that a reader shows from `start` on.
pub(super) fn all_from(disk: &SimulatedDisk, start: Start) -> (Vec<Seen>, Stop) {
    let mut reader = Reader::on(Arc::new(disk.clone()), start);
    let mut all = Vec::new();
    while let Some(shown) = reader.next().expect("the log can be read") {
        assert!(shown.is_durable);
        all.push(seen(&shown));
    }
    (all, reader.stop())
}

fn sequences(seen: &[Seen]) -> Vec<u64> {
    seen.iter().map(|seen| seen.0).collect()
}

/// A log of records with bodies of 1,000 bytes, one a time, in segments of three; all known to be
/// durable but the mark at the end.
fn long_log(count: u64) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let (_, mut tail) = open(&disk, settings(7, 4_096)).unwrap();
    for number in 0..count {
        let body = vec![number.to_le_bytes()[0]; 1_000];
        tail.push(Kind::Entries, &body, 10 * (number / 2)).unwrap();
    }
    tail.flush().unwrap();
    tail.push(Kind::Mark, &[], 0).unwrap();
    tail.flush().unwrap();
    disk
}

fn log_on(disk: &SimulatedDisk, sync: Sync) -> Log {
    let settings = LogSettings { sync, segment_bytes: 4_096, seed: Some(3), ..Default::default() };
    Log::on(Arc::new(disk.clone()), &settings, Arc::new(ManualClock::new()), None).unwrap().0
}

fn next_of(follower: &mut Follower) -> Option<u64> {
    follower.next().unwrap().map(|shown| shown.record.stamp.sequence)
}

#[test]
fn nothing_is_shown_that_no_watermark_covers() {
    let disk = SimulatedDisk::default();
    let (_, mut tail) = open(&disk, settings(7, 4_096)).unwrap();
    assert_eq!(all_from(&disk, Start::Oldest), (vec![], Stop::End));
    let mut reader = Reader::on(Arc::new(disk.clone()), Start::Oldest);
    for number in 1..=9_u64 {
        let (body, first) = (vec![number.to_le_bytes()[0]; 900], 2 * number - 1);
        tail.push(Kind::Entries, &body, 5).unwrap();
        tail.write().unwrap();
        // It says that the mark before it is flushed, and nothing of itself.
        assert_eq!(reader.next().unwrap().is_some(), number > 1);
        assert!(reader.next().unwrap().is_none(), "{first} is written, and not flushed");
        assert_eq!(reader.stop(), Stop::Unsafe(first));
        tail.flush().unwrap();
        assert!(reader.next().unwrap().is_none(), "no record says that {first} is flushed");
        tail.push(Kind::Mark, &[], 5).unwrap();
        tail.write().unwrap();
        let shown = reader.next().unwrap().map(|shown| seen(&shown));
        assert_eq!(shown, Some((first, 5, body)));
        assert_eq!(reader.durable(), first);
        assert_eq!(reader.position(), Start::Sequence(first + 1));
        tail.flush().unwrap();
        assert!(reader.next().unwrap().is_none());
    }
}

#[test]
fn reading_begins_at_any_sequence_or_time_without_a_scan() {
    let disk = long_log(300);
    let (all, stop) = all_from(&disk, Start::Oldest);
    assert_eq!(stop, Stop::End, "but for the mark");
    assert_eq!(sequences(&all), (1..=300).collect::<Vec<_>>());
    for first in [0, 1, 2, 3, 4, 99, 100, 101, 299, 300] {
        let (found, _) = all_from(&disk, Start::Sequence(first));
        assert_eq!(found, all[usize::try_from(first).unwrap().saturating_sub(1)..]);
    }
    assert_eq!(all_from(&disk, Start::Sequence(301)).0, []);
    assert_eq!(all_from(&disk, Start::Sequence(u64::MAX)).0, []);
    // Two records each have the same time, and a segment holds three.
    for time in [0, 1, 5, 10, 11, 20, 30, 700, 1_489, 1_490] {
        let (found, _) = all_from(&disk, Start::Time(time));
        let expected: Vec<_> = all.iter().filter(|seen| seen.1 >= time).cloned().collect();
        assert_eq!(found, expected, "from {time}");
    }
    assert_eq!(all_from(&disk, Start::Time(1_491)).0, []);
    let before = disk.bytes_read();
    let mut reader = Reader::on(Arc::new(disk.clone()), Start::Sequence(150));
    assert_eq!(reader.next().unwrap().map(|shown| shown.record.stamp.sequence), Some(150));
    let read = disk.bytes_read() - before;
    assert!(read < 40_000, "{read} bytes of {} were read", 100 * 4_096);
}

#[test]
fn what_was_removed_is_told() {
    let disk = long_log(30);
    let all = names(&disk);
    let mut behind = Reader::on(Arc::new(disk.clone()), Start::Oldest);
    assert!(behind.next().unwrap().is_some());
    for name in &all[..4] {
        disk.remove(name).unwrap();
    }
    assert_eq!(sequences(&all_from(&disk, Start::Oldest).0), (13..=30).collect::<Vec<_>>());
    assert_eq!(sequences(&all_from(&disk, Start::Sequence(13)).0), (13..=30).collect::<Vec<_>>());
    assert_eq!(sequences(&all_from(&disk, Start::Time(0)).0), (13..=30).collect::<Vec<_>>());
    let mut reader = Reader::on(Arc::new(disk.clone()), Start::Sequence(12));
    assert!(matches!(reader.next(), Err(LogError::Gone { first: 13 })));
    // Who has a file open reads it to its end.
    for _ in 2..=3 {
        assert!(behind.next().unwrap().is_some());
    }
    assert!(matches!(behind.next(), Err(LogError::Gone { first: 13 })));
    // A segment that is missing from the middle is not passed over.
    disk.remove(&all[6]).unwrap();
    let (found, stop) = all_from(&disk, Start::Oldest);
    assert_eq!(sequences(&found), (13..=18).collect::<Vec<_>>());
    assert!(matches!(stop, Stop::Invalid(place) if place.segment == 6));
}

#[test]
fn an_os_log_shows_all_that_is_valid_and_marks_it() {
    let disk = SimulatedDisk::default();
    let log = log_on(&disk, Sync::Os);
    let mut reader = Reader::on(Arc::new(disk.clone()), Start::Oldest);
    for number in 0..7 {
        let _receipt = log.append(&[number; 900]).unwrap();
        let shown = reader.next().unwrap().map(|shown| (seen(&shown).2, shown.is_durable));
        assert_eq!(shown, Some((vec![number; 900], false)));
    }
    log.flush().unwrap();
    let _receipt = log.append(b"tells of the flush").unwrap();
    assert!(!reader.next().unwrap().unwrap().is_durable);
    let mut reader = Reader::on(Arc::new(disk.clone()), Start::Oldest);
    let mut durable = Vec::new();
    while let Some(shown) = reader.next().unwrap() {
        durable.push(shown.is_durable);
    }
    assert_eq!(durable, [true, true, true, true, true, true, true, false]);
}

#[test]
fn another_policy_begins_another_segment() {
    let disk = SimulatedDisk::default();
    let mut expected = Vec::new();
    for (round, sync) in [Sync::Os, Sync::Each, Sync::Each, Sync::Os, Sync::Os].iter().enumerate() {
        // Opened and not written to, too.
        drop(log_on(&disk, Sync::Each));
        let log = log_on(&disk, *sync);
        let _receipt = log.append(b"x").unwrap();
        log.flush().unwrap();
        expected.push((round as u64 + 1, *sync == Sync::Os));
    }
    let mut reader = Reader::on(Arc::new(disk.clone()), Start::Oldest);
    let mut found = Vec::new();
    while let Some(shown) = reader.next().unwrap() {
        let bytes = disk.contents(&crate::log::segment::name(shown.location.segment));
        let header = SegmentHeader::from_bytes(bytes.first_chunk().unwrap()).unwrap();
        found.push((shown.record.stamp.sequence, header.is_os));
    }
    assert_eq!(found, expected);
    assert_eq!(records(recover(&disk, None).unwrap().as_ref()).len(), 5);
}

#[test]
fn a_follower_sees_what_is_durable() {
    for sync in [Sync::Each, Sync::Within(std::time::Duration::from_secs(9))] {
        let disk = SimulatedDisk::default();
        let log = log_on(&disk, sync);
        let mut follower = log.follow(Start::Oldest);
        for number in 1..=8_u8 {
            let _receipt = log.append(&[number; 900]).unwrap();
            assert_eq!(next_of(&mut follower), None);
            log.flush().unwrap();
            let shown = follower.next().unwrap().map(|shown| (seen(&shown).2, shown.is_durable));
            assert_eq!(shown, Some((vec![number; 900], true)));
            assert_eq!(next_of(&mut follower), None);
        }
        let mut late = log.follow(Start::Sequence(6));
        assert_eq!(next_of(&mut late), Some(6));
        assert_eq!(late.position(), Start::Sequence(7));
        let mut future = log.follow(Start::Sequence(10));
        for _ in 9..=10 {
            assert_eq!(next_of(&mut future), None);
            let _receipt = log.append(b"x").unwrap();
            log.flush().unwrap();
        }
        assert_eq!(next_of(&mut future), Some(10));
    }
}

#[test]
fn a_follower_of_an_os_log_sees_what_is_written() {
    let disk = SimulatedDisk::default();
    let log = log_on(&disk, Sync::Os);
    let mut follower = log.follow(Start::Oldest);
    for number in 1..=8 {
        let _receipt = log.append(&[0; 900]).unwrap();
        let shown = follower.next().unwrap().unwrap();
        assert_eq!((shown.record.stamp.sequence, shown.is_durable), (number, false));
    }
    log.flush().unwrap();
    let mut again = log.follow(Start::Oldest);
    assert!(again.next().unwrap().unwrap().is_durable);
}

#[test]
fn followers_on_threads_wait_for_all_and_for_the_end() {
    for sync in [Sync::Each, Sync::Os] {
        let disk = SimulatedDisk::default();
        let log = log_on(&disk, sync);
        let mut followers: Vec<_> = (0..3).map(|_| log.follow(Start::Oldest)).collect();
        std::thread::scope(|scope| {
            for follower in &mut followers {
                scope.spawn(move || {
                    let mut next = 1;
                    let ended = loop {
                        while let Some(sequence) = next_of(follower) {
                            assert_eq!(sequence, next);
                            next += 1;
                        }
                        if let Err(ended) = follower.wait() {
                            break ended;
                        }
                    };
                    assert!(matches!(ended, LogError::Closed));
                    assert_eq!(next, 2_001);
                });
            }
            for number in 0..2_000_u32 {
                let receipt = log.append(&number.to_le_bytes()).unwrap();
                if number % 7 == 0 {
                    receipt.wait().unwrap();
                }
            }
            log.flush().unwrap();
            drop(log);
        });
    }
}

#[test]
fn a_task_is_woken_once_there_is_more_and_at_the_end() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let disk = SimulatedDisk::default();
    let log = log_on(&disk, Sync::Each);
    let mut follower = log.follow(Start::Oldest);
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let context = &mut Context::from_waker(&waker);
    let woken = || count.0.load(Ordering::Relaxed);
    assert!(follower.poll_wait(context).is_pending());
    assert!(follower.poll_wait(context).is_pending(), "asked twice, told once");
    let _receipt = log.append(b"one").unwrap();
    assert_eq!(woken(), 0);
    log.flush().unwrap();
    assert_eq!(woken(), 1);
    assert!(matches!(follower.poll_wait(context), Poll::Ready(Ok(()))));
    assert_eq!(next_of(&mut follower), Some(1));
    assert!(follower.poll_wait(context).is_pending());
    // A flush that fails is the end, and what was durable is still shown.
    let _receipt = log.append(b"two").unwrap();
    let fault = crate::log::simulated::Fault::Error(std::io::ErrorKind::Other);
    disk.fail_at(disk.operations(), fault);
    assert!(log.flush().is_err());
    assert_eq!(woken(), 2);
    assert!(matches!(follower.poll_wait(context), Poll::Ready(Err(LogError::Poisoned { .. }))));
    assert_eq!(next_of(&mut follower), None);
    assert_eq!(next_of(&mut log.follow(Start::Oldest)), Some(1));
}

#[test]
fn what_is_damaged_under_a_follower_is_told() {
    let disk = SimulatedDisk::default();
    let log = log_on(&disk, Sync::Each);
    for _ in 0..3 {
        log.append(b"body").unwrap().wait().unwrap();
    }
    disk.tamper(&names(&disk)[0], |bytes| bytes[64 + 56 + 42] ^= 1);
    let mut follower = log.follow(Start::Oldest);
    assert_eq!(next_of(&mut follower), Some(1));
    match follower.next() {
        Err(LogError::Damaged(damage)) => {
            assert_eq!((damage.segment, damage.offset, damage.watermark), (1, 64 + 56, 3));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_real_directory_is_read_while_it_is_written() {
    for sync in [Sync::Each, Sync::Os] {
        let directory = tempfile::tempdir().unwrap();
        let settings = LogSettings { sync, segment_bytes: 16_384, ..LogSettings::default() };
        let (log, _) = Log::open(directory.path(), settings).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..600_u32 {
                    let mut body = number.to_le_bytes().to_vec();
                    body.resize(400, 7);
                    let receipt = log.append(&body).unwrap();
                    if number % 50 == 49 {
                        receipt.wait_durable().unwrap();
                    }
                }
                log.append(b"the end").unwrap().wait_durable().unwrap();
            });
            let mut reader = Reader::open(directory.path(), Start::Oldest).unwrap();
            let mut next = 0_u32;
            while next < 600 {
                match reader.next().unwrap() {
                    Some(shown) => {
                        assert_eq!(shown.record.body()[..4], next.to_le_bytes());
                        next += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
        log.close().unwrap();
        let names = || std::fs::read_dir(directory.path()).unwrap().count();
        let before = names();
        let mut reader = Reader::open(directory.path(), Start::Sequence(601)).unwrap();
        assert_eq!(*reader.next().unwrap().unwrap().record.body(), *b"the end");
        assert_eq!(names(), before, "nothing was made");
        Log::open(directory.path(), settings).expect("no lock was taken");
    }
}
