//! Appending and flushing together: no record stays in the queue, nobody waits for ever, and
//! nothing is acknowledged that the disk does not have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake};

use loom::thread;
use waystage::log::{Log, LogError, Start, Sync as Policy};
use waystage::model;
use waystage_loom_tests::{HeapDisk, Seen, StillClock, explore};

/// Bytes of a record with a body of eight bytes or fewer, and of a segment's header.
const RECORD: u64 = 56;
const HEADER: u64 = 64;

fn log_on(disk: &Arc<HeapDisk>) -> Arc<Log> {
    Arc::new(model::log(disk.clone(), StillClock::new()).unwrap())
}

/// Runs `body` on as many threads, this one among them.
fn together(threads: u8, body: impl Fn(u8) + Clone + Send + Sync + 'static) {
    let others: Vec<_> = (1..threads)
        .map(|number| {
            let body = body.clone();
            thread::spawn(move || body(number))
        })
        .collect();
    body(0);
    for other in others {
        other.join().unwrap();
    }
}

/// Threads append; when all have returned, all is written, queued or not.
fn queue(name: &str, bound: usize, threads: u8, each: u64) {
    let queued = Seen::new();
    let seen = queued.clone();
    explore(name, bound, move || {
        let log = log_on(&Arc::default());
        let was_queued = Arc::new(AtomicBool::new(false));
        let (shared, noted) = (log.clone(), was_queued.clone());
        together(threads, move |number| {
            for _ in 0..each {
                let receipt = shared.append(&[number]).unwrap();
                if format!("{receipt:?}").contains("Queued") {
                    noted.store(true, Relaxed);
                }
            }
        });
        assert_eq!(log.appended(), u64::from(threads) * each, "none is left in the queue");
        seen.note(was_queued.load(Relaxed));
    });
    assert!(queued.runs() > 0, "nobody found the permit taken");
}

#[test]
fn nothing_stays_in_the_queue() {
    queue("log/queue", 3, 2, 1);
}

#[test]
fn nothing_stays_in_the_queue_of_two() {
    queue("log/queue_twice", 2, 2, 2);
}

#[test]
fn nothing_stays_in_the_queue_of_three_threads() {
    queue("log/queue_three", 2, 3, 1);
}

/// Threads append and wait; all return, and what they were told is on the disk.
fn flush(name: &str, bound: usize, threads: u8) {
    let shared = Seen::new();
    let seen = shared.clone();
    explore(name, bound, move || {
        let disk: Arc<HeapDisk> = Arc::default();
        let log = log_on(&disk);
        let (own, medium) = (log.clone(), disk.clone());
        together(threads, move |number| {
            let sequence = own.append(&[number]).unwrap().wait().unwrap();
            assert!(own.durable() >= sequence);
            assert!(medium.durable(1) >= HEADER + sequence * RECORD, "acknowledged, not durable");
        });
        seen.note(disk.flushes(1) < u64::from(threads));
    });
    assert!(shared.runs() > 0, "no two shared a flush");
}

#[test]
fn two_wait_for_a_flush() {
    flush("log/flush", 3, 2);
}

#[test]
fn three_wait_for_a_flush() {
    flush("log/flush_three", 2, 3);
}

/// The second record goes to a new segment while the first is waited for.
#[test]
fn a_flush_beside_a_roll() {
    explore("log/roll", 3, || {
        let disk: Arc<HeapDisk> = Arc::default();
        let log = log_on(&disk);
        let (own, medium) = (log.clone(), disk.clone());
        together(2, move |number| {
            let sequence = own.append(&[number; 3_000]).unwrap().wait().unwrap();
            assert!(medium.durable(sequence) > 3_000, "acknowledged in the wrong segment");
        });
        assert_eq!(log.durable(), 2);
    });
}

/// Threads append and wait for a flush that fails; all return with the error.
fn poison(name: &str, bound: usize, threads: u8) {
    explore(name, bound, move || {
        let disk: Arc<HeapDisk> = Arc::default();
        let log = log_on(&disk);
        disk.is_broken.store(true, Relaxed);
        let own = log.clone();
        together(threads, move |number| {
            // Another's failure may come before our append.
            let told = own.append(&[number]).and_then(|receipt| receipt.wait());
            assert!(matches!(told, Err(LogError::Storage { .. } | LogError::Poisoned { .. })));
        });
        assert_eq!(log.durable(), 0);
    });
}

#[test]
fn a_failed_flush_is_told_to_both() {
    poison("log/poison", 3, 2);
}

/// The one that is appointed to flush next does not, so the third must be told by the first.
#[test]
fn a_failed_flush_is_told_to_three() {
    poison("log/poison_three", 2, 3);
}

struct Note(AtomicBool);

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// A task that polls once against a thread that flushes: it is told, or was told already.
#[test]
fn a_task_is_woken_by_the_flush_of_a_thread() {
    let (waited, had) = (Seen::new(), Seen::new());
    let (wait_seen, had_seen) = (waited.clone(), had.clone());
    explore("log/task", 3, move || {
        let log = log_on(&Arc::default());
        let receipt = log.append(b"x").unwrap();
        let flusher = {
            let log = log.clone();
            thread::spawn(move || log.flush().unwrap())
        };
        let note = Arc::new(Note(AtomicBool::new(false)));
        let waker = note.clone().into();
        let mut receipt = std::pin::pin!(receipt);
        let polled = receipt.as_mut().poll(&mut Context::from_waker(&waker));
        flusher.join().unwrap();
        let is_woken = note.0.load(Relaxed);
        match polled {
            Poll::Ready(sequence) => assert_eq!(sequence.unwrap(), 1),
            Poll::Pending => assert!(is_woken, "the task sleeps for ever"),
        }
        wait_seen.note(is_woken);
        had_seen.note(!is_woken);
    });
    assert!(waited.runs() > 0 && had.runs() > 0);
}

/// A task follows the log and polls once, against a thread that appends and, unless nobody has to,
/// flushes: it is told, or was told already, and then it sees the record.
fn follow(name: &str, sync: Policy) {
    let (waited, had) = (Seen::new(), Seen::new());
    let (wait_seen, had_seen) = (waited.clone(), had.clone());
    explore(name, 3, move || {
        let disk: Arc<HeapDisk> = Arc::default();
        let log = Arc::new(model::log_by(disk, StillClock::new(), sync).unwrap());
        let mut follower = log.follow(Start::Oldest);
        let writer = {
            let log = log.clone();
            thread::spawn(move || log.append(b"x").unwrap().wait().unwrap())
        };
        let note = Arc::new(Note(AtomicBool::new(false)));
        let waker = note.clone().into();
        let polled = follower.poll_wait(&mut Context::from_waker(&waker));
        writer.join().unwrap();
        let is_woken = note.0.load(Relaxed);
        match polled {
            Poll::Ready(ready) => ready.unwrap(),
            Poll::Pending => assert!(is_woken, "the task sleeps for ever"),
        }
        let shown = follower.next().unwrap().map(|shown| shown.record.stamp.sequence);
        assert_eq!(shown, Some(1));
        wait_seen.note(is_woken);
        had_seen.note(!is_woken);
    });
    // Whoever flushes in a model gives way, so the task is on its list by then.
    assert!(waited.runs() > 0 && (had.runs() > 0 || sync == Policy::Each));
}

#[test]
fn a_follower_is_woken_by_a_flush() {
    follow("log/follow", Policy::Each);
}

#[test]
fn a_follower_is_woken_by_a_write_where_nobody_flushes() {
    follow("log/follow_os", Policy::Os);
}

/// A thread follows while the log ends: it sees the record, or the end without it, and returns.
#[test]
fn a_following_thread_returns_at_the_end() {
    explore("log/follow_end", 3, || {
        let log = log_on(&Arc::default());
        let mut follower = log.follow(Start::Oldest);
        let follows = thread::spawn(move || {
            while follower.wait().is_ok() {
                assert!(follower.next().unwrap().is_some());
            }
        });
        let receipt = log.append(b"x").unwrap();
        drop(Arc::into_inner(log).expect("it is ours alone"));
        drop(receipt);
        follows.join().unwrap();
    });
}
