//! Permits: never more than N holders, and a released place is found.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::sync::atomic::AtomicU32;
use loom::thread;
use waystage::model::Permits;
use waystage_loom_tests::{Seen, explore};

/// One permit: holders exclude one another, and what one wrote the next one sees.
#[test]
fn one_permit_excludes() {
    let (both, one) = (Seen::new(), Seen::new());
    let (both_seen, one_seen) = (both.clone(), one.clone());
    explore("permits/exclusive", 3, move || {
        let permits = Arc::new(Permits::new(1));
        let data = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (permits, data) = (Arc::clone(&permits), Arc::clone(&data));
                thread::spawn(move || {
                    let took = permits.try_take();
                    if took {
                        // Loses one where the permit does not order the two.
                        data.store(data.load(Relaxed) + 1, Relaxed);
                        permits.release();
                    }
                    usize::from(took)
                })
            })
            .collect();
        let took: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(took >= 1, "the first to come finds a permit");
        both.note(took == 2);
        one.note(took == 1);
        assert_eq!(permits.used(), 0);
        assert!(permits.try_take(), "a released place is found");
        assert_eq!(data.load(Relaxed) as usize, took);
    });
    assert!(both_seen.runs() > 0 && one_seen.runs() > 0);
}

/// Two permits, three threads: at most two hold one at once.
#[test]
fn at_most_the_limit() {
    explore("permits/limit", 2, || {
        let permits = Arc::new(Permits::new(2));
        let inside = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (permits, inside) = (Arc::clone(&permits), Arc::clone(&inside));
                thread::spawn(move || {
                    if permits.try_take() {
                        assert!(inside.fetch_add(1, Relaxed) < 2, "three holders");
                        thread::yield_now();
                        inside.fetch_sub(1, Relaxed);
                        permits.release();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(permits.try_take() && permits.try_take() && !permits.try_take());
    });
}
