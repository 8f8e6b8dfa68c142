//! Dead letters that the log has: listed, purged and taken in again by a running bus.

use std::time::Duration;

use waystage::{
    Bus, BusSettings, DurableSettings, Envelope, Failure, LetterFilter, Level, Missing, Redrive,
    Settled, StageSettings,
};

const LIMIT: Duration = Duration::from_secs(20);

fn durable(level: Level) -> StageSettings {
    StageSettings { level, ..StageSettings::default() }
}

/// A bus whose stage `pay` refuses what is not `good`, and whose `other` takes everything.
fn paying(directory: &tempfile::TempDir) -> Bus<String> {
    let settings = BusSettings { workers: 2, ..BusSettings::default() };
    let durable_settings = DurableSettings::in_directory(directory.path());
    let bus: Bus<String> =
        Bus::start_durable(settings, &durable_settings).expect("the directory is free");
    bus.add_stage("pay", durable(Level::ExactlyOnce), |context| {
        if context.payload() == "good" { Ok(()) } else { Err(Failure::new("no money")) }
    })
    .expect("the name is free");
    bus.add_stage("other", durable(Level::AtLeastOnce), |_| Ok(())).expect("the name is free");
    bus.recover(Missing::Refuse).expect("all stages are open");
    bus
}

fn order(bus: &Bus<String>, what: &str, key: &str) -> Envelope<String> {
    Envelope::new(what.to_owned(), bus.slip(["pay"]).expect("a short name")).with_key(key)
}

fn all() -> Redrive {
    Redrive::default()
}

/// A letter of the log is listed, and comes in again, in this life or a later one; it keeps its id
/// and its count, and the loop guard holds over lives.
#[test]
fn letters_of_the_log_come_in_again() {
    let directory = tempfile::tempdir().unwrap();
    for life in 0..4 {
        let bus = paying(&directory);
        if life == 0 {
            bus.publish_tracked(order(&bus, "bad", "17")).unwrap().wait(LIMIT).unwrap();
        } else {
            let dry = bus.redrive(&Redrive { dry_run: true, ..all() }).unwrap();
            assert_eq!((dry.redriven, bus.conservation().redriven), (1, 0), "life {life}");
            assert_eq!(bus.redrive(&all()).unwrap().redriven, 1, "life {life}");
        }
        let report = bus.shutdown(LIMIT);
        assert!(report.drained && report.conservation.holds(), "{report:?}");
        assert_eq!(report.conservation.dead, 1);
    }
    let bus = paying(&directory);
    let letters = bus.dead_letters();
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert!(letter.is_in_log);
    assert_eq!((&*letter.stage, letter.redrives, &*letter.trail), ("pay", 3, &["pay".into()][..]));
    assert_eq!((letter.cause.name(), bus.snapshot().dead_letters), ("handler_failed", 1));
    let outcome = bus.redrive(&all()).unwrap();
    assert_eq!((outcome.redriven, outcome.guarded), (0, 1), "three times are enough");
    let plan = Redrive { to: Some("other".into()), redrives_max: 4, ..all() };
    assert_eq!(bus.redrive(&plan).unwrap().redriven, 1);
    let report = bus.shutdown(LIMIT);
    assert_eq!((report.conservation.redriven, report.conservation.completed), (1, 1));
    assert!(report.drained && report.conservation.holds(), "{report:?}");
    assert_eq!(paying(&directory).dead_letters(), []);
}

/// A re-drive claims its id: on its way, it stays; completed, it goes and is counted.
#[test]
fn a_redrive_claims_its_id_like_a_publish() {
    let directory = tempfile::tempdir().unwrap();
    let bus = paying(&directory);
    bus.publish_tracked(order(&bus, "bad", "17")).unwrap().wait(LIMIT).unwrap();
    bus.pause_stage("other").unwrap();
    let slip = bus.slip(["pay", "other"]).unwrap();
    let again = Envelope::new("good".to_owned(), slip).with_key("17");
    let mut again = bus.publish_tracked(again).unwrap();
    let outcome = bus.redrive(&all()).unwrap();
    assert_eq!((outcome.redriven, outcome.refused), (0, 1), "its id is on its way");
    assert_eq!(bus.dead_letters().len(), 1);
    bus.resume_stage("other").unwrap();
    assert_eq!(again.wait(LIMIT).unwrap().0, Settled::Completed);
    let outcome = bus.redrive(&all()).unwrap();
    assert_eq!((outcome.redriven, outcome.duplicates), (0, 1));
    let report = bus.shutdown(LIMIT);
    assert!(report.drained && report.conservation.holds(), "{report:?}");
    assert_eq!((report.conservation.redriven, report.conservation.completed), (0, 1));
    assert_eq!(paying(&directory).dead_letters(), []);
}

/// One call for letters in memory and in the log: listed, filtered, purged, re-driven.
#[test]
fn letters_of_memory_and_log_are_treated_alike() {
    let directory = tempfile::tempdir().unwrap();
    let bus = paying(&directory);
    bus.add_stage("memory", StageSettings::default(), |_| Err(Failure::new("no room"))).unwrap();
    for key in ["1", "2"] {
        bus.publish_tracked(order(&bus, "bad", key)).unwrap().wait(LIMIT).unwrap();
        let slip = bus.slip(["memory"]).unwrap();
        let plain = Envelope::new(key.to_owned(), slip);
        bus.publish_tracked(plain).unwrap().wait(LIMIT).unwrap();
    }
    let letters = bus.dead_letters();
    assert_eq!(letters.iter().filter(|letter| letter.is_in_log).count(), 2);
    assert_eq!((letters.len(), bus.snapshot().dead_letters), (4, 4));
    let room = LetterFilter { error: Some("room".into()), ..LetterFilter::default() };
    let some = Redrive { filter: room.clone(), to: Some("other".into()), limit: 1, ..all() };
    let outcome = bus.redrive(&Redrive { dry_run: true, ..some.clone() }).unwrap();
    assert_eq!((outcome.redriven, bus.dead_letters().len()), (1, 4));
    assert_eq!(bus.redrive(&some).unwrap().redriven, 1);
    assert_eq!(bus.purge_dead_letters(&room).unwrap(), 1);
    let ids = vec![letters.iter().find(|letter| letter.is_in_log).unwrap().id];
    let named = LetterFilter { ids, ..LetterFilter::default() };
    assert_eq!(bus.purge_dead_letters(&named).unwrap(), 1);
    let left = bus.dead_letters();
    assert!(left.len() == 1 && left[0].is_in_log, "{left:?}");
    let report = bus.shutdown(LIMIT);
    assert!(report.drained && report.conservation.holds(), "{report:?}");
    let books = report.conservation;
    assert_eq!((books.accepted, books.redriven, books.dead, books.completed), (4, 1, 4, 1));
    let bus = paying(&directory);
    assert_eq!(bus.dead_letters(), left);
    assert_eq!(bus.purge_dead_letters(&LetterFilter::default()).unwrap(), 1);
}
