//! What a log does aside: the next segment made ahead of need, flushes that are due.
//!
//! A log of its own has one thread for it, parked nearly always. It is started when first needed and
//! ends with the log.

use std::sync::Arc;
use std::time::Duration;

use super::prepare::Preparer;
use super::writer::Writer;
use crate::sync::{Condvar, JoinHandle, Mutex, lock, spawn_thread, wait_on};

/// What is to be done.
#[derive(Debug, Default)]
struct Orders {
    /// When a flush has to begin, in monotonic nanoseconds.
    flush_at: Option<u64>,
    prepare: bool,
    stop: bool,
}

/// The orders, and who is told of new ones.
#[derive(Debug)]
pub(crate) struct Background {
    preparer: Arc<Preparer>,
    orders: Mutex<Orders>,
    news: Condvar,
    thread: Mutex<Option<JoinHandle>>,
}

impl Background {
    pub(crate) fn new(preparer: Arc<Preparer>) -> Self {
        Self { preparer, orders: Mutex::default(), news: Condvar::new(), thread: Mutex::new(None) }
    }

    /// Starts the thread, which lives until [`stop`](Self::stop).
    ///
    /// # Errors
    /// When the operating system refuses it.
    pub(crate) fn start(writer: &Arc<Writer>) -> std::io::Result<()> {
        let own = Arc::clone(writer);
        let thread = spawn_thread("waystage-log".to_owned(), move || own.background.run(&own))?;
        *lock(&writer.background.thread) = Some(thread);
        Ok(())
    }

    /// The next segment will be needed before long.
    pub(crate) fn prepare(&self) {
        self.order(|orders| !std::mem::replace(&mut orders.prepare, true));
    }

    /// A flush has to begin at `deadline` or before.
    pub(crate) fn flush_by(&self, deadline: u64) {
        self.order(|orders| {
            let is_earlier = orders.flush_at.is_none_or(|at| deadline < at);
            if is_earlier {
                orders.flush_at = Some(deadline);
            }
            is_earlier
        });
    }

    /// Ends the thread, and waits for it.
    pub(crate) fn stop(&self) {
        self.order(|orders| !std::mem::replace(&mut orders.stop, true));
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // It panics only when something here is broken, which its own message says.
            let _ = thread.join();
        }
    }

    fn order(&self, change: impl FnOnce(&mut Orders) -> bool) {
        let mut orders = lock(&self.orders);
        let is_new = change(&mut orders);
        drop(orders);
        if is_new {
            self.news.notify_one();
        }
    }

    fn run(&self, writer: &Writer) {
        loop {
            let mut orders = lock(&self.orders);
            let now = writer.clock.monotonic_ns();
            if orders.stop {
                return;
            }
            if std::mem::take(&mut orders.prepare) {
                drop(orders);
                // Without room now, whoever needs the segment tries again and is told.
                let _ = self.preparer.ensure(writer.active().segment + 1);
            } else if orders.flush_at.is_some_and(|at| at <= now) {
                orders.flush_at = None;
                drop(orders);
                // A failure poisons the log, and that tells everybody.
                let _ = writer.flush.now(writer);
            } else {
                let wait = orders.flush_at.map(|at| Duration::from_nanos(at - now));
                drop(wait_on(&self.news, orders, wait));
            }
        }
    }
}
