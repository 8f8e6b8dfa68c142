//! A list of stage names that stands either in memory or in encoded bytes.
//!
//! Both halves of the codec use it: what a view hands out, the encoder takes, without copying
//! between. An encoded list is checked when the envelope is parsed, so its iterator never ends
//! early; it checks each name's UTF-8 once more, the price of having no unsafe code here.

#![deny(clippy::indexing_slicing)]

use std::fmt;

use super::reader::Reader;
use super::{DecodeError, NAME_BYTES_MAX};

/// A list of stage names.
#[derive(Clone, Copy)]
pub struct Names<'a>(NamesSource<'a>);

#[derive(Clone, Copy)]
enum NamesSource<'a> {
    Listed(&'a [&'a str]),
    Encoded { count: u16, bytes: &'a [u8] },
}

impl<'a> Names<'a> {
    /// No names.
    pub const EMPTY: Self = Self(NamesSource::Listed(&[]));

    /// Reads and checks `count` names.
    pub(super) fn read(
        reader: &mut Reader<'a>,
        count: u16,
        what: &'static str,
    ) -> Result<Self, DecodeError> {
        let start = *reader;
        for _ in 0..count {
            read_name(reader, what)?;
        }
        Ok(Self(NamesSource::Encoded { count, bytes: reader.since(&start) }))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            NamesSource::Listed(names) => names.len(),
            NamesSource::Encoded { count, .. } => usize::from(count),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names in order.
    #[must_use]
    pub fn iter(&self) -> NamesIter<'a> {
        NamesIter(match self.0 {
            NamesSource::Listed(names) => NamesIterSource::Listed(names.iter()),
            NamesSource::Encoded { bytes, .. } => NamesIterSource::Encoded(Reader::new(bytes)),
        })
    }
}

impl Default for Names<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<'a> From<&'a [&'a str]> for Names<'a> {
    fn from(names: &'a [&'a str]) -> Self {
        Self(NamesSource::Listed(names))
    }
}

impl<'a, const N: usize> From<&'a [&'a str; N]> for Names<'a> {
    fn from(names: &'a [&'a str; N]) -> Self {
        Self(NamesSource::Listed(names))
    }
}

impl PartialEq for Names<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Names<'_> {}

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for Names<'a> {
    type Item = &'a str;
    type IntoIter = NamesIter<'a>;

    fn into_iter(self) -> NamesIter<'a> {
        self.iter()
    }
}

/// Iterates over [`Names`].
#[derive(Debug, Clone)]
pub struct NamesIter<'a>(NamesIterSource<'a>);

#[derive(Debug, Clone)]
enum NamesIterSource<'a> {
    Listed(std::slice::Iter<'a, &'a str>),
    Encoded(Reader<'a>),
}

impl<'a> Iterator for NamesIter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        match &mut self.0 {
            NamesIterSource::Listed(names) => names.next().copied(),
            NamesIterSource::Encoded(reader) => read_name(reader, "a name").ok(),
        }
    }
}

fn read_name<'a>(reader: &mut Reader<'a>, what: &'static str) -> Result<&'a str, DecodeError> {
    let offset = reader.offset();
    let length = reader.u8(what)?;
    if length == 0 {
        return Err(DecodeError::OutOfRange {
            offset,
            what,
            low: 1,
            high: NAME_BYTES_MAX,
            found: 0,
        });
    }
    reader.text(usize::from(length), what)
}
