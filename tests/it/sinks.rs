//! Output files that agree with the log, and state that stages save, on a real directory.

use std::fs;
use std::path::Path;
use std::time::Duration;

use waystage::envelope::payload::Plain;
use waystage::log::{LogError, SinkFault, SinkSettings};
use waystage::{
    Bus, BusError, BusSettings, DurableSettings, Envelope, Failure, LastingError, Level, Missing,
    Settled, StageSettings,
};

const LIMIT: Duration = Duration::from_secs(20);

fn settings(directory: &Path) -> DurableSettings {
    let mut settings = DurableSettings::in_directory(directory.join("log"));
    settings.sinks = vec![SinkSettings::new("out", directory.join("deep/out.txt"))];
    settings
}

/// A bus whose stage `write` adds each payload to the sink `out`; what says `no` fails after that.
fn open(directory: &Path) -> Result<Bus<String>, BusError> {
    let bus_settings = BusSettings { workers: 2, ..BusSettings::default() };
    let bus: Bus<String> = Bus::start_durable(bus_settings, &settings(directory))?;
    let sink = bus.sink("out").expect("it is among the settings");
    let durable = StageSettings { level: Level::ExactlyOnce, permits: 3, ..Default::default() };
    bus.add_stage("write", durable, move |context| {
        let line = format!("{}\n", context.payload());
        context.write(&sink, line.as_bytes())?;
        if context.payload() == "no" { Err(Failure::permanent("no")) } else { Ok(()) }
    })?;
    bus.recover(Missing::Refuse)?;
    Ok(bus)
}

fn publish(bus: &Bus<String>, payloads: &[&str]) {
    for payload in payloads {
        let slip = bus.slip(["write"]).expect("a short name");
        bus.publish(Envelope::new((*payload).to_owned(), slip)).expect("there is room");
    }
}

fn fault(directory: &Path) -> SinkFault {
    match open(directory) {
        Err(BusError::Log(LogError::Sink { fault, name, .. })) => {
            assert_eq!(name, "out");
            fault
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn lines_of_those_that_succeed_stand_there_once() {
    let directory = tempfile::tempdir().unwrap();
    let bus = open(directory.path()).unwrap();
    publish(&bus, &["a", "no", "b", "no", "c"]);
    assert!(bus.shutdown(LIMIT).drained);
    let out = directory.path().join("deep/out.txt");
    let mut lines: Vec<String> =
        fs::read_to_string(&out).unwrap().lines().map(Into::into).collect();
    lines.sort();
    assert_eq!(lines, ["a", "b", "c"]);
    let sink = bus.sink("out").unwrap();
    assert_eq!((sink.length(), sink.additions()), (6, 3));
    assert!(bus.sink("other").is_none());
}

/// What a crash between a write and its record left behind goes when the log is opened next.
#[test]
fn what_is_behind_the_known_end_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("deep/out.txt");
    fs::create_dir(directory.path().join("deep")).unwrap();
    fs::write(&out, "before\n").unwrap();
    let bus = open(directory.path()).unwrap();
    publish(&bus, &["a"]);
    assert!(bus.shutdown(LIMIT).drained);
    drop(bus);
    assert_eq!(fs::read_to_string(&out).unwrap(), "before\na\n", "content stays");
    fs::write(&out, "before\na\nhalf a li").unwrap();
    let bus = open(directory.path()).unwrap();
    assert_eq!(fs::read_to_string(&out).unwrap(), "before\na\n");
    publish(&bus, &["b"]);
    assert!(bus.shutdown(LIMIT).drained);
    assert_eq!(fs::read_to_string(&out).unwrap(), "before\na\nb\n");
}

#[test]
fn a_file_that_is_not_as_the_log_says_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("deep/out.txt");
    let bus = open(directory.path()).unwrap();
    publish(&bus, &["first", "last"]);
    assert!(bus.shutdown(LIMIT).drained);
    drop(bus);
    let whole = fs::read_to_string(&out).unwrap();
    let last = if whole.ends_with("last\n") { "last\n" } else { "first\n" };
    let offset = (whole.len() - last.len()) as u64;

    fs::write(&out, &whole[..4]).unwrap();
    assert_eq!(fault(directory.path()), SinkFault::Shorter { expected: 11, found: 4 });
    fs::write(&out, whole.replace(last, &"x".repeat(last.len()))).unwrap();
    assert_eq!(fault(directory.path()), SinkFault::Changed { offset });
    fs::write(directory.path().join("copy"), &whole).unwrap();
    fs::rename(directory.path().join("copy"), &out).unwrap();
    assert_eq!(fault(directory.path()), SinkFault::Replaced);
    fs::remove_file(&out).unwrap();
    assert!(matches!(fault(directory.path()), SinkFault::Replaced | SinkFault::Shorter { .. }));
}

#[test]
fn what_cannot_be_a_sink_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    fs::create_dir(file("folder")).unwrap();
    fs::write(file("a"), "").unwrap();
    fs::hard_link(file("a"), file("b")).unwrap();
    let two = |first: (&str, &str), second: (&str, &str)| {
        let sink = |(name, path): (&str, &str)| SinkSettings::new(name, file(path));
        vec![sink(first), sink(second)]
    };
    for sinks in [
        vec![SinkSettings::new("out", file("folder"))],
        vec![SinkSettings::new("out", "/dev/null")],
        vec![SinkSettings::new("", file("c"))],
        vec![SinkSettings::new("n".repeat(4097), file("c"))],
        two(("one", "a"), ("two", "b")),
        two(("one", "c"), ("one", "d")),
    ] {
        let mut settings = settings(directory.path());
        settings.sinks = sinks;
        let bus_settings = BusSettings { workers: 0, ..BusSettings::default() };
        let refused = Bus::<String>::start_durable(bus_settings, &settings).unwrap_err();
        assert!(matches!(refused, BusError::Log(LogError::Storage { .. })), "{refused}");
    }
}

/// Nothing lasts of an envelope that is in memory only, and a stage saves within its bound.
#[test]
fn what_lasts_has_its_conditions() {
    let directory = tempfile::tempdir().unwrap();
    let bus: Bus<Plain<u64>> =
        Bus::start_durable(BusSettings::default(), &settings(directory.path())).unwrap();
    let two = StageSettings { saves: 1, permits: 2, ..StageSettings::default() };
    let refused = bus.open_stage("two", two, None).unwrap_err();
    assert!(refused.to_string().contains("1 where a stage saves state"), "{refused}");
    let sink = bus.sink("out").unwrap();
    bus.add_stage("memory", StageSettings::default(), move |context| {
        let error = context.write(&sink, b"x").unwrap_err();
        assert_eq!(error, LastingError::NotDurable);
        assert_eq!(context.save("key", b"x").unwrap_err(), LastingError::NotDurable);
        Ok(())
    })
    .unwrap();
    let saving = StageSettings { level: Level::AtLeastOnce, saves: 10, ..Default::default() };
    bus.add_stage("saves", saving, |context| {
        match context.payload().0 {
            0 => {
                context.save("a", b"123456")?;
                let error = context.save("b", b"789").unwrap_err();
                assert_eq!(error, LastingError::TooMuch { size: 11, limit: 10 });
                context.save("b", b"78")?;
                assert_eq!(context.saved("b").unwrap(), b"78");
                let most = 254 - "saves".len();
                let long = context.save(&"k".repeat(most + 1), b"").unwrap_err();
                assert_eq!(long, LastingError::Key { length: most + 1, most });
                assert!(matches!(context.save("", b""), Err(LastingError::Key { .. })));
            }
            1 => {
                assert_eq!(context.saved("a").unwrap(), b"123456");
                context.save("a", b"")?;
                assert_eq!(context.saved("a"), None);
                return Err(Failure::permanent("what it saved is not kept"));
            }
            _ => {
                assert_eq!(context.saved("a").unwrap(), b"123456");
                context.save("b", b"")?;
            }
        }
        Ok(())
    })
    .unwrap();
    bus.recover(Missing::Refuse).unwrap();
    for (stage, payload) in [("memory", 0), ("saves", 0), ("saves", 1), ("saves", 2)] {
        let envelope = Envelope::new(Plain(payload), bus.slip([stage]).unwrap());
        let (end, _) = bus.publish_tracked(envelope).unwrap().wait(LIMIT).unwrap();
        let is_dead = matches!(end, Settled::Dead(_));
        assert_eq!(is_dead, payload == 1, "{stage} {payload}: {end:?}");
    }
    assert!(bus.shutdown(LIMIT).drained);
    let saved: Vec<_> = bus.saved("saves").into_iter().collect();
    assert_eq!(saved, [("a".to_owned(), b"123456".to_vec())]);
    drop(bus);
    let bus: Bus<Plain<u64>> =
        Bus::start_durable(BusSettings::default(), &settings(directory.path())).unwrap();
    assert_eq!(bus.saved("saves").into_iter().collect::<Vec<_>>(), saved, "it comes back");
    assert!(bus.saved("save").is_empty());
}

#[test]
fn positions_of_inputs_come_back_with_what_they_stand_behind() {
    let directory = tempfile::tempdir().unwrap();
    let bus = open(directory.path()).unwrap();
    assert_eq!(bus.position("in"), None);
    for (key, position) in [("a", "1"), ("b", "2"), ("a", "3")] {
        let envelope = Envelope::new(key.to_owned(), bus.slip(["write"]).unwrap()).with_key(key);
        // The third is known, and moves nothing.
        drop(bus.publish(envelope.with_position("in", position.as_bytes())));
    }
    assert_eq!(bus.position("in").unwrap(), b"2");
    assert!(bus.shutdown(LIMIT).drained);
    drop(bus);
    let bus = open(directory.path()).unwrap();
    assert_eq!(bus.position("in").unwrap(), b"2");
    let nameless = Envelope::new("c".to_owned(), bus.slip(["write"]).unwrap());
    assert!(bus.publish(nameless.with_position("", b"x")).is_err());
}

/// A stage that an envelope is still to visit is missing as much as one where it stands.
#[test]
fn stages_ahead_are_missing_too() {
    let directory = tempfile::tempdir().unwrap();
    let nobody = || BusSettings { workers: 0, ..BusSettings::default() };
    let durable = || StageSettings { level: Level::AtLeastOnce, ..StageSettings::default() };
    let log = DurableSettings::in_directory(directory.path());
    let bus: Bus<String> = Bus::start_durable(nobody(), &log).unwrap();
    bus.add_stage("a", durable(), |_| Ok(())).unwrap();
    let slip = bus.slip(["a", "b"]).unwrap();
    drop(bus.publish_durable(Envelope::new(String::new(), slip)).unwrap());
    drop(bus);
    let bus: Bus<String> = Bus::start_durable(nobody(), &log).unwrap();
    bus.add_stage("a", durable(), |_| Ok(())).unwrap();
    match bus.recover(Missing::Refuse) {
        Err(BusError::MissingStages(names)) => assert_eq!(names, ["b"]),
        other => panic!("{other:?}"),
    }
    bus.add_stage("b", durable(), |_| Ok(())).unwrap();
    assert_eq!(bus.recover(Missing::Refuse).unwrap().taken_up, 1);
}

/// A handler that returns after its bus was shut down writes nothing: the file is another bus's by
/// then.
#[test]
fn who_comes_late_does_not_write_over_the_next_bus() {
    let directory = tempfile::tempdir().unwrap();
    let bus_settings = || BusSettings { workers: 2, ..BusSettings::default() };
    let bus: Bus<String> = Bus::start_durable(bus_settings(), &settings(directory.path())).unwrap();
    let sink = bus.sink("out").unwrap();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Mutex::new(waits);
    let (came, comes) = std::sync::mpsc::channel::<()>();
    let durable = || StageSettings { level: Level::AtLeastOnce, ..StageSettings::default() };
    bus.add_stage("write", durable(), move |context| {
        came.send(()).map_err(|_gone| Failure::new("nobody waits"))?;
        let _ = waits.lock().expect("nobody panics").recv();
        context.write(&sink, b"late\n")?;
        Ok(())
    })
    .unwrap();
    bus.recover(Missing::Refuse).unwrap();
    publish(&bus, &["late"]);
    comes.recv().unwrap();
    assert!(!bus.shutdown(Duration::from_millis(1)).drained);

    let next = open(directory.path()).unwrap();
    publish(&next, &["next"]);
    drop(go_on);
    let report = next.shutdown(LIMIT);
    assert!(report.drained, "{report:?}");
    drop(bus);
    let out = fs::read_to_string(directory.path().join("deep/out.txt")).unwrap();
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["late", "next"], "the late one was handled again by the next bus");
}

#[test]
fn a_sink_has_one_bus_and_one_log() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = open(one.path()).unwrap();
    let mut other = settings(two.path());
    other.sinks = vec![SinkSettings::new("mine", one.path().join("deep/out.txt"))];
    let nobody = || BusSettings { workers: 0, ..BusSettings::default() };
    let refused = Bus::<String>::start_durable(nobody(), &other).unwrap_err();
    assert!(matches!(refused, BusError::Log(LogError::SinkTaken(_))), "{refused}");

    let second: Bus<String> = Bus::start_durable(nobody(), &settings(two.path())).unwrap();
    let foreign = first.sink("out").unwrap();
    let durable = StageSettings { level: Level::AtLeastOnce, ..StageSettings::default() };
    second
        .add_stage("write", durable, move |context| {
            let error = context.write(&foreign, b"x").unwrap_err();
            assert_eq!(error, LastingError::ForeignSink);
            Ok(())
        })
        .unwrap();
    second.recover(Missing::Refuse).unwrap();
    publish(&second, &["a"]);
    while second.turn() > 0 {}
    assert_eq!(second.conservation().completed, 1);
    assert_eq!(first.sink("out").unwrap().length(), 0);
}

/// An attempt of a batch would not find what the others of its batch save.
#[test]
fn a_batch_handler_saves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let nobody = BusSettings { workers: 0, ..BusSettings::default() };
    let bus: Bus<String> = Bus::start_durable(nobody, &settings(directory.path())).unwrap();
    let saving = StageSettings { level: Level::AtLeastOnce, saves: 10, ..Default::default() };
    let refused = bus.add_batch_stage("batch", saving.clone(), |_| Ok(())).unwrap_err();
    assert!(refused.to_string().contains("0 with a batch handler"), "{refused}");
    bus.open_stage("batch", saving, None).unwrap();
    assert!(bus.set_handler("batch", waystage::Handler::batch(|_| Ok(()))).is_err());
    assert!(bus.set_handler("batch", waystage::Handler::each(|_| Ok(()))).unwrap());
}

/// A bus that is not told of an output does not take for safe what was added to it last.
#[test]
fn an_output_that_is_not_given_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut with = settings(directory.path());
    with.log.sync = waystage::log::Sync::Os;
    let nobody = || BusSettings { workers: 0, ..BusSettings::default() };
    let bus: Bus<String> = Bus::start_durable(nobody(), &with).unwrap();
    let sink = bus.sink("out").unwrap();
    let durable = StageSettings { level: Level::AtLeastOnce, ..StageSettings::default() };
    bus.add_stage("write", durable, move |context| {
        context.write(&sink, b"line\n")?;
        Ok(())
    })
    .unwrap();
    bus.recover(Missing::Refuse).unwrap();
    publish(&bus, &["a"]);
    while bus.turn() > 0 {}
    // A copy of the log as a kill would leave it.
    let copy = directory.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for file in fs::read_dir(directory.path().join("log")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    let without = DurableSettings::in_directory(copy);
    match Bus::<String>::start_durable(nobody(), &without) {
        Err(BusError::Log(LogError::SinkNotGiven(name))) => assert_eq!(name, "out"),
        other => panic!("{other:?}"),
    }
}

/// A bus that was shut down begins no sinks any more: their files may be another bus's by then.
#[test]
fn a_bus_that_has_ended_empties_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("deep/out.txt");
    fs::create_dir(directory.path().join("deep")).unwrap();
    fs::write(&out, "kept\n").unwrap();
    let mut with = settings(directory.path());
    with.sinks[0].empties = true;
    let nobody = BusSettings { workers: 0, ..BusSettings::default() };
    let bus: Bus<String> = Bus::start_durable(nobody, &with).unwrap();
    assert!(bus.shutdown(LIMIT).drained);
    assert!(matches!(bus.recover(Missing::Refuse), Err(BusError::Log(LogError::Closed))));
    assert_eq!(fs::read_to_string(&out).unwrap(), "kept\n");
}
