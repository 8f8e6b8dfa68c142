//! The headers of an envelope, standing either in a map or in encoded bytes.
//!
//! The same arrangement as for names: a view hands them out, the encoder takes them. Encoded
//! headers have passed the limits of [`Headers`] when the envelope was parsed.

#![deny(clippy::indexing_slicing)]

use std::fmt;

use super::reader::{Reader, in_range};
use super::{DecodeError, KIND_BYTES, KIND_TEXT};
use crate::envelope::headers::{
    self, HEADERS_MAX, HeaderValue, Headers, TOTAL_BYTES_MAX, VALUE_BYTES_MAX,
};

/// Headers, strictly rising by name.
#[derive(Clone, Copy)]
pub struct HeaderFields<'a>(FieldsSource<'a>);

#[derive(Clone, Copy)]
enum FieldsSource<'a> {
    Map(&'a Headers),
    Encoded { count: u8, bytes: &'a [u8] },
}

impl<'a> HeaderFields<'a> {
    /// No headers.
    pub const EMPTY: Self = Self(FieldsSource::Encoded { count: 0, bytes: &[] });

    /// Reads and checks `count` headers; `count` itself stands at `count_offset`.
    pub(super) fn read(
        reader: &mut Reader<'a>,
        count: u8,
        count_offset: usize,
    ) -> Result<Self, DecodeError> {
        let what = "a number of headers";
        in_range(count_offset, what, usize::from(count), 0, HEADERS_MAX)?;
        let start = *reader;
        let mut total = 0;
        let mut last = "";
        for _ in 0..count {
            let offset = reader.offset();
            let (name, value) = read_field(reader)?;
            // The name stands behind the four bytes of kind and lengths. The first is never
            // empty, so it comes after the empty one.
            if name <= last {
                return Err(DecodeError::HeaderOrder { offset: offset + 4 });
            }
            last = name;
            total += name.len() + value.as_bytes().len();
            in_range(offset, "all bytes of headers", total, 0, TOTAL_BYTES_MAX)?;
        }
        Ok(Self(FieldsSource::Encoded { count, bytes: reader.since(&start) }))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            FieldsSource::Map(headers) => headers.len(),
            FieldsSource::Encoded { count, .. } => usize::from(count),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of the header `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<HeaderValue<'a>> {
        self.iter().find(|field| field.0 == name).map(|field| field.1)
    }

    /// The headers in the order of their names.
    #[must_use]
    pub fn iter(&self) -> HeaderFieldsIter<'a> {
        HeaderFieldsIter(match self.0 {
            FieldsSource::Map(headers) => FieldsIterSource::Map(headers.iter()),
            FieldsSource::Encoded { bytes, .. } => FieldsIterSource::Encoded(Reader::new(bytes)),
        })
    }

    /// A copy that stands on its own.
    #[must_use]
    pub fn to_headers(&self) -> Headers {
        match self.0 {
            FieldsSource::Map(headers) => headers.clone(),
            FieldsSource::Encoded { .. } => {
                Headers::try_from_iter(self.iter()).expect("parsing checked the same limits")
            }
        }
    }
}

impl Default for HeaderFields<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<'a> From<&'a Headers> for HeaderFields<'a> {
    fn from(headers: &'a Headers) -> Self {
        Self(FieldsSource::Map(headers))
    }
}

impl PartialEq for HeaderFields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for HeaderFields<'_> {}

impl fmt::Debug for HeaderFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for HeaderFields<'a> {
    type Item = (&'a str, HeaderValue<'a>);
    type IntoIter = HeaderFieldsIter<'a>;

    fn into_iter(self) -> HeaderFieldsIter<'a> {
        self.iter()
    }
}

/// Iterates over [`HeaderFields`].
#[derive(Debug, Clone)]
pub struct HeaderFieldsIter<'a>(FieldsIterSource<'a>);

#[derive(Debug, Clone)]
enum FieldsIterSource<'a> {
    Map(headers::Iter<'a>),
    Encoded(Reader<'a>),
}

impl<'a> Iterator for HeaderFieldsIter<'a> {
    type Item = (&'a str, HeaderValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            FieldsIterSource::Map(fields) => fields.next(),
            FieldsIterSource::Encoded(reader) => read_field(reader).ok(),
        }
    }
}

fn read_field<'a>(reader: &mut Reader<'a>) -> Result<(&'a str, HeaderValue<'a>), DecodeError> {
    let offset = reader.offset();
    let name_length = usize::from(reader.u8("a header's name length")?);
    in_range(offset, "a header's name length", name_length, 1, headers::NAME_BYTES_MAX)?;
    let kind = reader.u8("a header's kind")?;
    if kind != KIND_TEXT && kind != KIND_BYTES {
        return Err(DecodeError::HeaderKind { offset: offset + 1, found: kind });
    }
    let value_length = usize::from(reader.u16("a header's value length")?);
    in_range(offset + 2, "a header's value length", value_length, 0, VALUE_BYTES_MAX)?;
    let name_offset = reader.offset();
    let name = reader.bytes(name_length, "a header's name")?;
    for (place, &found) in name.iter().enumerate() {
        if !headers::is_name_byte(found) {
            return Err(DecodeError::HeaderName { offset: name_offset + place, found });
        }
    }
    // Checked above to be ASCII.
    let name = std::str::from_utf8(name).unwrap_or_default();
    let value = match kind {
        KIND_TEXT => HeaderValue::Text(reader.text(value_length, "a header's text")?),
        _ => HeaderValue::Bytes(reader.bytes(value_length, "a header's bytes")?),
    };
    Ok((name, value))
}
