//! Many threads append to one log: nothing lost, nothing twice, each thread's order kept.

use super::*;
use crate::clock::{ManualClock, SystemClock};
use crate::log::simulated::Fault;
use crate::log::{Log, LogSettings, Receipt, Sync};

fn log_on(disk: &SimulatedDisk, sync: Sync, segment_bytes: u64) -> (Log, Option<Recovered>) {
    let settings = LogSettings { sync, segment_bytes, seed: Some(3), ..LogSettings::default() };
    Log::on(Arc::new(disk.clone()), &settings, Arc::new(SystemClock::new())).unwrap()
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
        let (log, none) = Log::open(directory.path(), settings.clone()).unwrap();
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
    disk.fail_at(disk.operations(), Fault::Error(std::io::ErrorKind::Other));
    assert!(matches!(receipts[0].wait(), Err(LogError::Storage { action: "flush", .. })));
    for receipt in &receipts {
        assert!(matches!(receipt.wait(), Err(LogError::Poisoned { action: "flush" })));
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
        let _ = log.append(&body).unwrap();
    }
    // The roll flushes, then makes the next segment.
    disk.fail_at(disk.operations() + 1, Fault::Error(std::io::ErrorKind::StorageFull));
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
    let (log, _) = Log::on(Arc::new(disk.clone()), &settings, clock.clone()).unwrap();
    for wall in [5_000, 9_000, 0, 7_000, 9_001] {
        clock.set_wall_ms(wall);
        let _ = log.append(b"x").unwrap();
    }
    log.flush().unwrap();
    let (_, recovered) = log_on(&disk.after_kill(), Sync::Each, 4_096);
    let times: Vec<u64> = records(recovered.as_ref()).iter().map(|record| record.1).collect();
    assert_eq!(times, [5_000, 9_000, 9_000, 9_000, 9_001].map(|ms| ms * 1_000_000));
}
