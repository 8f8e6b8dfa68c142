//! The seeded simulator: random worlds, each repeated by its seed.
//!
//! `SIMULATOR_SEEDS` seeds from `SIMULATOR_START` on; a failure prints its seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::cargo::{Cargo, Crate, Label};
use super::world::World;

/// Runs one seed; the problems it found.
fn simulate<P: Cargo>(seed: u64) -> Vec<String> {
    let world = World::<P>::new(seed);
    let end = catch_unwind(AssertUnwindSafe(|| {
        let shutdown = world.random.one_in(4).then(|| world.random.below(world.plan.actions));
        for action in 0..world.plan.actions {
            if world.ledger.has_failed() {
                break;
            }
            if shutdown == Some(action) {
                world.shut_down_slowly();
            }
            world.act();
            world.check_at_rest();
        }
        if !world.ledger.has_failed() {
            world.come_to_rest();
        }
        if !world.ledger.has_failed() {
            world.close_the_books();
        }
        if !world.ledger.has_failed() {
            world.check_leaks();
        }
    }));
    if end.is_err() {
        world.ledger.fail("a panic escaped to the driver");
    }
    let failures = world.ledger.failures();
    if !failures.is_empty() {
        // What is left of a broken world must not be taken apart.
        Box::leak(Box::new((world.take_bus(), world)));
    }
    failures
}

/// A number from the environment.
fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

#[test]
fn seeds() {
    let (start, count) = (variable("SIMULATOR_START", 0), variable("SIMULATOR_SEEDS", 200));
    for seed in start..start + count {
        // Plain payloads take shorter ways through the bus.
        let failures =
            if seed % 3 == 0 { simulate::<Label>(seed) } else { simulate::<Crate>(seed) };
        assert!(
            failures.is_empty(),
            "seed {seed} failed; repeat it with SIMULATOR_START={seed} SIMULATOR_SEEDS=1:\n{}",
            failures.join("\n")
        );
    }
}
