//! Payloads that can leave memory: how a value becomes bytes and is read back.
//!
//! Memory stages take any payload; durable levels ask for [`Payload`]. Built in: `Bytes`,
//! `Vec<u8>`, `String`, the wrapper [`Plain`] for plain-data values, and `Json` (feature `json`).
//! Decoding never panics and refuses what it cannot read whole. An empty encoding is a payload like
//! any other: on the wire it differs from no payload.

use bytemuck::Pod;
use bytes::Bytes;

#[cfg(feature = "json")]
mod json;
#[cfg(feature = "json")]
pub use json::Json;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a payload could not be encoded or decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The bytes are not as many as the type has.
    #[error("the payload has {found} bytes, its type has {expected}")]
    Length {
        /// Bytes of the type.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The bytes are not UTF-8.
    #[error("the payload is not UTF-8 text")]
    NotText(#[source] std::str::Utf8Error),
    /// The value has no encoding.
    #[error("the payload cannot be encoded")]
    Encode(#[source] Source),
    /// The bytes are no encoding of the type.
    #[error("the payload cannot be decoded")]
    Decode(#[source] Source),
}

impl PayloadError {
    /// The error of a value that has no encoding.
    pub fn encode(source: impl Into<Source>) -> Self {
        Self::Encode(source.into())
    }

    /// The error of bytes that are no encoding of the type.
    pub fn decode(source: impl Into<Source>) -> Self {
        Self::Decode(source.into())
    }
}

/// A value that can be written to bytes and read back.
///
/// `decode` of what `encode` appended must give an equal value.
///
/// ```
/// use waystage::envelope::{Payload, PayloadError};
///
/// #[derive(Debug, PartialEq)]
/// struct Celsius(f64);
///
/// impl Payload for Celsius {
///     const CONTENT_TYPE: &'static str = "application/x-celsius";
///
///     fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
///         out.extend_from_slice(&self.0.to_le_bytes());
///         Ok(())
///     }
///
///     fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
///         let Ok(eight) = bytes.try_into() else {
///             return Err(PayloadError::Length { expected: 8, found: bytes.len() });
///         };
///         Ok(Celsius(f64::from_le_bytes(eight)))
///     }
/// }
///
/// let mut bytes = Vec::new();
/// Celsius(21.5).encode(&mut bytes)?;
/// assert_eq!(Celsius::decode(&bytes)?, Celsius(21.5));
/// # Ok::<(), PayloadError>(())
/// ```
pub trait Payload: Sized {
    /// The media type of the encoding.
    const CONTENT_TYPE: &'static str;

    /// Appends the encoding to `out`.
    ///
    /// # Errors
    /// [`PayloadError`] when the value has no encoding; what `out` gained is then to be cut off.
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError>;

    /// Reads the value whose encoding `bytes` is.
    ///
    /// # Errors
    /// [`PayloadError`] when `bytes`, taken whole, is no encoding of this type.
    fn decode(bytes: &[u8]) -> Result<Self, PayloadError>;
}

impl Payload for Bytes {
    const CONTENT_TYPE: &'static str = "application/octet-stream";

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        out.extend_from_slice(self);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        Ok(Self::copy_from_slice(bytes))
    }
}

impl Payload for Vec<u8> {
    const CONTENT_TYPE: &'static str = "application/octet-stream";

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        out.extend_from_slice(self);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        Ok(bytes.to_vec())
    }
}

impl Payload for String {
    const CONTENT_TYPE: &'static str = "text/plain; charset=utf-8";

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        out.extend_from_slice(self.as_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        std::str::from_utf8(bytes).map(str::to_owned).map_err(PayloadError::NotText)
    }
}

/// A plain-data value, encoded as the bytes it has in memory.
///
/// The value's layout is its format: changing the type's fields changes what old bytes mean. Only
/// little-endian machines encode it; elsewhere it does not compile.
///
/// ```
/// use waystage::envelope::{Payload, payload::Plain};
/// let mut bytes = Vec::new();
/// Plain([1_u32, 2, 3]).encode(&mut bytes)?;
/// assert_eq!(Plain::<[u32; 3]>::decode(&bytes)?, Plain([1, 2, 3]));
/// assert!(Plain::<[u32; 4]>::decode(&bytes).is_err());
/// # Ok::<(), waystage::envelope::PayloadError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Plain<T>(pub T);

impl<T: Pod> Payload for Plain<T> {
    const CONTENT_TYPE: &'static str = "application/vnd.waystage.plain";

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        const { assert!(cfg!(target_endian = "little"), "the wire is little-endian") };
        out.extend_from_slice(bytemuck::bytes_of(&self.0));
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        const { assert!(cfg!(target_endian = "little"), "the wire is little-endian") };
        let Ok(value) = bytemuck::try_pod_read_unaligned(bytes) else {
            return Err(PayloadError::Length { expected: size_of::<T>(), found: bytes.len() });
        };
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests;
