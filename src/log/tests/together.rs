//! Many threads append to one log: nothing lost, nothing twice, each thread's order kept.

use super::*;
use crate::clock::{ManualClock, SystemClock};
use crate::log::simulated::Fault;
use crate::log::{Log, LogSettings, Receipt, Sync};

pub(super) fn log_on(
    disk: &SimulatedDisk,
    sync: Sync,
    segment_bytes: u64,
) -> (Log, Option<Recovered>) {
    let settings = LogSettings { sync, segment_bytes, seed: Some(3), ..LogSettings::default() };
    Log::on(Arc::new(disk.clone()), &settings, Arc::new(SystemClock::new()), None).unwrap()
}

fn bodies_of(recovered: Option<&Recovered>) -> Vec<Vec<u8>> {
    records(recovered).into_iter().map(|record| record.2).collect()
}

/// Threads that append, each its number and a counter, and wait for every third.
fn append_together(log: &Log, threads: u8, each: u32) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut last = 0;
                for count in 0..each {
                    let mut body = vec![thread; 1 + count as usize % 90];
                    body.extend(count.to_le_bytes());
                    let receipt = log.append(&body).unwrap();
                    if count % 3 == 0 {
                        let sequence = receipt.wait().unwrap();
                        assert!(sequence > last && log.durable() >= sequence);
                        last = sequence;
                    }
                }
            });
        }
    });
}

fn check_together(bodies: &[Vec<u8>], threads: u8, each: u32) {
    assert_eq!(bodies.len(), usize::from(threads) * each as usize);
    let mut next = vec![0; usize::from(threads)];
    for body in bodies {
        let (thread, count) = body.split_at(body.len() - 4);
        let expected = &mut next[usize::from(thread[0])];
        assert_eq!(count, u32::to_le_bytes(*expected));
        *expected += 1;
    }
}

#[test]
fn what_threads_append_is_there_once_and_in_order() {
    let disk = SimulatedDisk::default();
    let (log, _) = log_on(&disk, Sync::Each, 16_384);
    append_together(&log, 4, 2_000);
    log.flush().unwrap();
    let mut random = Random(1);
    let after = disk.after_power_cut(&mut |bound| random.below(bound));
    let (_, recovered) = log_on(&after, Sync::Each, 16_384);
    check_together(&bodies_of(recovered.as_ref()), 4, 2_000);
}

#[test]
fn a_real_directory_keeps_what_threads_append() {
    for sync in [Sync::Each, Sync::Within(std::time::Duration::from_millis(1)), Sync::Os] {
        let directory = tempfile::tempdir().unwrap();
        let settings = LogSettings { sync, segment_bytes: 65_536, ..LogSettings::default() };
        let (log, none) = Log::open(directory.path(), settings).unwrap();
        assert!(none.is_none());
        std::thread::scope(|scope| {
            for thread in 0..3_u8 {
                let log = &log;
                scope.spawn(move || {
                    for count in 0..200_u32 {
                        let mut body = vec![thread; 700];
                        body.extend(count.to_le_bytes());
                        let receipt = log.append(&body).unwrap();
                        if count % 50 == 49 {
                            receipt.wait_durable().unwrap();
                            assert!(receipt.is_acknowledged().unwrap());
                        }
                    }
                });
            }
        });
        log.close().unwrap();
        let (_log, recovered) = Log::open(directory.path(), settings).unwrap();
        let mut bodies = bodies_of(recovered.as_ref());
        assert_eq!(bodies.pop(), Some(Vec::new()), "the mark");
        check_together(&bodies, 3, 200);
    }
}

#[test]
fn b14_one_writer_only() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        Log::open(directory.path(), LogSettings { segment_bytes: 4_096, ..LogSettings::default() })
    };
    let (log, _) = open().unwrap();
    assert!(matches!(open(), Err(LogError::Locked(_))));
    let link = directory.path().with_extension("link");
    std::os::unix::fs::symlink(directory.path(), &link).unwrap();
    let by_link = Log::open(&link, LogSettings::default());
    std::fs::remove_file(&link).unwrap();
    assert!(matches!(by_link, Err(LogError::Locked(_))), "the directory is locked, not a name");
    drop(log);
    open().unwrap();
}

#[test]
fn b11_the_first_failed_flush_is_final_and_all_are_told() {
    let disk = SimulatedDisk::default();
    let (log, _) = log_on(&disk, Sync::Each, 4_096);
    assert_eq!(log.append(b"kept").unwrap().wait().unwrap(), 1);
    let receipts: Vec<Receipt> = (0..3).map(|_| log.append(b"lost").unwrap()).collect();
    // They are written out first.
    disk.fail_at(disk.operations() + 1, Fault::Error(std::io::ErrorKind::Other));
    assert!(matches!(receipts[0].wait(), Err(LogError::Storage { action: "flush", .. })));
    for receipt in &receipts {
        assert!(matches!(receipt.wait(), Err(LogError::Poisoned { action: "flush", .. })));
        assert!(receipt.is_acknowledged().is_err());
    }
    assert!(matches!(log.append(b"x"), Err(LogError::Poisoned { .. })));
    assert!(matches!(log.flush(), Err(LogError::Poisoned { .. })));
    assert_eq!(log.durable(), 1);
    let mut random = Random(2);
    let after = disk.after_power_cut(&mut |bound| random.below(bound));
    let (_, recovered) = log_on(&after, Sync::Each, 4_096);
    assert_eq!(bodies_of(recovered.as_ref())[0], b"kept");
}

#[test]
fn b10_no_room_refuses_the_record_and_nothing_else() {
    let disk = SimulatedDisk::default();
    let (log, _) = log_on(&disk, Sync::Each, 4_096);
    let body = vec![1; 1_500];
    for _ in 0..2 {
        let _receipt = log.append(&body).unwrap();
    }
    // The roll writes and flushes, then makes the next segment.
    disk.fail_at(disk.operations() + 2, Fault::Error(std::io::ErrorKind::StorageFull));
    assert!(matches!(log.append(&body), Err(LogError::NoRoom { .. })));
    assert_eq!(log.durable(), 2, "what was there is safe");
    let small = log.append(b"still fits").unwrap();
    assert_eq!(small.wait().unwrap(), 3);
    assert_eq!(log.append(&body).unwrap().wait().unwrap(), 4, "room is back");
    let (_, recovered) = log_on(&disk.after_kill(), Sync::Each, 4_096);
    let sizes: Vec<usize> = bodies_of(recovered.as_ref()).iter().map(Vec::len).collect();
    assert_eq!(sizes, [1_500, 1_500, 10, 1_500]);
}

#[test]
fn a_receipt_is_a_future() {
    let directory = tempfile::tempdir().unwrap();
    let settings = LogSettings { segment_bytes: 65_536, ..LogSettings::default() };
    let (log, _) = Log::open(directory.path(), settings).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    struct Tell(std::sync::mpsc::Sender<()>);
    impl std::task::Wake for Tell {
        fn wake(self: Arc<Self>) {
            self.0.send(()).expect("the test waits");
        }
    }
    let waker = Arc::new(Tell(sender)).into();
    let mut receipt = std::pin::pin!(log.append(b"x").unwrap());
    let sequence = loop {
        match receipt.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(sequence) => break sequence,
            std::task::Poll::Pending => receiver.recv().unwrap(),
        }
    };
    assert_eq!((sequence.unwrap(), log.durable()), (1, 1));
}

#[test]
fn times_never_go_down() {
    let disk = SimulatedDisk::default();
    let clock = Arc::new(ManualClock::new());
    let settings = LogSettings { segment_bytes: 4_096, seed: Some(1), ..LogSettings::default() };
    let (log, _) = Log::on(Arc::new(disk.clone()), &settings, clock.clone(), None).unwrap();
    for wall in [5_000, 9_000, 0, 7_000, 9_001] {
        clock.set_wall_ms(wall);
        let _receipt = log.append(b"x").unwrap();
    }
    log.flush().unwrap();
    let (_, recovered) = log_on(&disk.after_kill(), Sync::Each, 4_096);
    let times: Vec<u64> = records(recovered.as_ref()).iter().map(|record| record.1).collect();
    assert_eq!(times, [5_000, 9_000, 9_000, 9_000, 9_001].map(|ms| ms * 1_000_000));
}

#[test]
fn a_queued_record_that_is_not_written_is_not_acknowledged() {
    for sync in [Sync::Each, Sync::Within(std::time::Duration::from_secs(9)), Sync::Os] {
        let disk = SimulatedDisk::default();
        let (log, _) = log_on(&disk, sync, 4_096);
        let queued = {
            let _held = crate::sync::lock(&log.writer.tail);
            log.append(b"queued").unwrap()
        };
        assert!(!queued.is_acknowledged().unwrap());
        disk.fail_at(disk.operations(), Fault::Error(std::io::ErrorKind::Other));
        assert!(log.append(b"own").and_then(|receipt| receipt.wait()).is_err());
        assert!(matches!(
            queued.is_acknowledged(),
            Err(LogError::Poisoned { action: "write", .. })
        ));
        assert!(matches!(queued.wait(), Err(LogError::Poisoned { action: "write", .. })));
    }
}

#[test]
fn an_explicit_flush_of_an_os_log_covers_the_segments_left_behind() {
    let mut random = Random(4);
    for flushed in 1..40 {
        let disk = SimulatedDisk::default();
        let (log, _) = log_on(&disk, Sync::Os, 4_096);
        for _ in 0..flushed {
            let _receipt = log.append(&[9; 1_000]).unwrap();
        }
        assert_eq!(log.flush().unwrap(), flushed);
        for _ in 0..10 {
            let _receipt = log.append(&[8; 1_000]).unwrap();
        }
        let after = disk.after_power_cut(&mut |bound| random.below(bound));
        let (_, recovered) = log_on(&after, Sync::Os, 4_096);
        assert!(bodies_of(recovered.as_ref()).len() as u64 >= flushed, "{flushed} flushed");
    }
}

#[test]
fn segments_change_their_size_from_opening_to_opening() {
    let disk = SimulatedDisk::default();
    let (mut expected, mut told) = (Vec::new(), Vec::new());
    // The second and the fifth leave a segment that others prepared, too small and too large.
    let openings =
        [(4_096, 3_000), (65_536, 60_000), (4_096, 2_500), (65_536, 100), (4_096, 3_000)];
    for (segment_bytes, length) in openings {
        let (log, _) = log_on(&disk, Sync::Each, segment_bytes);
        log.writer.background.make_what_is_wanted(&log.writer);
        expected.push(vec![7; length]);
        let admit = &mut |sequence, location| {
            told.push((sequence, location));
            Ok(())
        };
        log.append_if(Kind::Entries, &vec![7; length], admit).unwrap();
        log.flush().unwrap();
        log.writer.background.make_what_is_wanted(&log.writer);
        log.close().unwrap();
        expected.push(Vec::new());
    }
    let (_, recovered) = log_on(&disk, Sync::Each, 4_096);
    assert_eq!(bodies_of(recovered.as_ref()), expected);
    let mut stand = Vec::new();
    let visited: Result<(), ()> = recovered.unwrap().visit(|location, record| {
        stand
            .extend((record.stamp.kind != Kind::Mark).then_some((record.stamp.sequence, location)));
        Ok(())
    });
    assert_eq!((visited, stand), (Ok(()), told), "they stand where they were said to");
}

#[test]
fn a_receipt_of_a_log_that_is_gone_says_so_and_keeps_nobody_out() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let settings = LogSettings { segment_bytes: 65_536, ..LogSettings::default() };
        Log::open(directory.path(), settings).unwrap()
    };
    let (log, _) = open();
    let receipt = log.append(b"x").unwrap();
    drop(log);
    let waker = std::task::Waker::noop();
    let polled = std::pin::pin!(receipt).poll(&mut std::task::Context::from_waker(waker));
    assert!(matches!(polled, std::task::Poll::Ready(Err(LogError::Closed))), "{polled:?}");
    open();
}

#[test]
fn a_flush_that_is_due_is_done_when_the_log_is_dropped() {
    let disk = SimulatedDisk::default();
    let (log, _) = log_on(&disk, Sync::Within(std::time::Duration::from_secs(9)), 4_096);
    assert!(log.append(b"within").unwrap().is_acknowledged().unwrap());
    drop(log);
    let (_, recovered) = log_on(&disk.after_bare_power_cut(), Sync::Each, 4_096);
    assert_eq!(bodies_of(recovered.as_ref()), [b"within"]);
}

/// Lives of a log with any policy: what was acknowledged, as the policy promises it, comes back.
fn policies(seed: u64) {
    let mut random = Random(seed);
    let mut disk = SimulatedDisk::default();
    let (mut written, mut safe, mut told): (Vec<Vec<u8>>, usize, usize) = (Vec::new(), 0, 0);
    for _ in 0..4 {
        let within = Sync::Within(std::time::Duration::from_secs(9));
        let sync = [Sync::Each, within, Sync::Os][random.below(3)];
        let fault = [Fault::Crash, Fault::Error(std::io::ErrorKind::Other)][random.below(2)];
        disk.fail_at(random.below(80), fault);
        let settings = LogSettings {
            sync,
            segment_bytes: 4_096,
            seed: Some(random.next()),
            ..LogSettings::default()
        };
        let opened = Log::on(Arc::new(disk.clone()), &settings, Arc::new(SystemClock::new()), None);
        if let Ok((log, recovered)) = &opened {
            let found = bodies_of(recovered.as_ref());
            assert!(found.len() >= told, "seed {seed}: {} of {told}", found.len());
            assert_eq!(found[..], written[..found.len()], "seed {seed}");
            (safe, told) = (found.len(), found.len());
            written = found;
            for _ in 0..random.below(30) {
                let body = random.body(2_000);
                written.push(body.clone());
                let Ok(receipt) = log.append(&body) else { break };
                let acknowledged = match random.below(3) {
                    0 => receipt.wait_durable().map(|sequence| (sequence, true)),
                    1 => receipt.wait().map(|sequence| (sequence, sync == Sync::Each)),
                    _ => continue,
                };
                let Ok((sequence, is_durable)) = acknowledged else { break };
                assert_eq!(sequence, written.len() as u64, "seed {seed}");
                told = written.len();
                if is_durable {
                    safe = told;
                }
            }
        } else if let Err(LogError::Damaged(damage)) = &opened {
            panic!("seed {seed}: {damage}");
        }
        let kill = random.below(2) == 0;
        let next =
            if kill { disk.after_kill() } else { disk.after_power_cut(&mut |n| random.below(n)) };
        drop(opened);
        disk = next;
        if !kill {
            // What only the operating system had may be gone.
            told = safe;
        }
    }
    let (_, recovered) = log_on(&disk, Sync::Each, 4_096);
    let found = bodies_of(recovered.as_ref());
    assert!(found.len() >= told, "seed {seed}: {} of {told}", found.len());
    assert_eq!(found[..], written[..found.len()], "seed {seed}");
}

#[test]
fn b1_every_policy_keeps_what_it_promised() {
    for seed in 0..model::crashes() {
        policies(seed);
    }
}
