//! Any bytes: parsing them never panics, and what it accepts is written back byte for byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waystage::envelope::codec::{EnvelopeView, encode, encoded_len};

fuzz_target!(|bytes: &[u8]| {
    let view = match EnvelopeView::parse(bytes) {
        Ok(view) => view,
        Err(error) => {
            assert!(error.offset() <= bytes.len(), "{error}");
            return;
        }
    };
    let mut again = Vec::new();
    encode(view.parts(), &mut again).expect("what was read can be written");
    assert_eq!(again, bytes);
    assert_eq!(again.len(), encoded_len(view.parts()));
    assert_eq!(view.remaining().iter().count(), view.remaining().len());
    assert_eq!(view.trail().iter().count(), view.trail().len());
    let headers = view.headers().to_headers();
    assert!(headers.iter().eq(view.headers()));
});
