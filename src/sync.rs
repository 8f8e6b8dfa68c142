//! The one door to atomics, locks, threads and queues.
//!
//! Everything above imports synchronisation from here, never from `std::sync` or a queue crate, so
//! that the models of `loom-tests` run the production code on loom's types (`--cfg loom` and the
//! feature `loom`). Both bodies have the same names; only the ring differs: loom builds use
//! concurrent-queue, the same stamped-slot algorithm with loom support.
//!
//! A third body, shuttle's (`--cfg shuttle` and the feature `shuttle`), lets `shuttle-tests` run
//! the whole bus under random schedules on the real ring.
//!
//! `hot_fence` is the one difference in behaviour. On the real ring a publish needs no fence: its
//! push is a `SeqCst` read-modify-write (see `coord/README.md`, step P2). Loom treats `SeqCst`
//! accesses as acquire-release, so loom builds put a fence where the single total order is used.

#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
mod imp {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    #[cfg(test)]
    pub(crate) use std::thread::panicking;
    pub(crate) use std::thread::yield_now;

    /// Declares a cell of each thread.
    macro_rules! thread_cell {
        ($name:ident: $type:ty = $value:expr) => {
            std::thread_local! {
                static $name: std::cell::Cell<$type> = const { std::cell::Cell::new($value) };
            }
        };
    }

    /// A bounded lock-free queue for many producers and consumers.
    pub(crate) type Ring<T> = crossbeam_queue::ArrayQueue<T>;

    /// Orders the push before the following load of the state word: nothing to do on the real ring.
    #[inline(always)]
    pub(crate) fn hot_fence() {}
    pub(crate) use thread_cell;

    /// Starts a named thread.
    ///
    /// # Errors
    /// When the operating system refuses the thread.
    pub(crate) fn spawn_thread(
        name: String,
        body: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<JoinHandle> {
        std::thread::Builder::new().name(name).spawn(body)
    }

    /// The handle of a started thread.
    pub(crate) type JoinHandle = std::thread::JoinHandle<()>;

    /// Whether a thread has ended.
    pub(crate) fn has_ended(thread: &JoinHandle) -> bool {
        thread.is_finished()
    }

    /// Waits on `condvar` for at most `timeout`; `None` waits without limit.
    pub(crate) fn wait_on<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        timeout: Option<std::time::Duration>,
    ) -> MutexGuard<'a, T> {
        match timeout {
            None => condvar.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner),
            Some(timeout) => {
                condvar
                    .wait_timeout(guard, timeout)
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .0
            }
        }
    }
}

#[cfg(all(loom, feature = "loom"))]
mod imp {
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;

    /// Declares a cell of each thread: threads of a model share one of the machine's.
    macro_rules! thread_cell {
        ($name:ident: $type:ty = $value:expr) => {
            loom::thread_local! {
                static $name: std::cell::Cell<$type> = std::cell::Cell::new($value);
            }
        };
    }

    /// The loom stand-in of the ring: the calls we use, on concurrent-queue.
    #[derive(Debug)]
    pub struct Ring<T>(concurrent_queue::ConcurrentQueue<T>);

    impl<T> Ring<T> {
        /// A ring with room for `capacity` values (at least 2: one is another algorithm there).
        pub fn new(capacity: usize) -> Self {
            Self(concurrent_queue::ConcurrentQueue::bounded(capacity.max(2)))
        }
        /// Pushes, or gives the value back when full.
        pub fn push(&self, value: T) -> Result<(), T> {
            self.0.push(value).map_err(concurrent_queue::PushError::into_inner)
        }
        /// Pops the oldest value.
        pub fn pop(&self) -> Option<T> {
            self.0.pop().ok()
        }
        /// Values inside.
        pub fn len(&self) -> usize {
            self.0.len()
        }
        /// Whether nothing is inside.
        pub fn is_empty(&self) -> bool {
            self.0.is_empty()
        }
        /// Whether no room is left.
        pub fn is_full(&self) -> bool {
            self.0.is_full()
        }
        /// The bound.
        pub fn capacity(&self) -> usize {
            self.0.capacity().unwrap_or(usize::MAX)
        }
    }

    /// Orders the push before the following load of the state word.
    pub(crate) fn hot_fence() {
        fence(Ordering::SeqCst);
    }
    pub(crate) use thread_cell;

    /// Starts a thread of the model.
    ///
    /// # Errors
    /// Never in models.
    pub(crate) fn spawn_thread(
        _name: String,
        body: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<JoinHandle> {
        Ok(loom::thread::spawn(body))
    }

    /// The handle of a started thread.
    pub(crate) type JoinHandle = loom::thread::JoinHandle<()>;

    /// Whether a thread has ended: models join their threads themselves.
    pub(crate) fn has_ended(_thread: &JoinHandle) -> bool {
        true
    }

    /// Waits on `condvar`. Time does not pass in models: a wake-up that a time-out would mask shows
    /// as a deadlock.
    pub(crate) fn wait_on<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        _timeout: Option<std::time::Duration>,
    ) -> MutexGuard<'a, T> {
        condvar.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(all(shuttle, feature = "shuttle"))]
mod imp {
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread::yield_now;

    /// Declares a cell of each thread.
    macro_rules! thread_cell {
        ($name:ident: $type:ty = $value:expr) => {
            shuttle::thread_local! {
                static $name: std::cell::Cell<$type> = std::cell::Cell::new($value);
            }
        };
    }
    pub(crate) use thread_cell;

    /// The real ring: shuttle switches threads around its calls, not inside them.
    pub(crate) type Ring<T> = crossbeam_queue::ArrayQueue<T>;

    /// Every atomic is sequentially consistent here.
    pub(crate) fn hot_fence() {}

    /// Starts a thread of the schedule.
    ///
    /// # Errors
    /// Never in schedules.
    pub(crate) fn spawn_thread(
        _name: String,
        body: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<JoinHandle> {
        Ok(shuttle::thread::spawn(body))
    }

    /// The handle of a started thread.
    pub(crate) type JoinHandle = shuttle::thread::JoinHandle<()>;

    /// Whether a thread has ended: joining waits for it.
    pub(crate) fn has_ended(_thread: &JoinHandle) -> bool {
        true
    }

    /// Waits on `condvar`. Time does not pass: a wait of less than a minute ends at once, a longer
    /// one, or one without a limit, by a wake-up only.
    pub(crate) fn wait_on<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        timeout: Option<std::time::Duration>,
    ) -> MutexGuard<'a, T> {
        if timeout.is_some_and(|timeout| timeout.as_secs() < 60) {
            yield_now();
            return guard;
        }
        condvar.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(all(loom, feature = "loom"))]
pub use imp::Ring;
#[cfg(not(all(loom, feature = "loom")))]
pub(crate) use imp::Ring;
#[cfg(all(test, not(all(loom, feature = "loom"))))]
pub(crate) use imp::panicking;
pub(crate) use imp::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Condvar, JoinHandle, Mutex, MutexGuard,
    Ordering, fence, has_ended, hot_fence, spawn_thread, thread_cell, wait_on, yield_now,
};

/// The number under a meter. Meters decide nothing that the protocols rest on, so models leave
/// them out: each modelled access would multiply what there is to explore.
pub(crate) use std::sync::atomic::AtomicU64 as MeterU64;

pub(crate) use exclusive::Exclusive;

mod exclusive {
    /// A value that only its owner reaches, so that shared references to it may cross threads
    /// whatever it is. The lock is never taken, hence not modelled.
    pub(crate) struct Exclusive<T>(std::sync::Mutex<T>);

    impl<T> Exclusive<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }

        pub(crate) fn into_inner(self) -> T {
            self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }
}

/// Whether sizes and waits shrink to what a model can explore.
pub(crate) const SMALL: bool =
    cfg!(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")));

pub(crate) use crossbeam_utils::CachePadded;

pub(crate) use process::{cores, next_bus_number, next_lane};

/// What all of this process share. Not modelled: it decides no order.
mod process {
    use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};

    static LANES: AtomicUsize = AtomicUsize::new(1);
    static BUSES: AtomicU16 = AtomicU16::new(1);

    /// The cores this process may use.
    pub(crate) fn cores() -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    /// A number for a publishing thread.
    pub(crate) fn next_lane() -> usize {
        LANES.fetch_add(1, Relaxed)
    }

    /// A number that no other bus of this process has; `None` when they are used up.
    pub(crate) fn next_bus_number() -> Option<u16> {
        if super::SMALL {
            // One bus per run of a model, and more runs than numbers.
            return Some(1);
        }
        BUSES.fetch_update(Relaxed, Relaxed, |number| number.checked_add(1)).ok()
    }
}

/// Locks a mutex whose data stays consistent when a holder panics.
///
/// No user code ever runs under one of our locks, so poisoning carries no information.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks a mutex if nobody holds it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

/// A place between two steps of a protocol where a test may stop a thread; nothing otherwise.
#[cfg(not(all(test, not(loom), not(shuttle))))]
#[inline(always)]
pub(crate) fn pause_point() {}
#[cfg(all(test, not(loom), not(shuttle)))]
pub(crate) use pause::{Pause, pause_at, pause_point};

/// Stops a thread of a test at the n-th such place.
#[cfg(all(test, not(loom), not(shuttle)))]
mod pause {
    use std::cell::RefCell;
    use std::sync::{Arc, Condvar, Mutex};

    #[derive(Debug, Default)]
    struct State {
        reached: bool,
        released: bool,
    }

    /// Where a thread stands, for the thread that stopped it.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Pause(Arc<(Mutex<State>, Condvar)>);

    thread_local! {
        static NEXT: RefCell<Option<(usize, Pause)>> = const { RefCell::new(None) };
    }

    /// Stops this thread at the place number `place` that it comes to, from zero.
    pub(crate) fn pause_at(place: usize, pause: Pause) {
        NEXT.set(Some((place, pause)));
    }

    /// Stops here if it is this thread's turn.
    pub(crate) fn pause_point() {
        let here = NEXT.with_borrow_mut(|next| match next {
            Some((0, _)) => next.take(),
            Some((place, _)) => {
                *place -= 1;
                None
            }
            None => None,
        });
        if let Some((_, pause)) = here {
            pause.stop();
        }
    }

    impl Pause {
        fn stop(&self) {
            let (state, changed) = &*self.0;
            let mut state = super::lock(state);
            state.reached = true;
            changed.notify_all();
            while !state.released {
                state = super::wait_on(changed, state, None);
            }
        }

        /// The thread ended, or will not stop any more.
        pub(crate) fn release(&self) {
            super::lock(&self.0.0).released = true;
            self.0.1.notify_all();
        }

        /// Waits until the thread stands there, or was released: whether it stands there.
        pub(crate) fn wait(&self) -> bool {
            let (state, changed) = &*self.0;
            let mut state = super::lock(state);
            while !state.reached && !state.released {
                state = super::wait_on(changed, state, None);
            }
            state.reached
        }
    }
}
