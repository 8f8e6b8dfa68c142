//! Slips are safe input: empty, unknown, foreign, looping, very long ones.

use waystage::{
    Bus, BusError, BusSettings, Cause, EmitRefused, Envelope, EnvelopeId, Level, Refused, Slip,
    SlipError, StageSettings,
};

use crate::support::{Log, drained, room_for, run, to, virtual_time};

/// A stage that writes down its name.
fn recorder(bus: &Bus<u64>, name: &'static str, trail: &Log<&'static str>) {
    let trail = trail.clone();
    bus.add_stage(name, room_for(8), move |_| {
        trail.add(name);
        Ok(())
    })
    .expect("the stage is fine");
}

#[test]
fn a22_an_empty_slip_is_refused() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    let refused = bus.publish(Envelope::new(1, Slip::new())).unwrap_err();
    assert_eq!((refused.reason, refused.stage), (Refused::NoRoute, None));
    let refused = bus
        .publisher()
        .publish_batch(&mut std::iter::once(Envelope::new(1, Slip::new())))
        .unwrap_err();
    assert_eq!((refused.reason, refused.accepted, refused.rest.len()), (Refused::NoRoute, 0, 1));
    assert_eq!(drained(&bus).accepted, 0);
}

#[test]
fn a22_an_unknown_stage_is_refused_by_name_and_suggested() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("archive", room_for(8), |_| Ok(())).unwrap();
    let refused = bus.publish(to(&bus, 1, &["archvie"])).unwrap_err();
    assert_eq!((refused.reason, refused.stage.as_deref()), (Refused::NoRoute, Some("archvie")));
    let error = bus.close_stage("archvie").unwrap_err().to_string();
    assert_eq!(error, "no stage named `archvie` is open; did you mean `archive`?");
    for name in ["", "line\nbreak", &"x".repeat(256)] {
        assert!(matches!(bus.slip([name]), Err(BusError::BadName(_))), "{name:?}");
    }
    // A route to a stage that comes later is good.
    let early = bus.slip(["later"]).unwrap();
    bus.add_stage("later", room_for(8), |_| Ok(())).unwrap();
    bus.publish(Envelope::new(1, early)).unwrap();
    run(&bus);
    assert_eq!(drained(&bus).completed, 1);
}

#[test]
fn a22_a_foreign_slip_is_refused_and_never_misrouted() {
    let (bus, _clock) = virtual_time::<u64>();
    let (other, _clock) = virtual_time::<u64>();
    let trail = Log::new();
    recorder(&bus, "a", &trail);
    recorder(&other, "a", &trail);
    let foreign = other.slip(["a"]).unwrap();
    let refused = bus.publish(Envelope::new(1, foreign.clone())).unwrap_err();
    assert_eq!((refused.reason, refused.stage), (Refused::ForeignSlip, None));
    assert!(bus.publish_inline(Envelope::new(1, foreign.clone())).is_err());
    assert_eq!(
        bus.publish_batch(&mut std::iter::once(Envelope::new(1, foreign))).unwrap_err().accepted,
        0
    );
    let (here, there) = (bus.route("a").unwrap(), other.route("a").unwrap());
    assert_eq!(Slip::via([here, there]).unwrap_err(), SlipError::ForeignRoute);
    assert_eq!((bus.name(here).as_deref(), bus.name(there)), (Some("a"), None));
    run(&bus);
    assert_eq!(trail.len(), 0);
}

#[test]
fn a22_a_handler_cannot_send_to_another_bus() {
    let (bus, _clock) = virtual_time::<u64>();
    let (other, _clock) = virtual_time::<u64>();
    let trail = Log::new();
    recorder(&bus, "target", &trail);
    let there = other.route("target").unwrap();
    bus.add_stage("a", room_for(8), move |context| {
        assert_eq!(context.push(there), Err(SlipError::ForeignRoute));
        assert_eq!(context.append(there), Err(SlipError::ForeignRoute));
        let refused = context.emit(1, Slip::via([there])?).unwrap_err();
        assert_eq!(refused.reason, EmitRefused::ForeignSlip);
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["a"])).unwrap();
    run(&bus);
    assert_eq!(trail.len(), 0, "the emit went to the stage of the same number");
    let books = drained(&bus);
    assert_eq!((books.accepted, books.completed, books.dead), (1, 1, 0));
}

#[test]
fn a22_a_self_loop_ends_at_the_hop_limit() {
    for workers in [0, 1] {
        let settings = BusSettings { workers, hop_limit: 65_534, ..BusSettings::default() };
        let bus: Bus<u64> = Bus::start(settings).unwrap();
        let again = bus.route("a").unwrap();
        bus.add_stage("a", room_for(8), move |context| {
            *context.payload_mut() += 1;
            context.push(again)?;
            Ok(())
        })
        .unwrap();
        bus.publish(to(&bus, 0, &["a"])).unwrap();
        let books = drained(&bus);
        assert_eq!((books.accepted, books.dead), (1, 1));
        let id = bus.dead_letters()[0].id;
        let letter = bus.take_dead_letter(id).unwrap();
        assert_eq!(letter.cause, Cause::HopLimit);
        assert_eq!(letter.envelope.into_payload(), 65_535, "one call per hop, and the first");
    }
}

#[test]
fn a22_a_slip_of_the_most_hops_is_walked_without_recursion() {
    let settings = BusSettings { workers: 0, hop_limit: 65_534, ..BusSettings::default() };
    let bus: Bus<u64> = Bus::start(settings).unwrap();
    for name in ["a", "b"] {
        bus.add_stage(name, room_for(8), |context| {
            *context.payload_mut() += 1;
            Ok(())
        })
        .unwrap();
    }
    let names = ["a", "b"].into_iter().cycle();
    let slip = bus.slip(names.clone().take(65_535)).unwrap();
    let error = bus.slip(names.take(100_000)).unwrap_err();
    assert!(matches!(error, BusError::Slip(SlipError::TooLong)), "{error}");
    let mut completion = bus.publish_tracked(Envelope::new(0, slip)).unwrap();
    run(&bus);
    let (_, envelope) = completion.poll_now().unwrap();
    let envelope = envelope.unwrap();
    assert_eq!((*envelope.payload(), envelope.hops()), (65_535, 65_534));
    drained(&bus);
}

#[test]
fn a22_the_default_hop_limit_is_a_thousand() {
    let (bus, _clock) = virtual_time::<u64>();
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    for (hops, completed) in [(1_000, 1), (1_001, 2), (1_002, 2)] {
        bus.publish(to(&bus, 0, &vec!["a"; hops])).unwrap();
        run(&bus);
        assert_eq!(bus.conservation().completed, completed, "{hops} hops");
    }
    assert_eq!(bus.dead_letters()[0].cause, Cause::HopLimit);
}

#[test]
fn a22_reading_never_pops_and_ratcheting_before_publish_is_optional() {
    let (bus, _clock) = virtual_time::<u64>();
    let trail = Log::new();
    for name in ["one", "two", "three"] {
        recorder(&bus, name, &trail);
    }
    // Pushed last hop first.
    let mut slip = Slip::new();
    for name in ["three", "two", "one"] {
        slip.push(bus.route(name).unwrap()).unwrap();
    }
    for ratchets in [0, 1] {
        let mut envelope = Envelope::new(1, slip.clone());
        for _ in 0..ratchets {
            envelope.slip_mut().ratchet();
        }
        for _ in 0..3 {
            let _ = (envelope.current(), envelope.slip().peek_next());
        }
        bus.publish(envelope).unwrap();
        run(&bus);
        assert_eq!(trail.take(), ["one", "two", "three"]);
    }
    // Ratcheted past its end it has no route, like an empty one.
    let mut envelope = Envelope::new(1, slip);
    while envelope.slip_mut().ratchet().is_some() {}
    assert_eq!(bus.publish(envelope).unwrap_err().reason, Refused::NoRoute);
}

#[test]
fn a22_a_handler_changes_the_hops_ahead() {
    let (bus, _clock) = virtual_time::<u64>();
    let trail = Log::new();
    for name in ["next", "last", "then"] {
        recorder(&bus, name, &trail);
    }
    let (next, last) = (bus.route("next").unwrap(), bus.route("last").unwrap());
    bus.add_stage("a", room_for(8), move |context| {
        if *context.payload() == 1 {
            context.clear_slip();
        }
        context.push(next)?;
        context.append(last)?;
        Ok(())
    })
    .unwrap();
    for (payload, want) in [(0, &["next", "then", "last"][..]), (1, &["next", "last"])] {
        bus.publish(to(&bus, payload, &["a", "then"])).unwrap();
        run(&bus);
        assert_eq!(trail.take(), want);
    }
}

#[test]
fn emits_are_bounded_derived_and_accepted_with_their_settlement() {
    let (bus, _clock) = virtual_time::<u64>();
    let ids: Log<EnvelopeId> = Log::new();
    let (seen, end) = (ids.clone(), bus.slip(["end"]).unwrap());
    bus.add_stage("end", room_for(8), move |context| {
        seen.add(context.id());
        Ok(())
    })
    .unwrap();
    bus.add_stage("a", StageSettings { emits: 2, ..room_for(8) }, move |context| {
        context.emit(1, end.clone())?;
        context.emit(2, end.clone())?;
        let refused = context.emit(3, end.clone()).unwrap_err();
        assert_eq!(refused.reason, EmitRefused::TooMany { limit: 2 });
        assert_eq!(*refused.envelope.payload(), 3, "it comes back");
        Ok(())
    })
    .unwrap();
    let parent = EnvelopeId::from_key(b"parent");
    bus.publish(to(&bus, 1, &["a"]).with_id(parent)).unwrap();
    run(&bus);
    assert_eq!(ids.take(), [0, 1].map(|ordinal| EnvelopeId::derived(parent, 0, ordinal)));
    let books = drained(&bus);
    assert_eq!((books.accepted, books.completed), (3, 3));
}

#[test]
fn a_durable_level_is_a_typed_error() {
    let (bus, _clock) = virtual_time::<u64>();
    for level in [Level::AtLeastOnce, Level::ExactlyOnce] {
        let error = bus.add_stage("a", StageSettings { level, ..room_for(8) }, |_| Ok(()));
        let error = error.unwrap_err();
        assert!(matches!(&error, BusError::NotDurable { stage } if stage == "a"), "{error}");
    }
    bus.add_stage("a", room_for(8), |_| Ok(())).unwrap();
    let twice = bus.add_stage("a", room_for(8), |_| Ok(())).unwrap_err();
    assert!(matches!(twice, BusError::StageExists(name) if name == "a"));
}

#[test]
fn a_huge_number_of_permits_and_the_largest_ring_work() {
    let (bus, _clock) = virtual_time::<u64>();
    // More permits than workers is allowed: they are the most that may run, not threads.
    bus.add_stage("a", StageSettings { permits: 4_000, ..room_for(1) }, |_| Ok(())).unwrap();
    bus.add_stage("b", room_for(1 << 20), |_| Ok(())).unwrap();
    bus.publish(to(&bus, 1, &["a", "b"])).unwrap();
    run(&bus);
    assert_eq!(drained(&bus).completed, 1);
}

#[test]
fn a22_a_copy_of_the_own_slip_leads_on_and_circles_of_emits_end() {
    let (bus, _clock) = virtual_time::<u64>();
    let trail = Log::new();
    recorder(&bus, "end", &trail);
    bus.add_stage("copies", room_for(8), |context| {
        context.emit(7, context.envelope().slip().clone())?;
        Ok(())
    })
    .unwrap();
    let circle = bus.slip(["circle"]).unwrap();
    bus.add_stage("circle", room_for(8), move |context| {
        let refused = context.emit(1, Slip::new()).unwrap_err();
        assert_eq!(refused.reason, EmitRefused::EmptySlip);
        context.emit(1, circle.clone())?;
        Ok(())
    })
    .unwrap();
    bus.publish(to(&bus, 1, &["copies", "end"])).unwrap();
    run(&bus);
    assert_eq!(trail.len(), 2, "the original and its copy");
    bus.publish(to(&bus, 1, &["circle"])).unwrap();
    run(&bus);
    assert_eq!(bus.dead_letters()[0].cause, Cause::HopLimit);
    assert!(drained(&bus).holds());
}

#[test]
fn a22_a_stage_opened_while_a_turn_runs_is_found_by_that_turn() {
    let (bus, _clock) = virtual_time::<u64>();
    let bus = std::sync::Arc::new(bus);
    let (inner, late) = (std::sync::Arc::downgrade(&bus), bus.route("late").unwrap());
    bus.add_stage("a", room_for(8), move |context| {
        if let Some(bus) = inner.upgrade() {
            // The second time it is closed and opened again within the turn.
            let _ = bus.close_stage("late");
            bus.add_stage("late", room_for(8), |_| Ok(()))?;
        }
        context.push(late)?;
        Ok(())
    })
    .unwrap();
    for number in 0..2 {
        bus.publish(to(&bus, number, &["a"])).unwrap();
    }
    run(&bus);
    let books = bus.shutdown(std::time::Duration::from_secs(5)).conservation;
    assert!(books.completed >= 1 && books.holds(), "{books:?}");
    assert_eq!(bus.dead_letters().iter().filter(|l| l.cause == Cause::NoRoute).count(), 0);
}
