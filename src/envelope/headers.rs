//! Headers: a small, bounded map from names to text or bytes, ordered by name.
//!
//! Invariants: at most 64 headers; a name is 1 to 64 bytes of `a`-`z`, `0`-`9`, `-`, `_` and `.`;
//! a value is at most 4 KiB; all names and values together are at most 16 KiB. A refused insert
//! changes nothing. An empty map holds no allocation. The order by name makes equal maps equal on
//! the wire, whatever the order of the inserts was.

use std::fmt;

/// The most headers an envelope may have.
pub const HEADERS_MAX: usize = 64;
/// The most bytes of a header's name.
pub const NAME_BYTES_MAX: usize = 64;
/// The most bytes of a header's value.
pub const VALUE_BYTES_MAX: usize = 4 * 1024;
/// The most bytes of all names and values together.
pub const TOTAL_BYTES_MAX: usize = 16 * 1024;

/// The producer's own key, where the envelope's id was made from one.
pub const KEY: &str = "key";
/// The payload's media type, where its producer named another than the payload type's own.
pub const CONTENT_TYPE: &str = "content-type";

/// The value of a header: text, or bytes.
///
/// Made from `&str`, `&String`, `&[u8]`, `&Vec<u8>` and byte arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeaderValue<'a> {
    /// Text.
    Text(&'a str),
    /// Bytes of any kind.
    Bytes(&'a [u8]),
}

impl<'a> HeaderValue<'a> {
    /// The text; `None` when the value was given as bytes.
    #[must_use]
    pub fn as_text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }

    /// The bytes, of a text its UTF-8.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl<'a> From<&'a str> for HeaderValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for HeaderValue<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for HeaderValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for HeaderValue<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for HeaderValue<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

/// Why a header was refused. Long names are cut in the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The name is empty or too long.
    #[error(
        "header `{name}`: its name has {length} bytes; use a name of 1 to {NAME_BYTES_MAX} bytes"
    )]
    NameLength {
        /// The header, cut to its first characters.
        name: String,
        /// Bytes of the name.
        length: usize,
    },
    /// The name holds a character that names may not have.
    #[error(
        "header `{name}`: byte {offset} of its name is not allowed; use only `a`-`z`, `0`-`9`, \
         `-`, `_` and `.`"
    )]
    NameCharacter {
        /// The header.
        name: String,
        /// Where in the name.
        offset: usize,
    },
    /// The value is too long.
    #[error(
        "header `{name}`: its value has {length} bytes, the most is {VALUE_BYTES_MAX}; put large \
         data into the payload"
    )]
    ValueTooLong {
        /// The header.
        name: String,
        /// Bytes of the value.
        length: usize,
    },
    /// The map is full.
    #[error(
        "header `{name}`: the envelope already has {HEADERS_MAX} headers, the most it may; remove \
         one, or join several into one value"
    )]
    TooMany {
        /// The header.
        name: String,
    },
    /// Names and values together would be too long.
    #[error(
        "header `{name}`: all headers together would have {total} bytes, the most is \
         {TOTAL_BYTES_MAX}; remove some, or put large data into the payload"
    )]
    TotalTooLong {
        /// The header.
        name: String,
        /// Bytes there would have been.
        total: usize,
    },
}

/// The headers of an envelope.
///
/// ```
/// use waystage::envelope::{Headers, headers::KEY};
/// let mut headers = Headers::new();
/// headers.insert(KEY, "order-17")?;
/// headers.insert("trace", &[0x17, 0xff])?;
/// assert_eq!(headers.get(KEY).and_then(|value| value.as_text()), Some("order-17"));
/// assert_eq!(headers.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["key", "trace"]);
/// # Ok::<(), waystage::envelope::HeaderError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// Strictly rising by name.
    entries: Vec<Entry>,
    /// Bytes of all names and values.
    total: usize,
}

#[derive(Clone, PartialEq, Eq)]
struct Entry {
    name: Box<str>,
    value: Value,
}

#[derive(Clone, PartialEq, Eq)]
enum Value {
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

impl Headers {
    /// No headers.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), total: 0 }
    }

    /// The headers of `fields`; a later one replaces an earlier one of the same name.
    ///
    /// # Errors
    /// [`HeaderError`] of the first header that is refused.
    pub fn try_from_iter<'a, N, V>(
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, HeaderError>
    where
        N: AsRef<str>,
        V: Into<HeaderValue<'a>>,
    {
        let mut headers = Self::new();
        for (name, value) in fields {
            headers.insert(name.as_ref(), value)?;
        }
        Ok(headers)
    }

    /// Sets the header `name`, replacing a value it had.
    ///
    /// # Errors
    /// [`HeaderError`] when a limit is exceeded; the headers are then unchanged.
    pub fn insert<'a>(
        &mut self,
        name: &str,
        value: impl Into<HeaderValue<'a>>,
    ) -> Result<(), HeaderError> {
        let value = value.into();
        check(name, value)?;
        let place = self.find(name);
        let freed = match place {
            Ok(index) => self.entries[index].bytes(),
            Err(_) if self.entries.len() >= HEADERS_MAX => {
                return Err(HeaderError::TooMany { name: name.to_owned() });
            }
            Err(_) => 0,
        };
        let total = self.total - freed + name.len() + value.as_bytes().len();
        if total > TOTAL_BYTES_MAX {
            return Err(HeaderError::TotalTooLong { name: name.to_owned(), total });
        }
        self.total = total;
        match place {
            Ok(index) => self.entries[index].value = value.into(),
            Err(index) => {
                self.entries.insert(index, Entry { name: name.into(), value: value.into() });
            }
        }
        Ok(())
    }

    /// The value of the header `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<HeaderValue<'_>> {
        self.find(name).ok().map(|index| self.entries[index].value.view())
    }

    /// Removes the header `name`; whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let Ok(index) = self.find(name) else {
            return false;
        };
        self.total -= self.entries.remove(index).bytes();
        true
    }

    /// The headers in the order of their names.
    pub fn iter(&self) -> Iter<'_> {
        Iter { entries: self.entries.iter() }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| (*entry.name).cmp(name))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = (&'a str, HeaderValue<'a>);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Iterates over [`Headers`] in the order of their names.
#[derive(Clone)]
pub struct Iter<'a> {
    entries: std::slice::Iter<'a, Entry>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, HeaderValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|entry| (&*entry.name, entry.value.view()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.view().as_bytes().len()
    }
}

impl Value {
    fn view(&self) -> HeaderValue<'_> {
        match self {
            Self::Text(text) => HeaderValue::Text(text),
            Self::Bytes(bytes) => HeaderValue::Bytes(bytes),
        }
    }
}

impl From<HeaderValue<'_>> for Value {
    fn from(value: HeaderValue<'_>) -> Self {
        match value {
            HeaderValue::Text(text) => Self::Text(text.into()),
            HeaderValue::Bytes(bytes) => Self::Bytes(bytes.into()),
        }
    }
}

/// Whether a header's name may contain `byte`.
pub(super) fn is_name_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.')
}

/// Checks the limits that concern one header alone.
fn check(name: &str, value: HeaderValue<'_>) -> Result<(), HeaderError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        // Cut, so that an error never carries a name of any length around.
        let shown = name.chars().take(NAME_BYTES_MAX).collect();
        return Err(HeaderError::NameLength { name: shown, length: name.len() });
    }
    if let Some(offset) = name.bytes().position(|byte| !is_name_byte(byte)) {
        return Err(HeaderError::NameCharacter { name: name.to_owned(), offset });
    }
    let length = value.as_bytes().len();
    if length > VALUE_BYTES_MAX {
        return Err(HeaderError::ValueTooLong { name: name.to_owned(), length });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
