//! The wake-up on the real ring and the real machine: a litmus test of what loom cannot show, that
//! a publish needs no fence there (`coord/README.md`, "Why a publish needs no fence").

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Attendance, Released};
use crate::clock::{Clock as _, SystemClock};
use crate::sync::Ring;

/// How long the two race.
const RACE_NS: u64 = 1_000_000_000;
/// With fewer rounds than this the two hardly ran side by side.
const ROUNDS_FEW: u64 = 100_000;

/// Lets two threads meet, spinning; yields for machines with one core.
fn meet(place: &AtomicU64, at: u64) {
    place.fetch_add(1, Ordering::SeqCst);
    let mut spins = 0_u32;
    while place.load(Ordering::SeqCst) < at {
        spins += 1;
        if spins.is_multiple_of(1 << 10) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Spends up to some tens of nanoseconds, another number in each round.
fn stagger(round: u64, factor: u64) {
    for _ in 0..round.wrapping_mul(factor) % 23 {
        std::hint::spin_loop();
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    rounds: u64,
    by_publisher: u64,
    by_holder: u64,
    lost: u64,
    twice: u64,
}

/// P2 to P4 against R1 to R4, round after round, on a ring of two slots that wraps every other one:
/// in each round exactly one side ends with the permit.
#[test]
fn no_wake_up_is_lost_on_the_real_ring() {
    let (ring, attendance) = (Ring::new(2), Attendance::new(1, 0));
    let (start, end) = (AtomicU64::new(0), AtomicU64::new(0));
    let (took, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut tally = Tally::default();
    assert!(attendance.try_attend());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let clock = SystemClock::new();
            for round in 1.. {
                let is_over = round % 64 == 0 && clock.monotonic_ns() > RACE_NS;
                if is_over {
                    over.store(true, Ordering::SeqCst);
                }
                meet(&start, 2 * round);
                if is_over {
                    return;
                }
                stagger(round, 7);
                ring.push(round).expect("it was emptied");
                let word = attendance.after_push();
                let attends = !Attendance::is_looked_after(word) && attendance.try_attend();
                took.store(attends, Ordering::SeqCst);
                meet(&end, 2 * round);
            }
        });
        for round in 1.. {
            meet(&start, 2 * round);
            if over.load(Ordering::SeqCst) {
                return;
            }
            stagger(round, 11);
            let again = attendance.release(|| !ring.is_empty()) == Released::Again;
            meet(&end, 2 * round);
            let attends = took.load(Ordering::SeqCst);
            tally.rounds += 1;
            tally.by_holder += u64::from(again && !attends);
            tally.by_publisher += u64::from(attends && !again);
            tally.twice += u64::from(attends && again);
            tally.lost += u64::from(!attends && !again);
            assert_eq!(ring.pop(), Some(round));
            assert!(attendance.used() == 1 || attendance.try_attend());
        }
    });
    assert_eq!((tally.lost, tally.twice), (0, 0), "{tally:?}");
    // On a busy machine the two meet too seldom to say which side wins.
    let raced = tally.by_publisher > 0 && tally.by_holder > 0;
    assert!(raced || tally.rounds < ROUNDS_FEW, "no race: {tally:?}");
}
