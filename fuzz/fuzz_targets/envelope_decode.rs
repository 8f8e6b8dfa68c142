//! Any bytes: parsing them never panics and allocates no more than they are long, whatever lengths
//! they claim; and what it accepts is written back byte for byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waystage::envelope::codec::{EnvelopeView, encode, encoded_len};

fuzz_target!(|bytes: &[u8]| {
    let mut parsed = None;
    let allocated = allocation_counter::measure(|| parsed = Some(EnvelopeView::parse(bytes)));
    let (most, length) = (allocated.bytes_max, bytes.len() as u64);
    assert!(most <= length, "{most} bytes allocated for {length}");
    let view = match parsed.expect("it was called") {
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
