//! Runs a body under many random schedules.
//!
//! Shuttle finds logic races in the whole bus; it takes every atomic as sequentially consistent, so
//! orderings are the business of `loom-tests`.

#[cfg(not(shuttle))]
compile_error!("run these tests from their own folder, so that `--cfg shuttle` is set");

/// Schedules tried per test; `SHUTTLE_SCHEDULES` asks for others.
const SCHEDULES: usize = 10_000;

/// Tries `body` under random schedules, half of them by probabilistic concurrency testing
/// (Burckhardt et al., ASPLOS 2010). A failure prints how to repeat its schedule.
pub fn explore(name: &str, body: impl Fn() + Send + Sync + Copy + 'static) {
    let schedules = std::env::var("SHUTTLE_SCHEDULES")
        .map_or(SCHEDULES, |text| text.parse().expect("SHUTTLE_SCHEDULES is a number"));
    shuttle::check_random(body, schedules / 2);
    shuttle::check_pct(body, schedules / 2, 3);
    println!("{name}: {schedules} schedules");
}
