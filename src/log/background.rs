//! What a log does aside: the next segment made ahead of need, flushes that are due.
//!
//! A log of its own has a thread for each, as making a segment takes long and a flush must not wait
//! for it. Both are parked nearly always and end with the log.

use std::sync::Arc;
use std::time::Duration;

use super::error::LogError;
use super::prepare::Preparer;
use super::writer::Writer;
use crate::sync::{
    AtomicBool, AtomicU64, Condvar, JoinHandle, Mutex, Ordering, lock, spawn_thread, wait_on,
};

/// No flush is due.
const NEVER: u64 = u64::MAX;

/// What is to be done.
#[derive(Debug, Default)]
struct Orders {
    /// The segment to be made.
    prepare: Option<u64>,
    stop: bool,
}

/// The orders, and who is told of new ones.
#[derive(Debug)]
pub(crate) struct Background {
    preparer: Arc<Preparer>,
    /// When a flush has to begin, in monotonic nanoseconds; lowered by writers, taken under the
    /// lock.
    flush_at: AtomicU64,
    orders: Mutex<Orders>,
    news: Condvar,
    /// Whether the last try to make a segment found no room: a hint.
    short_of_room: AtomicBool,
    threads: Mutex<Vec<JoinHandle>>,
}

impl Background {
    pub(crate) fn new(preparer: Arc<Preparer>) -> Self {
        Self {
            preparer,
            flush_at: AtomicU64::new(NEVER),
            orders: Mutex::default(),
            news: Condvar::new(),
            short_of_room: AtomicBool::new(false),
            threads: Mutex::new(Vec::new()),
        }
    }

    /// Starts the threads, which live until [`stop`](Self::stop).
    ///
    /// # Errors
    /// When the operating system refuses one.
    pub(crate) fn start(writer: &Arc<Writer>) -> std::io::Result<()> {
        for (name, run) in [
            ("waystage-log-flush", Self::flush_when_due as fn(&Self, &Writer)),
            ("waystage-log-make", Self::make_segments),
        ] {
            let own = Arc::clone(writer);
            let thread = spawn_thread(name.to_owned(), move || run(&own.background, &own))?;
            lock(&writer.background.threads).push(thread);
        }
        Ok(())
    }

    /// This segment will be needed before long.
    pub(crate) fn prepare(&self, segment: u64) {
        lock(&self.orders).prepare = Some(segment);
        self.news.notify_all();
    }

    /// A flush has to begin at `deadline` or before.
    pub(crate) fn flush_by(&self, deadline: u64) {
        // ORDERING: Relaxed: most find an earlier one, and those who do not take the lock.
        if self.flush_at.load(Ordering::Relaxed) <= deadline {
            return;
        }
        let orders = lock(&self.orders);
        self.flush_at.fetch_min(deadline, Ordering::Relaxed);
        drop(orders);
        self.news.notify_all();
    }

    /// Ends the threads, waits for them, and does the flush that is still due.
    pub(crate) fn stop(&self, writer: &Writer) {
        lock(&self.orders).stop = true;
        self.news.notify_all();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // It panics only when something here is broken, which its own message says.
            let _ = thread.join();
        }
        if self.flush_at.swap(NEVER, Ordering::Relaxed) != NEVER {
            // A failure poisons the log, and that tells everybody.
            let _ = writer.flush.now(writer);
        }
    }

    fn flush_when_due(&self, writer: &Writer) {
        let mut orders = lock(&self.orders);
        while !orders.stop {
            let (at, now) = (self.flush_at.load(Ordering::Relaxed), writer.clock.monotonic_ns());
            if at <= now {
                // What is written from here on sets a deadline of its own.
                self.flush_at.store(NEVER, Ordering::Relaxed);
                drop(orders);
                let _ = writer.flush.now(writer);
                orders = lock(&self.orders);
            } else {
                let wait = (at != NEVER).then(|| Duration::from_nanos(at - now));
                orders = wait_on(&self.news, orders, wait);
            }
        }
    }

    fn make_segments(&self, writer: &Writer) {
        let mut orders = lock(&self.orders);
        while !orders.stop {
            if let Some(segment) = orders.prepare.take() {
                drop(orders);
                self.make(writer, segment);
                orders = lock(&self.orders);
            } else {
                orders = wait_on(&self.news, orders, None);
            }
        }
    }

    fn make(&self, writer: &Writer, segment: u64) {
        match self.preparer.ensure(segment) {
            Ok(()) => self.short_of_room.store(false, Ordering::Relaxed),
            // Whoever needs the segment tries again and is told.
            Err(LogError::NoRoom { .. }) => self.short_of_room.store(true, Ordering::Relaxed),
            Err(error) => {
                drop(writer.poison.set("make a segment", error));
                writer.flush.wake(writer, true);
            }
        }
    }

    /// Whether the last try to make a segment found no room.
    pub(crate) fn is_short_of_room(&self) -> bool {
        // ORDERING: Relaxed: a hint; who reads an old value looks again.
        self.short_of_room.load(Ordering::Relaxed)
    }

    /// Does the work of the thread that makes segments, where there is none.
    #[cfg(test)]
    pub(crate) fn make_what_is_wanted(&self, writer: &Writer) {
        let wanted = lock(&self.orders).prepare.take();
        if let Some(segment) = wanted {
            self.make(writer, segment);
        }
    }
}
