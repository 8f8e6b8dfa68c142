//! Reads foreign bytes front to back: every length is checked, every error knows its offset.

#![deny(clippy::indexing_slicing)]

use super::DecodeError;

/// What is still to be read, and how much was read already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, offset: 0 }
    }

    /// Bytes read.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes not read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// What `reader`, a copy made earlier, has not read and this one has.
    pub(crate) fn since(&self, reader: &Self) -> &'a [u8] {
        let length = self.offset.saturating_sub(reader.offset);
        reader.rest.get(..length).unwrap_or_default()
    }

    pub(crate) fn bytes(
        &mut self,
        length: usize,
        what: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.truncated(length, what));
        };
        self.rest = rest;
        self.offset += length;
        Ok(taken)
    }

    /// A reader of the next `length` bytes alone, whose offsets go on from here.
    pub(crate) fn part(&mut self, length: usize, what: &'static str) -> Result<Self, DecodeError> {
        let offset = self.offset;
        Ok(Self { rest: self.bytes(length, what)?, offset })
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(self.truncated(N, what));
        };
        self.rest = rest;
        self.offset += N;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array(what).map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(crate) fn text(
        &mut self,
        length: usize,
        what: &'static str,
    ) -> Result<&'a str, DecodeError> {
        let start = self.offset;
        let bytes = self.bytes(length, what)?;
        std::str::from_utf8(bytes)
            .map_err(|error| DecodeError::NotText { offset: start + error.valid_up_to(), what })
    }

    /// Reads `length` bytes that must all be zero.
    pub(crate) fn zeros(&mut self, length: usize, what: &'static str) -> Result<(), DecodeError> {
        let start = self.offset;
        match self.bytes(length, what)?.iter().position(|&byte| byte != 0) {
            None => Ok(()),
            Some(place) => Err(DecodeError::NotZero { offset: start + place, what }),
        }
    }

    #[cold]
    fn truncated(&self, needed: usize, what: &'static str) -> DecodeError {
        DecodeError::Truncated { offset: self.offset, what, needed, found: self.rest.len() }
    }
}

/// Refuses a count or length outside `low..=high`.
pub(crate) fn in_range(
    offset: usize,
    what: &'static str,
    found: usize,
    low: usize,
    high: usize,
) -> Result<(), DecodeError> {
    if found < low || found > high {
        return Err(DecodeError::OutOfRange { offset, what, low, high, found });
    }
    Ok(())
}
