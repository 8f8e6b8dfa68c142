//! Properties of the public types: thread safety, `Debug`, sizes of errors, trait objects.

use std::error::Error;
use std::fmt::Debug;

use waystage::clock::{Clock, ManualClock, SystemClock};
use waystage::metrics::{Quantiles, WorkerSnapshot};
use waystage::{
    Batch, BatchError, Bus, BusError, BusSettings, Cause, Completion, Conservation, Context,
    DeadLetter, DeadLetterInfo, EmitError, EmitRefused, Envelope, EnvelopeId, Failure, Handle,
    Handler, Idle, Leftover, Level, Lifecycle, OnFull, Pin, Pool, PoolError, PoolSettings,
    PublishError, PublishFuture, Publisher, Redrive, Redriven, Refused, Retry, Route, SettingError,
    Settled, ShutdownReport, Slip, SlipError, Snapshot, StageSettings, StageSnapshot, WaitError,
};

use crate::support::{room_for, run, to, virtual_time};

/// A payload that may be sent and not shared.
type SendOnly = std::cell::Cell<u64>;

fn shared<T: Send + Sync + Debug>() {}
fn sent<T: Send + Debug>() {}
fn an_error<T: Error + Send + Sync + 'static>() {}

#[test]
fn what_threads_share_is_send_and_sync_for_any_payload_that_is_send() {
    shared::<Bus<SendOnly>>();
    shared::<Handle<SendOnly>>();
    shared::<Handler<SendOnly>>();
    shared::<Completion<SendOnly>>();
    shared::<Pool>();
    shared::<ManualClock>();
    shared::<SystemClock>();
    shared::<Box<dyn Clock>>();
    sent::<Publisher<SendOnly>>();
    sent::<PublishFuture<SendOnly>>();
    sent::<Envelope<SendOnly>>();
    sent::<DeadLetter<SendOnly>>();
    sent::<PublishError<SendOnly>>();
    sent::<BatchError<SendOnly>>();
}

#[test]
fn plain_data_is_send_and_sync() {
    shared::<(BusSettings, PoolSettings, StageSettings, Idle, Pin, OnFull, Level, Retry)>();
    shared::<(Route, Slip, EnvelopeId, Cause, Settled, Failure, Refused, Lifecycle)>();
    shared::<(Conservation, Snapshot, StageSnapshot, WorkerSnapshot, Quantiles)>();
    shared::<(DeadLetterInfo, Redrive, Redriven, Leftover, ShutdownReport)>();
}

#[test]
fn errors_are_errors_and_travel() {
    an_error::<BusError>();
    an_error::<PoolError>();
    an_error::<SettingError>();
    an_error::<SlipError>();
    an_error::<EmitError<u64>>();
    an_error::<EmitRefused>();
    an_error::<WaitError>();
    an_error::<Refused>();
    an_error::<Cause>();
    an_error::<PublishError<u64>>();
    an_error::<BatchError<u64>>();
    assert!(size_of::<PublishError<[u64; 64]>>() <= 48, "a refused envelope is boxed");
}

#[test]
fn a_refused_publish_travels_with_any_other_error() {
    fn publish(bus: &Bus<u64>) -> Result<usize, Box<dyn Error + Send + Sync>> {
        bus.publish(to(bus, 1, &["a"]).on_settled(|_, _| ()))?;
        Ok(bus.publish_batch(&mut std::iter::once(to(bus, 2, &["a"])))?)
    }
    let (bus, _clock) = virtual_time::<u64>();
    let words = publish(&bus).unwrap_err().to_string();
    assert_eq!(words, "publish to `a` refused: no open stage of that name");
}

#[test]
fn what_a_handler_sees_is_debug() {
    fn debug<T: Debug>(value: &T) -> String {
        format!("{value:?}")
    }
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |context: &mut Context<'_, u64>| {
        assert!(debug(context).starts_with("Context { stage: \"a\""));
        Ok(())
    })
    .unwrap();
    bus.add_batch_stage("b", room_for(8), |batch: &mut Batch<'_, u64>| {
        assert_eq!(debug(batch), "Batch { len: 1, .. }");
        assert!(!batch.is_empty());
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a", "b"])).unwrap();
    run(&bus);
    assert_eq!(bus.conservation().completed, 1, "{:?}", bus.dead_letters());
    assert!(debug(&bus.snapshot()).contains("\"a\""));
}

#[test]
fn a_bus_may_share_its_pool_and_outlive_its_handles() {
    let pool = std::sync::Arc::new(
        Pool::start(PoolSettings { workers: 2, ..Default::default() }).unwrap(),
    );
    let numbers: Bus<u64> = Bus::on_pool(&pool, BusSettings::default()).unwrap();
    let words: Bus<String> = Bus::on_pool(&pool, BusSettings::default()).unwrap();
    numbers.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    words.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    let handle = numbers.handle();
    handle.publish(to(&numbers, 1, &["a"])).unwrap();
    words.publish(to(&words, "one".to_owned(), &["a"])).unwrap();
    assert_eq!(crate::support::drained(&numbers).completed, 1);
    drop(numbers);
    assert_eq!(handle.lifecycle(), Lifecycle::Stopped);
    words.publish(to(&words, "two".to_owned(), &["a"])).unwrap();
    assert_eq!(crate::support::drained(&words).completed, 2, "the other bus goes on");
}

#[test]
fn a_publisher_runs_an_idle_stage_itself() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    bus.add_stage("b", room_for(8), |_| Ok(())).unwrap();
    bus.publish_inline(to(&bus, 1, &["a", "b"])).unwrap();
    assert_eq!(bus.conservation().completed, 1, "without a turn");
    bus.publish(to(&bus, 2, &["a"])).unwrap();
    bus.publish_inline(to(&bus, 3, &["a"])).unwrap();
    assert_eq!(bus.conservation().in_flight, 2, "not idle: it waits behind the other");
    run(&bus);
    assert_eq!(crate::support::drained(&bus).completed, 3);
}
