//! The shapes on waystage. Producer on core 0, workers from core 1 on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use waystage::{Bus, BusSettings, Envelope, OnFull, Pin, Slip, StageSettings};

use crate::message::{Check, Message};
use waystage_peers::gate::{free, pin};

const BATCH: u64 = 32;

fn bus(cores: Vec<usize>) -> Bus<Message> {
    free();
    let settings =
        BusSettings { workers: cores.len(), pin: Pin::Cores(cores), ..BusSettings::default() };
    let bus = Bus::start(settings).expect("the settings are valid");
    pin(0);
    bus
}

fn settings() -> StageSettings {
    StageSettings { on_full: OnFull::Block(Duration::from_secs(60)), ..StageSettings::default() }
}

/// Adds a last stage that checks order and payload.
fn add_check(bus: &Bus<Message>, name: &str) -> Arc<AtomicU64> {
    let seen = Arc::new(AtomicU64::new(0));
    let check = Mutex::new(Check::default());
    let shared = Arc::clone(&seen);
    let counting = move |context: &mut waystage::Context<'_, Message>| {
        let mut check = check.lock().expect("a failed check ends the run");
        check.take(context.payload());
        shared.store(check.count(), Ordering::Relaxed);
        Ok(())
    };
    bus.add_stage(name, settings(), counting).expect("the name is free");
    seen
}

fn wait_for(seen: &AtomicU64, count: u64) {
    while seen.load(Ordering::Relaxed) < count {
        std::thread::yield_now();
    }
}

fn send(bus: &Bus<Message>, slip: &Slip, messages: u64, batch: u64) {
    let mut publisher = bus.publisher();
    if batch == 1 {
        for number in 0..messages {
            let envelope = Envelope::new(Message::new(0, number), slip.clone());
            publisher.publish(envelope).expect("there is room within a minute");
        }
        return;
    }
    for first in (0..messages).step_by(batch as usize) {
        let numbers = first..(first + batch).min(messages);
        let envelope = |number| Envelope::new(Message::new(0, number), slip.clone());
        publisher.publish_batch(&mut numbers.map(envelope)).expect("there is room within a minute");
    }
}

fn one_stage(messages: u64, batch: u64) -> Duration {
    let bus = bus(vec![1]);
    let seen = add_check(&bus, "check");
    let slip = bus.slip(["check"]).expect("a short slip");
    let begin = Instant::now();
    send(&bus, &slip, messages, batch);
    wait_for(&seen, messages);
    begin.elapsed()
}

/// One producer, one stage.
pub fn hop(messages: u64) -> Duration {
    one_stage(messages, 1)
}

/// The same in batches.
pub fn hop_batch(messages: u64) -> Duration {
    one_stage(messages, BATCH)
}

fn three_stages(messages: u64, batch: u64) -> Duration {
    let bus = bus(vec![1, 0]);
    for name in ["a", "b"] {
        bus.add_stage(name, settings(), |context| {
            context.payload_mut().body[1] += 1;
            Ok(())
        })
        .expect("the name is free");
    }
    let seen = add_check(&bus, "c");
    let slip = bus.slip(["a", "b", "c"]).expect("a short slip");
    let begin = Instant::now();
    send(&bus, &slip, messages, batch);
    wait_for(&seen, messages);
    begin.elapsed()
}

/// A slip over three stages, two workers; the producer shares core 0 with one of them.
pub fn pipeline(messages: u64) -> Duration {
    three_stages(messages, 1)
}

/// The same in batches.
pub fn pipeline_batch(messages: u64) -> Duration {
    three_stages(messages, BATCH)
}

/// One stage that emits each message to three others.
pub fn fan(messages: u64) -> Duration {
    let bus = bus(vec![1, 0]);
    let seen: Vec<_> = ["x", "y", "z"].map(|name| add_check(&bus, name)).into();
    let slips = ["x", "y", "z"].map(|name| bus.slip([name]).expect("a short slip"));
    bus.add_stage("fan", settings(), move |context| {
        for slip in &slips {
            context.emit(*context.payload(), slip.clone())?;
        }
        Ok(())
    })
    .expect("the name is free");
    let slip = bus.slip(["fan"]).expect("a short slip");
    let begin = Instant::now();
    send(&bus, &slip, messages, 1);
    for seen in seen {
        wait_for(&seen, messages);
    }
    begin.elapsed()
}
