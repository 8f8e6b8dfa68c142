//! Any bytes as the body of a record: reading entries never panics, what they are is written back
//! byte for byte, and folding them either fits or changes nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waystage::log::entry::entries;
use waystage::log::fold::fold_record;
use waystage::log::segment::Location;
use waystage::log::state::State;

fuzz_target!(|body: &[u8]| {
    let mut again = Vec::new();
    let mut is_whole = true;
    for entry in entries(body) {
        match entry {
            Ok(entry) => entry.encode(&mut again).expect("what was read can be written"),
            Err(error) => {
                assert!(error.offset() <= body.len(), "{error}");
                is_whole = false;
            }
        }
    }
    assert!(body.starts_with(&again));
    assert!(!is_whole || again == body);

    let mut state = State::default();
    for sequence in 1..4 {
        let before = state.clone();
        let location = Location { segment: 1, offset: 64 };
        let folded = fold_record(&mut state, sequence, location, body);
        assert!(folded.is_ok() || state == before);
        assert!(folded.is_err() || is_whole);
        assert!(state.holds());
    }
});
