//! Whether both cores are free: two pinned threads of private work must together get at least
//! 1.75 cores' worth of it done in 25 ms.

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

const WINDOW: Duration = Duration::from_millis(25);

/// Runs the canary.
pub fn is_quiet() -> bool {
    let alone = *ALONE.get_or_init(|| (0..5).map(|_| work(0)).max().unwrap_or(1));
    let both: u64 = std::thread::scope(|scope| {
        let other = scope.spawn(|| work(1));
        work(0) + other.join().unwrap_or(0)
    });
    both as f64 >= 1.75 * alone as f64
}

static ALONE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();

/// Rounds of private work done on one core within the window.
fn work(core: usize) -> u64 {
    pin(core);
    let begin = Instant::now();
    let mut rounds = 0;
    let mut value = 1_u64;
    while begin.elapsed() < WINDOW {
        for _ in 0..1000 {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005) + 1);
        }
        rounds += 1;
    }
    rounds
}

/// Pins the calling thread.
pub fn pin(core: usize) {
    allow(&[core]);
}

/// Lets the calling thread, and those it starts, run on both cores.
pub fn free() {
    allow(&[0, 1]);
}

fn allow(cores: &[usize]) {
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core);
    }
    sched_setaffinity(None, &set).expect("the machine has two cores");
}
