//! Lives of a durable bus on the simulated disk that end at any operation, by a power cut or a
//! kill: nothing that was acknowledged is lost, nothing is told twice, and the books hold.
//!
//! `WAYSTAGE_CRASHES` says how many lives; each has its seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::random::Random;
use crate::bus::journal::Journal;
use crate::bus::{Bus, BusSettings, DurableSettings, Missing, Refused};
use crate::clock::ManualClock;
use crate::envelope::{Envelope, EnvelopeId, Settled};
use crate::log::letters::{LetterFilter, Redrive};
use crate::log::simulated::{Fault, SimulatedDisk};
use crate::log::{Log, LogError, LogSettings, Receipt, SinkFile, SinkSettings, Sync};
use crate::stage::handler::Failure;
use crate::stage::settings::{Level, Retry, StageSettings};
use crate::sync::{Mutex, lock};
use crate::worker::{Pool, PoolSettings};

/// Lives by default.
const LIVES: u64 = 1_000;

/// What everybody was told, over all lives of one log.
#[derive(Default)]
pub(super) struct Told {
    /// Those whose receipt said that they are safe, and their numbers.
    accepted: BTreeMap<EnvelopeId, u64>,
    /// What came to the last stage.
    reached: BTreeSet<u64>,
    /// What became of envelopes, as their callbacks were told.
    pub(super) ends: BTreeMap<EnvelopeId, Vec<Settled>>,
    /// Dead letters that somebody wanted at another stage, whether they came there or not.
    elsewhere: BTreeSet<EnvelopeId>,
    /// Dead letters that came in again.
    redriven: u64,
}

pub(super) struct Life {
    pub(super) bus: Bus<String>,
    /// Its pool, to turn without flushing.
    pub(super) pool: Arc<Pool>,
    sink: Arc<SinkFile>,
}

fn settings(sync: Sync, seed: u64) -> DurableSettings {
    DurableSettings {
        log: LogSettings { sync, segment_bytes: 8_192, seed: Some(seed), ..LogSettings::default() },
        remembered_ids: 10_000,
        sinks: ["out", "even"].map(|name| SinkSettings::new(name, name)).into(),
        ..DurableSettings::in_directory("simulated")
    }
}

/// Opens the log on this disk, and a bus over it: `a`, then `b`, then `c`, of which the first is
/// durable, and `d` for dead letters that go on elsewhere. `None` when the disk fails meanwhile.
pub(super) fn open(
    disk: &SimulatedDisk,
    (sync, level): (Sync, Level),
    seed: u64,
    random: &Random,
    told: &Arc<Mutex<Told>>,
) -> Option<Life> {
    let durable = settings(sync, seed);
    let clock = Arc::new(ManualClock::new());
    let sinks = sinks(disk, &durable);
    let (sink, even) = (Arc::clone(&sinks[0]), Arc::clone(&sinks[1]));
    let opened = Log::on(Arc::new(disk.clone()), &durable.log, clock.clone(), Some(&sinks));
    let (log, recovered) = opened.inspect_err(unless_crashed).ok()?;
    let journal = Journal::on(log, recovered, sinks, &durable);
    let journal = journal.inspect_err(unless_crashed).ok()?;
    let nobody = PoolSettings { workers: 0, ..PoolSettings::default() };
    let pool = Arc::new(Pool::start_with_clock(nobody, clock).expect("no thread is needed"));
    let bus_settings = BusSettings { workers: 0, seed: Some(seed), ..BusSettings::default() };
    // Millions of buses, one at a time, can share a number.
    let bus = Bus::with_journal(&pool, u16::MAX, bus_settings, journal);
    let batch = random.between(1, 4);
    let capacity = random.between(1, 4);
    for (name, level) in [("a", level), ("b", Level::AtMostOnce), ("c", level), ("d", level)] {
        let settings = StageSettings {
            level,
            batch,
            capacity,
            attempts: 3,
            retry: Retry::InPlace,
            saves: if name == "c" { 64 } else { 0 },
            ..StageSettings::default()
        };
        let route = bus.route("c").expect("a short name");
        let told = Arc::clone(told);
        let (sink, even) = (Arc::clone(&sink), Arc::clone(&even));
        let handle = move |context: &mut crate::stage::context::Context<'_, String>| {
            let number: u64 = context.payload().parse().map_err(Failure::from)?;
            let here = context.stage().to_owned();
            let is_here = |at: &str| here == at;
            if is_here("b") && number.is_multiple_of(7) {
                return Err(Failure::new("it never goes on"));
            }
            if is_here("b") && number.is_multiple_of(5) && context.attempts() < 2 {
                return Err(Failure::new("not yet"));
            }
            if is_here("c") {
                lock(&told).reached.insert(number);
                // Now and then more than a sector.
                let rest = if number.is_multiple_of(11) { "x".repeat(700) } else { String::new() };
                let line = format!("{number}{rest}\n");
                context.write(&sink, line.as_bytes())?;
                if number.is_multiple_of(2) {
                    context.write(&even, line.as_bytes())?;
                }
                let before = context.saved("count").map_or(0, |count| read_number(&count));
                context.save("count", &(before + 1_u64).to_le_bytes())?;
                if number.is_multiple_of(13) && context.attempts() == 0 {
                    return Err(Failure::new("what it wrote is not to be seen"));
                }
            }
            if is_here("a") && number.is_multiple_of(3) {
                *context.payload_mut() = format!("{}", number + 1_000);
            }
            if is_here("a") && number.is_multiple_of(4) && number < 1_000 {
                let child = crate::envelope::Slip::via([route]).map_err(Failure::from)?;
                context
                    .emit((number + 100_000).to_string(), child)
                    .map_err(|error| Failure::new(error.to_string()))?;
            }
            Ok(())
        };
        bus.add_stage(name, settings, handle).expect("the settings are in range");
    }
    bus.recover(Missing::Refuse).ok()?;
    Some(Life { bus, pool, sink })
}

/// The files `out` and `even` of this disk.
fn sinks(disk: &SimulatedDisk, durable: &DurableSettings) -> Vec<Arc<SinkFile>> {
    let both = ["out", "even"].into_iter().zip(&durable.sinks).enumerate();
    let sink = |(number, (name, sink)): (usize, (&str, &SinkSettings))| {
        Arc::new(SinkFile::new(sink, number, Box::new(disk.sink(name))))
    };
    both.map(sink).collect()
}

/// Damage is never what a crash leaves.
fn unless_crashed(error: &LogError) {
    assert!(matches!(error, LogError::Storage { .. } | LogError::NoRoom { .. }), "{error}");
}

fn read_number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

impl Life {
    /// Takes some dead letters in again, now and then one at another stage, from where it goes on.
    fn redrive(&self, random: &Random, told: &Arc<Mutex<Told>>) {
        let letters = self.bus.dead_letters();
        let one = (!letters.is_empty()).then(|| letters[random.below(letters.len())].id);
        let mut plan = Redrive { limit: random.between(1, 5), ..Redrive::default() };
        plan.dry_run = random.one_in(5);
        if let (Some(id), true) = (one, random.one_in(3)) {
            lock(told).elsewhere.insert(id);
            plan.filter = LetterFilter { ids: vec![id], ..LetterFilter::default() };
            plan.to = Some("d".to_owned());
        }
        let before = self.bus.conservation().redriven;
        let outcome = self.bus.redrive(&plan).expect("the stage is open");
        let redriven = self.bus.conservation().redriven - before;
        let want = if plan.dry_run { 0 } else { outcome.redriven as u64 };
        assert_eq!(redriven, want, "{outcome:?}");
        lock(told).redriven += redriven;
    }

    /// Publishes number `number`, under an id that does not change from life to life.
    pub(super) fn publish(
        &self,
        number: u64,
        told: &Arc<Mutex<Told>>,
    ) -> Option<(EnvelopeId, Receipt)> {
        let slip = self.bus.slip(["a", "b", "c"]).expect("short names");
        let told = Arc::clone(told);
        let envelope = Envelope::new(number.to_string(), slip).with_key(number.to_le_bytes());
        let id = envelope.id();
        let envelope = envelope.on_settled(move |end, _| {
            if end != Settled::Undelivered {
                lock(&told).ends.entry(id).or_default().push(end);
            }
        });
        match self.bus.publish_durable(envelope) {
            Ok(receipt) => Some((id, receipt)),
            Err(refused) => {
                let expected = [
                    Refused::Full,
                    Refused::InFlight,
                    Refused::Duplicate,
                    Refused::LogFailed,
                    Refused::LogFull,
                ];
                assert!(expected.contains(&refused.reason), "{refused}");
                None
            }
        }
    }
}

/// Some lives of one log, the last of which is not disturbed.
fn lives(seed: u64) -> (u64, u64) {
    let random = Random::new(seed);
    let sync = random.pick(&[Sync::Each, Sync::Each, Sync::Within(Duration::ZERO), Sync::Os]);
    let level = random.pick(&[Level::ExactlyOnce, Level::AtLeastOnce]);
    let promise = (sync, level);
    let told = Arc::new(Mutex::new(Told::default()));
    let mut disk = SimulatedDisk::default();
    let mut next = 0;
    for life in 0..random.between(1, 4) as u64 {
        let end = disk.operations() + random.between(1, 120);
        // Now and then the disk only refuses once, and the life goes on to its own end.
        let refuses = random.one_in(4);
        let full = Fault::Error(std::io::ErrorKind::StorageFull);
        disk.fail_at(end, if refuses { full } else { Fault::Crash });
        let by_kill = sync == Sync::Os || random.one_in(3);
        if let Some(alive) = open(&disk, promise, seed ^ (life + 1) << 32, &random, &told) {
            live(&alive, &random, &mut next, &told);
        }
        disk = if by_kill {
            disk.after_kill()
        } else {
            disk.after_power_cut(&mut |bound| random.below(bound))
        };
        if !by_kill && sync != Sync::Each {
            // What was acknowledged lately may be lost, and come back; what is there still agrees.
            *lock(&told) = Told::default();
        }
    }
    let last = open(&disk, promise, seed ^ 99 << 32, &random, &told).expect("the disk is whole");
    let taken_up = last.bus.conservation().recovered;
    finish(&last, &disk, level, &told, seed);
    let redriven = lock(&told).redriven;
    (taken_up, redriven)
}

/// Publishes, turns, and now and then looks at receipts, until the disk fails or for a while.
fn live(life: &Life, random: &Random, next: &mut u64, told: &Arc<Mutex<Told>>) {
    let mut receipts = Vec::new();
    for _ in 0..random.between(10, 60) {
        match random.below(10) {
            0..=3 => {
                if let Some((id, receipt)) = life.publish(*next, told) {
                    receipts.push((id, *next, receipt));
                }
                *next += 1;
            }
            4 => {
                let again = random.next() % (*next).max(1);
                if let Some((id, receipt)) = life.publish(again, told) {
                    receipts.push((id, again, receipt));
                }
            }
            5 => drop(life.bus.core.journal.as_ref().map(|journal| {
                drop(journal.copy_stragglers());
                journal.write_checkpoint()
            })),
            6 | 7 => life.redrive(random, told),
            8 => drop(receipts.last().map(|(_, _, receipt)| receipt.wait())),
            _ => drop(life.bus.turn()),
        }
        for (id, number, receipt) in &receipts {
            if receipt.is_acknowledged().is_ok_and(|it| it) {
                lock(told).accepted.insert(*id, *number);
            }
        }
    }
}

/// Runs to the end, and checks what was promised.
pub(super) fn finish(
    life: &Life,
    disk: &SimulatedDisk,
    level: Level,
    told: &Arc<Mutex<Told>>,
    seed: u64,
) {
    for _ in 0..10_000 {
        life.bus.turn();
    }
    let journal = life.bus.core.journal.as_ref().expect("it has one");
    journal.with_state(|state| {
        assert_eq!(state.open_len(), 0, "seed {seed}: nothing waits for ever");
        assert!(state.holds(), "seed {seed}: {:?}", state.counts());
        let told = lock(told);
        let dead: Vec<EnvelopeId> = state.letters().map(|(_, letter)| letter.id).collect();
        for (id, &number) in &told.accepted {
            let number_at_b = if number.is_multiple_of(3) { number + 1_000 } else { number };
            let is_fatal = number_at_b.is_multiple_of(7);
            if told.elsewhere.contains(id) {
                continue;
            }
            assert_eq!(dead.contains(id), is_fatal, "seed {seed}: {number}");
            let came = told.reached.contains(&number_at_b);
            assert_ne!(came, is_fatal, "seed {seed}: {number} was lost");
            let child_came = told.reached.contains(&(number + 100_000));
            assert_eq!(child_came, number.is_multiple_of(4), "seed {seed}: the child of {number}");
            if level == Level::ExactlyOnce && !is_fatal {
                assert!(state.settled().contains(*id), "seed {seed}: {number} is forgotten");
            }
        }
        let text = disk.sink_text("out");
        let lines: Vec<&str> = text.lines().map(|line| line.trim_end_matches('x')).collect();
        let completed = usize::try_from(state.counts().completed).expect("a small number");
        assert_eq!(lines.len(), completed, "seed {seed}: a line is lost or doubled");
        let is_even =
            |line: &&str| line.parse::<u64>().is_ok_and(|number| number.is_multiple_of(2));
        let even: Vec<&str> = lines.iter().copied().filter(is_even).collect();
        let other = disk.sink_text("even");
        let other: Vec<&str> = other.lines().map(|line| line.trim_end_matches('x')).collect();
        assert_eq!(other, even, "seed {seed}: two outputs of one attempt differ");
        assert_eq!(life.sink.length(), text.len() as u64, "seed {seed}");
        let saved = state.state("c\ncount").map_or(0, read_number);
        assert_eq!(saved, completed as u64, "seed {seed}: what was saved");
        if level == Level::ExactlyOnce {
            let once: BTreeSet<&str> = lines.iter().copied().collect();
            assert_eq!(once.len(), lines.len(), "seed {seed}: a line is doubled");
            let completed = state.counts().completed;
            assert_eq!(completed, state.settled().len() as u64, "seed {seed}: ended twice");
            // One that died may be published again, and die again.
            let is_dead = |end: &Settled| matches!(end, Settled::Dead(_));
            let is_once = |ends: &Vec<Settled>| ends.len() == 1 || ends.iter().all(is_dead);
            assert!(told.ends.values().all(is_once), "seed {seed}: told twice");
        }
    });
    assert!(life.bus.conservation().holds(), "seed {seed}: {:?}", life.bus.conservation());
    assert_eq!(life.bus.conservation().in_flight, 0, "seed {seed}");
}

#[test]
fn what_was_acknowledged_survives() {
    let lives_count = std::env::var("WAYSTAGE_CRASHES").ok();
    let count = lives_count.map_or(LIVES, |count| count.parse().expect("a number"));
    let mut sums = (0, 0);
    for seed in 0..count {
        let (taken_up, redriven) = lives(seed);
        sums = (sums.0 + taken_up, sums.1 + redriven);
    }
    let (taken_up, redriven) = sums;
    assert!(taken_up > count, "hardly anything was left to take up: {taken_up} in {count} lives");
    assert!(redriven > count / 20, "hardly any letter came in again: {redriven} in {count} lives");
}

/// Whoever waits for nothing asks at the end, and hears of the last flush, too.
#[test]
fn a_bus_names_what_its_log_failed_of() {
    let random = Random::new(1);
    let promise = (Sync::Within(Duration::from_secs(1)), Level::ExactlyOnce);
    let mut ahead = 0;
    loop {
        let (disk, told) = (SimulatedDisk::default(), Arc::default());
        let life = open(&disk, promise, 1, &random, &told).expect("the disk is whole");
        let _unread = life.publish(1, &told).expect("there is room");
        for _ in 0..100 {
            life.bus.turn();
        }
        assert!(life.bus.log_failure().is_none());
        let before = disk.operations();
        disk.fail_at(before + ahead, Fault::Error(std::io::ErrorKind::Other));
        life.bus.shutdown(Duration::ZERO);
        let failure = life.bus.log_failure();
        if disk.operations() <= before + ahead {
            assert!(failure.is_none(), "nothing failed, and yet: {failure:?}");
            break;
        }
        let Some(LogError::Poisoned { cause, .. }) = failure else {
            panic!("operation {ahead} of the end failed, and nobody is told: {failure:?}");
        };
        assert!(cause.starts_with("cannot "), "{cause}");
        ahead += 1;
    }
    assert!(ahead >= 3, "only {ahead} operations");
}
