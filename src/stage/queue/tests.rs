//! Order over many laps of the real ring, one thread.

use super::{Queue, Slot};
use crate::envelope::{Envelope, Slip};

/// Fills by one more each time, then takes all: `pushes` in all, in order.
fn laps(capacity: usize, pushes: u64) {
    let queue = Queue::new(capacity);
    let (mut pushed, mut popped) = (0_u64, 0);
    for fill in (1..=capacity).cycle() {
        for _ in 0..fill {
            let envelope = Envelope::new(pushed, Slip::new());
            assert!(queue.push(envelope).is_ok(), "capacity {capacity}, push {pushed}");
            pushed += 1;
        }
        assert_eq!(queue.is_full(), fill == capacity, "capacity {capacity}, push {pushed}");
        while let Some(Slot::One(envelope)) = queue.pop() {
            assert_eq!(*envelope.payload(), popped, "capacity {capacity}");
            popped += 1;
        }
        assert_eq!(pushed, popped, "capacity {capacity}");
        if pushed >= pushes {
            return;
        }
    }
}

/// The stamps of the ring begin at zero and cannot be set: on 64 bits their wrap is out of reach.
/// On 32 bits they wrap within 2^32 pushes, `WAYSTAGE_A3=3300000000`; see `ARCHITECTURE.md`.
#[test]
fn a3_order_holds_over_a_million_laps() {
    let asked = std::env::var("WAYSTAGE_A3").ok();
    let asked: Option<u64> = asked.map(|asked| asked.parse().expect("WAYSTAGE_A3 is a number"));
    for capacity in [1, 2, 3, 4, 8] {
        laps(capacity, asked.unwrap_or(capacity as u64 * (1 << 20)));
    }
}
