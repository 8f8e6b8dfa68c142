//! Payloads as JSON text, behind the feature `json`.
//!
//! Any type that serde can serialise and deserialise. Slower and longer than the other kinds, but
//! readable, and open to changes of the type. Trailing bytes after the value are refused.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Payload, PayloadError};

/// A value encoded as JSON text.
///
/// ```
/// use waystage::envelope::{Payload, payload::Json};
/// let mut bytes = Vec::new();
/// Json(vec![1, 2, 3]).encode(&mut bytes)?;
/// assert_eq!(bytes, b"[1,2,3]");
/// assert_eq!(Json::<Vec<u8>>::decode(b" [1, 2, 3]")?, Json(vec![1, 2, 3]));
/// # Ok::<(), waystage::envelope::PayloadError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Json<T>(pub T);

impl<T: Serialize + DeserializeOwned> Payload for Json<T> {
    const CONTENT_TYPE: &'static str = "application/json";

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        serde_json::to_writer(out, &self.0).map_err(PayloadError::encode)
    }

    fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        serde_json::from_slice(bytes).map(Self).map_err(PayloadError::decode)
    }
}
