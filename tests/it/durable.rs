//! A bus with a log: what it promises across ends of the process, on a real directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use waystage::envelope::{Payload, PayloadError};
use waystage::log::LogError;
use waystage::{
    Bus, BusError, BusSettings, Cause, DurableSettings, Envelope, Failure, Level, Missing, OnFull,
    Refused, Settled, StageSettings,
};

const LIMIT: Duration = Duration::from_secs(20);

fn durable(level: Level) -> StageSettings {
    StageSettings { level, ..StageSettings::default() }
}

fn start<P: Payload + Send + 'static>(directory: &tempfile::TempDir) -> Bus<P> {
    let settings = BusSettings { workers: 2, ..BusSettings::default() };
    Bus::start_durable(settings, &DurableSettings::in_directory(directory.path()))
        .expect("the directory is free")
}

/// A bus whose stages do nothing by themselves.
fn idle<P: Payload + Send + 'static>(directory: &tempfile::TempDir) -> Bus<P> {
    let settings = BusSettings { workers: 0, ..BusSettings::default() };
    Bus::start_durable(settings, &DurableSettings::in_directory(directory.path()))
        .expect("the directory is free")
}

/// Envelopes of a bus that ends before it handled them are handled by the next one, in order.
#[test]
fn what_is_left_is_taken_up_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let bus: Bus<String> = idle(&directory);
    bus.add_stage("a", durable(Level::AtLeastOnce), |_| Ok(())).unwrap();
    for number in 0..500 {
        let slip = bus.slip(["a"]).unwrap();
        drop(bus.publish_durable(Envelope::new(number.to_string(), slip)).unwrap());
    }
    let report = bus.shutdown(Duration::ZERO);
    assert_eq!(report.conservation.undelivered, 500);

    let bus: Bus<String> = start(&directory);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let small = StageSettings { capacity: 8, ..durable(Level::AtLeastOnce) };
    bus.add_stage("a", small, move |context| {
        notes.lock().unwrap().push(context.payload().parse::<u32>().unwrap());
        Ok(())
    })
    .unwrap();
    let slip = bus.slip(["a"]).unwrap();
    let early = bus.publish_durable(Envelope::new("early".to_owned(), slip.clone())).unwrap_err();
    assert_eq!(early.reason, Refused::NotRecovered);
    let recovery = bus.recover(Missing::Refuse).unwrap();
    assert_eq!((recovery.taken_up, recovery.kept, recovery.dead), (500, 0, 0));
    let receipt = bus.publish_durable(Envelope::new("500".to_owned(), slip)).unwrap();
    receipt.wait().unwrap();
    let report = bus.shutdown(LIMIT);
    assert!(report.drained, "{report:?}");
    assert_eq!((report.conservation.recovered, report.conservation.completed), (500, 501));
    assert_eq!(*seen.lock().unwrap(), (0..=500).collect::<Vec<_>>());
}

/// An id is accepted once, in flight and after its end, across the ends of the process.
#[test]
fn an_id_is_accepted_once() {
    let directory = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    for life in 0..3 {
        let bus: Bus<String> = start(&directory);
        let counted = Arc::clone(&calls);
        bus.add_stage("pay", durable(Level::ExactlyOnce), move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        bus.recover(Missing::Refuse).unwrap();
        let order =
            || Envelope::new(String::new(), bus.slip(["pay"]).unwrap()).with_key("order-17");
        for _ in 0..3 {
            match bus.publish_tracked(order()) {
                Ok(mut completion) => {
                    assert_eq!(life, 0);
                    assert_eq!(completion.wait(LIMIT).unwrap().0, Settled::Completed);
                }
                Err(refused) => assert_eq!(refused.reason, Refused::Duplicate),
            }
        }
        assert!(bus.shutdown(LIMIT).drained);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

/// A stage that is in the log and not open is named; its envelopes stay or become dead letters.
#[test]
fn a_stage_that_is_gone_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let bus: Bus<String> = start(&directory);
    let never = StageSettings { attempts: 255, ..durable(Level::AtLeastOnce) };
    bus.add_stage("old", never, |_| Ok(())).unwrap();
    bus.recover(Missing::Refuse).unwrap();
    bus.pause_stage("old").unwrap();
    let slip = bus.slip(["old"]).unwrap();
    let paused = bus.publish_durable(Envelope::new("1".to_owned(), slip.clone())).unwrap_err();
    assert_eq!(paused.reason, Refused::Paused);
    bus.resume_stage("old").unwrap();
    drop(bus);

    let bus: Bus<String> = idle(&directory);
    bus.add_stage("old", durable(Level::AtLeastOnce), |_| Ok(())).unwrap();
    let slip = bus.slip(["old"]).unwrap();
    drop(bus.publish_durable(Envelope::new("1".to_owned(), slip)).unwrap());
    drop(bus);

    let bus: Bus<String> = start(&directory);
    let Err(BusError::MissingStages(names)) = bus.recover(Missing::Refuse) else {
        panic!("the stage is not open");
    };
    assert_eq!(names, ["old"]);
    assert_eq!(bus.recover(Missing::Keep).unwrap().kept, 1);
    drop(bus);

    let bus: Bus<String> = start(&directory);
    let recovery = bus.recover(Missing::DeadLetter).unwrap();
    assert_eq!((recovery.dead, recovery.dead_letters), (1, 1));
    drop(bus);
    let bus: Bus<String> = start(&directory);
    assert_eq!(bus.recover(Missing::Refuse).unwrap().dead_letters, 1);
}

/// Encodes as anything, and decodes only what does not begin with `!`.
struct Picky(String);

impl Payload for Picky {
    const CONTENT_TYPE: &'static str = "text/plain";

    #[expect(clippy::panic_in_result_fn, reason = "payloads may panic")]
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        match self.0.as_str() {
            "panic" => panic!("it has no encoding"),
            "refuse" => Err(PayloadError::encode("it has no encoding")),
            text => {
                out.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
    }

    #[expect(clippy::panic_in_result_fn, reason = "payloads may panic")]
    fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let text = String::decode(bytes)?;
        assert!(!text.starts_with('?'), "it cannot be read");
        if text.starts_with('!') {
            Err(PayloadError::decode("an old form"))
        } else {
            Ok(Self(text))
        }
    }
}

/// What cannot be encoded is refused; what cannot be read any more is a dead letter, and the rest
/// goes on.
#[test]
fn payloads_that_cannot_be_written_or_read() {
    let directory = tempfile::tempdir().unwrap();
    let bus: Bus<Picky> = idle(&directory);
    bus.add_stage("a", durable(Level::AtLeastOnce), |_| Ok(())).unwrap();
    let slip = bus.slip(["a"]).unwrap();
    for text in ["panic", "refuse"] {
        let refused = bus.publish_durable(Envelope::new(Picky(text.into()), slip.clone()));
        let refused = refused.unwrap_err();
        assert_eq!(refused.reason, Refused::NoWireForm);
        assert_eq!(refused.envelope.payload().0, text, "it comes back");
    }
    for text in ["one", "!two", "?three", "four"] {
        drop(bus.publish_durable(Envelope::new(Picky(text.into()), slip.clone())).unwrap());
    }
    drop(bus);
    let bus: Bus<Picky> = start(&directory);
    bus.add_stage("a", durable(Level::AtLeastOnce), |_| Ok(())).unwrap();
    assert_eq!(bus.recover(Missing::Refuse).unwrap().taken_up, 4);
    let report = bus.shutdown(LIMIT);
    assert!(report.drained, "{report:?}");
    assert_eq!((report.conservation.completed, report.conservation.dead), (2, 2));
    assert!(report.conservation.holds());
    let bus: Bus<Picky> = start(&directory);
    assert_eq!(bus.recover(Missing::Refuse).unwrap().dead_letters, 2);
}

/// Settings that cannot be meant, and a directory that somebody else has.
#[test]
fn durable_settings_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let bus: Bus<String> = start(&directory);
    let drops = StageSettings { on_full: OnFull::DropOldest, ..durable(Level::AtLeastOnce) };
    let error = bus.add_stage("a", drops, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("nothing is dropped"), "{error}");
    let settings = DurableSettings::in_directory(directory.path());
    let second = Bus::<String>::start_durable(BusSettings::default(), &settings).unwrap_err();
    assert!(matches!(second, BusError::Log(LogError::Locked(_))), "{second}");
    let memory: Bus<String> = Bus::start(BusSettings::default()).unwrap();
    let error = memory.add_stage("a", durable(Level::AtLeastOnce), |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("start_durable"), "{error}");
    memory.add_stage("b", StageSettings::default(), |_| Ok(())).unwrap();
    let slip = memory.slip(["b"]).unwrap();
    let refused = memory.publish_durable(Envelope::new(String::new(), slip)).unwrap_err();
    assert_eq!(refused.reason, Refused::NotDurable);
}

/// A stage in memory that emits into a durable one; the end is told when it is safe.
#[test]
fn an_emit_into_a_durable_stage_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let bus: Bus<String> = start(&directory);
    let keep = bus.route("keep").unwrap();
    bus.add_stage("memory", StageSettings::default(), move |context| {
        let slip = waystage::Slip::via([keep]).map_err(Failure::from)?;
        context.emit("kept".to_owned(), slip).map_err(|error| Failure::new(error.to_string()))
    })
    .unwrap();
    let fails = StageSettings { attempts: 2, ..durable(Level::AtLeastOnce) };
    bus.add_stage("keep", fails, |_| Err(Failure::new("never"))).unwrap();
    let slip = bus.slip(["memory"]).unwrap();
    bus.publish(Envelope::new(String::new(), slip)).unwrap();
    let slip = bus.slip(["keep"]).unwrap();
    let mut tracked = bus.publish_tracked(Envelope::new("too".to_owned(), slip)).unwrap();
    let (end, _) = tracked.wait(LIMIT).unwrap();
    assert_eq!(end, Settled::Dead(Cause::HandlerFailed("never".to_owned())));
    let report = bus.shutdown(LIMIT);
    assert!(report.drained, "{report:?}");
    assert_eq!((report.conservation.completed, report.conservation.dead), (1, 2));
    let bus: Bus<String> = start(&directory);
    assert_eq!(bus.recover(Missing::Refuse).unwrap().dead_letters, 2);
}

/// What its dead-letter stage has handled did not complete: its id is free, there and after the
/// next opening.
#[test]
fn an_id_that_a_dead_letter_stage_handled_is_free() {
    let directory = tempfile::tempdir().unwrap();
    for life in 0..2 {
        let bus: Bus<String> = start(&directory);
        let pays =
            StageSettings { dead_letter: Some("sorry".into()), ..durable(Level::ExactlyOnce) };
        bus.add_stage("pay", pays, |context| match context.payload().as_str() {
            "good" => Ok(()),
            _ => Err(Failure::new("no money")),
        })
        .unwrap();
        bus.add_stage("sorry", durable(Level::ExactlyOnce), |_| Ok(())).unwrap();
        bus.recover(Missing::Refuse).unwrap();
        let order = |what: &str| {
            let slip = bus.slip(["pay"]).unwrap();
            bus.publish_tracked(Envelope::new(what.to_owned(), slip).with_key("order-17"))
        };
        for _ in 0..2 {
            let (end, _) = order("bad").unwrap().wait(LIMIT).unwrap();
            assert!(matches!(end, Settled::Dead(Cause::HandlerFailed(_))), "{life}: {end:?}");
        }
        if life == 1 {
            assert_eq!(order("good").unwrap().wait(LIMIT).unwrap().0, Settled::Completed);
            assert_eq!(order("good").unwrap_err().reason, Refused::Duplicate);
        }
        let report = bus.shutdown(LIMIT);
        assert!(report.drained && report.conservation.holds(), "{report:?}");
    }
}

/// A dead letter, and an envelope that stays open, move on with the log: the segments where they
/// stood go, and they are what they were.
#[test]
fn stragglers_keep_no_segments() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = DurableSettings::in_directory(directory.path());
    settings.log.segment_bytes = 64 << 10;
    settings.checkpoint_segments = 2;
    let open = || {
        let nobody = BusSettings { workers: 0, ..BusSettings::default() };
        let bus: Bus<String> = Bus::start_durable(nobody, &settings).unwrap();
        bus.add_stage("busy", durable(Level::AtLeastOnce), |context| {
            if context.payload() == "dies" { Err(Failure::permanent("as told")) } else { Ok(()) }
        })
        .unwrap();
        bus.open_stage("waits", durable(Level::AtLeastOnce), None).unwrap();
        bus
    };
    let bus = open();
    let publish = |stage: &str, payload: &str| {
        let envelope = Envelope::new(payload.to_owned(), bus.slip([stage]).unwrap());
        drop(bus.publish_durable(envelope).unwrap());
    };
    bus.set_handler("waits", waystage::Handler::each(|_| Ok(()))).unwrap();
    bus.pause_stage("waits").unwrap();
    bus.resume_stage("waits").unwrap();
    publish("busy", "dies");
    publish("waits", "is open");
    bus.pause_stage("waits").unwrap();
    for _ in 0..200 {
        for _ in 0..50 {
            publish("busy", &"x".repeat(100));
        }
        while bus.turn() > 0 {}
    }
    let segments = std::fs::read_dir(directory.path()).unwrap().count();
    assert!(segments <= 8, "{segments} segments are kept for two envelopes");
    drop(bus);
    let bus = open();
    let letters = bus.dead_letters();
    assert_eq!((letters.len(), letters[0].stage.as_str()), (1, "busy"));
    assert_eq!(bus.recover(Missing::Refuse).unwrap().taken_up, 1);
}
