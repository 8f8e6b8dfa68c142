//! Nothing is allocated per envelope in steady state: a 64-byte `Copy` payload through three
//! stages, published one by one and in batches. Counted per thread by the global allocator, on
//! workers and publishers alike. Not shown: hops that wait for room, which take a few allocations
//! for each wait; so publishers keep fewer envelopes on their way than a stage has room for.
#![expect(unsafe_code, reason = "a global allocator that counts can only be written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use waystage::{Bus, BusSettings, Envelope, StageSettings};

struct Counting;

thread_local! {
    /// Whether this thread's allocations are counted.
    static COUNTED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a round is running.
static STEADY: AtomicBool = AtomicBool::new(false);
/// Allocations of all threads that take part, in this round.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

fn count() {
    // A thread at its end has no cell any more, and takes no part.
    if COUNTED.try_with(Cell::get) == Ok(true) && STEADY.load(Ordering::SeqCst) {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
    }
}

/// From now on this thread takes part.
fn take_part() {
    COUNTED.set(true);
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `alloc`'s contract, which is the system allocator's too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: `pointer` came from the system's allocator through us.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from the system's allocator through us.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Payload = [u64; 8];

/// Envelopes that may be on their way.
const WINDOW: u64 = 192;
/// Envelopes that reached their end in this check.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Waits until at most `open` of `sent` envelopes are on their way.
fn pace(sent: u64, open: u64) {
    while HANDLED.load(Ordering::SeqCst) + open < sent {
        std::thread::yield_now();
    }
}

/// Envelopes of one round.
const COUNT: u64 = 50_000;
/// Rounds within which one must allocate nothing: buffers grow to their size in the first ones.
const ROUNDS: u64 = 40;
/// Rounds in which buffers may still grow.
const WARM_UP: u64 = 10;

/// Publishes rounds of `COUNT` until one allocates nothing; fails when none does, or when one
/// after the warm-up comes anywhere near an allocation per envelope.
fn check(what: &str, permits: u32, publish: impl Fn(&Bus<Payload>, u64)) {
    let bus: Bus<Payload> =
        Bus::start(BusSettings { workers: 2, ..BusSettings::default() }).expect("fine settings");
    HANDLED.store(0, Ordering::SeqCst);
    for name in ["a", "b", "c"] {
        let settings = StageSettings { permits, capacity: 256, ..StageSettings::default() };
        bus.add_stage(name, settings, move |context| {
            take_part();
            context.payload_mut()[0] += 1;
            HANDLED.fetch_add(u64::from(context.stage() == "c"), Ordering::SeqCst);
            Ok(())
        })
        .expect("the stage is fine");
    }
    take_part();
    for round in 1..=ROUNDS {
        ALLOCATIONS.store(0, Ordering::SeqCst);
        STEADY.store(true, Ordering::SeqCst);
        publish(&bus, (round - 1) * COUNT);
        pace(round * COUNT, 0);
        STEADY.store(false, Ordering::SeqCst);
        let allocations = ALLOCATIONS.load(Ordering::SeqCst);
        if round > 1 && allocations == 0 {
            return;
        }
        assert!(
            round <= WARM_UP || allocations < COUNT / 1000,
            "{what}, {permits} permits: {allocations} allocations for {COUNT} envelopes"
        );
    }
    panic!("{what}, {permits} permits: none of {ROUNDS} rounds allocated nothing");
}

/// One test, since the counts are of the whole process.
#[test]
fn nothing_is_allocated_per_envelope_in_steady_state() {
    for permits in [1, 2] {
        check("a publisher", permits, |bus, before| {
            prepared(bus, |publisher, slip| {
                for number in before..before + COUNT {
                    pace(number, WINDOW);
                    let envelope = Envelope::new([number; 8], slip.clone());
                    publisher.publish(envelope).expect("there is room");
                }
            });
        });
        check("batches of a publisher", permits, |bus, before| {
            prepared(bus, |publisher, slip| {
                for first in (before..before + COUNT).step_by(50) {
                    pace(first, WINDOW - 50);
                    let envelope = |n| Envelope::new([n; 8], slip.clone());
                    let mut batch = (first..first + 50).map(envelope);
                    publisher.publish_batch(&mut batch).expect("there is room");
                }
            });
        });
        check("a handle", permits, |bus, before| {
            prepared(bus, |_, slip| {
                for number in before..before + COUNT {
                    pace(number, WINDOW);
                    bus.publish(Envelope::new([number; 8], slip.clone())).expect("has room");
                }
            });
        });
    }
}

/// Prepares a publisher and a slip without counting what that takes, then publishes with them.
fn prepared(
    bus: &Bus<Payload>,
    publish: impl FnOnce(&mut waystage::Publisher<Payload>, &waystage::Slip),
) {
    let before = COUNTED.replace(false);
    let (mut publisher, slip) = (bus.publisher(), bus.slip(["a", "b", "c"]).expect("fine names"));
    COUNTED.set(before);
    publish(&mut publisher, &slip);
}
