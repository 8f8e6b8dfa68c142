//! The log against a list: whatever is done to the disk, a prefix of what was written comes back,
//! and all that was acknowledged.

use super::*;
use crate::log::simulated::Fault;

/// What the list remembers of one record.
type Model = Vec<(u64, u64, Vec<u8>)>;

struct Run {
    random: Random,
    disk: SimulatedDisk,
    settings: TailSettings,
    written: Model,
    /// Records whose flush has ended well.
    acknowledged: usize,
    now: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let segment_bytes = [4_096, 8_192, 65_536][random.below(3)];
        Self {
            disk: SimulatedDisk::default(),
            settings: settings(random.next(), segment_bytes),
            random,
            written: Vec::new(),
            acknowledged: 0,
            now: 1_000,
        }
    }

    #[expect(clippy::panic_in_result_fn, reason = "errors are the disk's, panics are failures")]
    /// Opens the log, compares it with the list, and writes until something fails.
    fn live(&mut self) -> Result<(), LogError> {
        self.settings.seed = self.random.next();
        let (recovered, mut tail) = open(&self.disk, self.settings)?;
        self.compare(recovered.as_ref());
        for _ in 0..self.random.below(40) {
            // The clock steps back now and then.
            self.now = (self.now + self.random.next() % 50).saturating_sub(self.random.next() % 40);
            match self.random.below(10) {
                0..7 => {
                    let body = self.random.body(tail.body_bytes_max());
                    let time = self.time();
                    // What may reach the disk may come back, even if the call fails.
                    let sequence = self.written.len() as u64 + 1;
                    self.written.push((sequence, time, body.clone()));
                    assert_eq!(tail.push(Kind::Entries, &body, self.now)?, sequence);
                    if self.random.below(3) > 0 {
                        tail.write()?;
                    }
                    self.acknowledged = self.acknowledged.max(self.known(tail.watermark()));
                }
                7 | 8 => {
                    tail.flush()?;
                    self.acknowledged = self.known(tail.watermark());
                }
                _ => tail.write()?,
            }
        }
        match self.random.below(3) {
            0 => {
                // A clean stop.
                tail.flush()?;
                self.acknowledged = self.known(tail.watermark());
                self.written.push((self.written.len() as u64 + 1, self.time(), Vec::new()));
                tail.push(Kind::Mark, &[], self.now)?;
                tail.flush()?;
                self.acknowledged = self.known(tail.watermark());
                Ok(())
            }
            1 => tail.write(),
            _ => Ok(()),
        }
    }

    /// Lives on, and fails at most as the disk does.
    fn may_fail(&mut self, what: &str) {
        let before = self.disk.operations();
        let lived = self.live();
        assert!(
            lived.is_ok() || self.disk.operations() > before,
            "{what}: {lived:?} without an operation"
        );
        if let Err(LogError::Damaged(damage)) = lived {
            panic!("{what}: {damage}");
        }
    }

    /// What the next record says.
    fn time(&self) -> u64 {
        self.now.max(self.written.last().map_or(0, |record| record.1))
    }

    fn known(&self, sequence: u64) -> usize {
        usize::try_from(sequence).map_or(0, |sequence| sequence.min(self.written.len()))
    }

    fn compare(&mut self, recovered: Option<&Recovered>) {
        let found = records(recovered);
        assert!(found.len() >= self.acknowledged, "{} of {}", found.len(), self.acknowledged);
        assert_eq!(found[..], self.written[..found.len()], "a prefix of what was written");
        // It was shown, so it must stay.
        self.acknowledged = found.len();
        self.written = found;
    }
}

/// Lives that end at every operation, one after the other, in kills; then a power cut that keeps
/// nothing but what was flushed.
#[test]
fn b1_kills_at_every_operation_and_a_power_cut_that_keeps_nothing() {
    let error = Fault::Error(std::io::ErrorKind::Other);
    for (first, second) in (0..40).flat_map(|first| (0..40).map(move |second| (first, second))) {
        for faults in [[Fault::Crash, Fault::Crash], [Fault::Crash, error], [error, error]] {
            let mut run = Run::new(40 * first as u64 + second as u64);
            for (at, fault) in [first, second].into_iter().zip(faults) {
                run.disk.fail_at(at, fault);
                run.may_fail(&format!("{fault:?} at {first} and {second}"));
                run.disk = run.disk.after_kill();
            }
            run.disk = run.disk.after_bare_power_cut();
            run.live().expect("nothing fails any more");
        }
    }
}

/// Lives that end in a kill, a power cut, an error, or a clean stop.
fn lives(seed: u64) {
    let mut run = Run::new(seed);
    for _ in 0..run.random.below(6) + 2 {
        let fault = [Fault::Crash, Fault::Crash, Fault::Error(std::io::ErrorKind::Other)];
        let fault = fault[run.random.below(3)];
        run.disk.fail_at(run.random.below(60), fault);
        run.may_fail(&format!("seed {seed}"));
        let random = &mut run.random;
        run.disk = match random.below(4) {
            0 => run.disk.after_kill(),
            _ => run.disk.after_power_cut(&mut |bound| random.below(bound)),
        };
    }
    run.live().expect("nothing fails any more");
}

#[test]
fn b1_b2_a_prefix_with_all_that_was_acknowledged_comes_back() {
    for seed in 0..crashes() {
        let result = std::panic::catch_unwind(|| lives(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// How many seeds to try; more by `WAYSTAGE_CRASHES`.
pub(super) fn crashes() -> u64 {
    let wish = std::env::var("WAYSTAGE_CRASHES").ok();
    wish.and_then(|wish| wish.parse().ok()).unwrap_or(2_000)
}
