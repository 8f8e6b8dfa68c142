//! The seeded simulator: random worlds, each repeated by its seed.
//!
//! `SIMULATOR_SEEDS` seeds from `SIMULATOR_START` on; a failure prints its seed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::cargo::{Cargo, Crate, Label};
use super::world::World;

/// What enough seeds must get to, or they prove little.
const REACHES: [&str; 23] = [
    "asynchronous publishes that waited",
    "completed",
    "dropped",
    "expired",
    "handler_failed",
    "handler_panicked",
    "hop_limit",
    "hops that waited",
    "next_stage_full",
    "no_consumer",
    "no_route",
    "re-drives",
    "refused: closed",
    "refused: foreign slip",
    "refused: full",
    "refused: no consumer",
    "refused: no route",
    "refused: paused",
    "stage_closed",
    "steals",
    "undelivered",
    "wake-ups",
    "worlds",
];

/// Runs one seed; the problems it found, and how often what happened.
fn simulate<P: Cargo>(seed: u64) -> (Vec<String>, BTreeMap<&'static str, u64>) {
    let world = World::<P>::new(seed);
    world.ledger.note("worlds");
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
    if let Err(panic) = end {
        world.escaped(&*panic);
    }
    let failures = world.ledger.failures();
    let reached = world.ledger.reached();
    if !failures.is_empty() {
        // What is left of a broken world must not be taken apart.
        Box::leak(Box::new((world.take_bus(), world)));
    }
    (failures, reached)
}

/// A number from the environment.
fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

#[test]
fn seeds() {
    let (start, count) = (variable("SIMULATOR_START", 0), variable("SIMULATOR_SEEDS", 200));
    let mut reached = BTreeMap::<_, u64>::new();
    for seed in start..start + count {
        // Plain payloads take shorter ways through the bus.
        let (failures, reached_now) =
            if seed % 3 == 0 { simulate::<Label>(seed) } else { simulate::<Crate>(seed) };
        assert!(
            failures.is_empty(),
            "seed {seed} failed; repeat it with SIMULATOR_START={seed} SIMULATOR_SEEDS=1:\n{}",
            failures.join("\n")
        );
        for (what, times) in reached_now {
            *reached.entry(what).or_default() += times;
        }
    }
    println!("{reached:#?}");
    let missed: Vec<_> = REACHES.iter().filter(|what| !reached.contains_key(**what)).collect();
    assert!(count < 200 || missed.is_empty(), "{count} seeds never got to {missed:?}");
}
