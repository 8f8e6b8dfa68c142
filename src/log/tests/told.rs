//! Tasks that wait are told when the log fails, all of them: nobody flushes for them any more.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake};

use super::together::log_on;
use super::*;
use crate::log::simulated::Fault;
use crate::log::{Log, Receipt, Sync};

#[derive(Default)]
struct Task {
    is_woken: AtomicBool,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Relaxed);
    }
}

/// A receipt with the task that waits for it.
struct Waiting {
    receipt: Pin<Box<Receipt>>,
    task: Arc<Task>,
}

impl Waiting {
    fn on(log: &Log) -> Self {
        let receipt = Box::pin(log.append(b"waits").unwrap());
        let mut waiting = Self { receipt, task: Arc::default() };
        assert!(waiting.poll().is_pending());
        waiting
    }

    fn poll(&mut self) -> Poll<Result<u64, LogError>> {
        let waker = Arc::clone(&self.task).into();
        self.receipt.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// Three tasks wait, and the `ahead`-th operation from there on fails.
fn all_are_told(ahead: usize, action: &'static str) {
    let disk = SimulatedDisk::default();
    let (log, _) = log_on(&disk, Sync::Each, 4_096);
    let mut all: Vec<Waiting> = (0..3).map(|_| Waiting::on(&log)).collect();
    disk.fail_at(disk.operations() + ahead, Fault::Error(std::io::ErrorKind::Other));
    assert!(matches!(log.flush(), Err(LogError::Storage { action: met, .. }) if met == action));
    for (index, waiting) in all.iter_mut().enumerate() {
        assert!(waiting.task.is_woken.load(Relaxed), "task {index} sleeps for ever");
        let told = waiting.poll();
        let Poll::Ready(Err(LogError::Poisoned { action: told, .. })) = told else {
            panic!("task {index}: {told:?}")
        };
        assert_eq!(told, action);
    }
}

#[test]
fn a_write_that_fails_wakes_every_task() {
    all_are_told(0, "write");
}

#[test]
fn a_flush_that_fails_wakes_every_task() {
    all_are_told(1, "flush");
}
