//! The bytes of one segment in memory: mapped from its file, or on the heap for the simulated disk.
//!
//! All unsafe code of the log is here, behind two rules: bytes are handed out only below *stable*,
//! and written only from there on, by the one [`RegionWriter`]. So nothing that somebody may read
//! ever changes. What the types cannot enforce is left to the callers in this crate, and to the
//! directory's lock: that a file has one writer, and that nobody else writes below *stable*.

#![allow(unsafe_code, reason = "the one file of the log that touches memory by address")]

use std::cell::UnsafeCell;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};

use crate::sync::{AtomicU64, Ordering, fence};

const WORD: usize = 8;

enum Memory {
    Mapped(MmapRaw),
    Heap(Box<[UnsafeCell<u64>]>),
}

// SAFETY: the heap's cells are written by the one `RegionWriter` at or above `stable` only, and
// read below it only; `stable` is published with Release and read with Acquire.
unsafe impl Sync for Memory {}

impl Memory {
    fn pointer(&self) -> *mut u8 {
        match self {
            Self::Mapped(map) => map.as_mut_ptr(),
            // A slice of cells lies where its values lie.
            Self::Heap(words) => words.as_ptr().cast::<u8>().cast_mut(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Mapped(map) => map.len(),
            Self::Heap(words) => words.len() * WORD,
        }
    }
}

/// The readable part of a segment, which only grows.
pub struct Region {
    memory: Memory,
    /// Bytes below this never change.
    stable: AtomicU64,
}

/// The right to add bytes to a region. There is one.
pub struct RegionWriter {
    region: Arc<Region>,
    /// Whether the map itself may be written.
    is_writable: bool,
}

impl Region {
    /// Maps `file`, whose bytes below `stable` never change again.
    ///
    /// # Errors
    /// When the file cannot be mapped, or is shorter than `stable`.
    pub fn mapped(file: &File, stable: u64, is_writable: bool) -> io::Result<RegionWriter> {
        let options = MmapOptions::new();
        let map =
            if is_writable { options.map_raw(file)? } else { options.map_raw_read_only(file)? };
        Self::with_memory(Memory::Mapped(map), stable, is_writable)
    }

    /// Zeros on the heap that begin with `bytes`, all of them stable.
    ///
    /// # Errors
    /// When `bytes` are more than `size`.
    pub fn heap(size: usize, bytes: &[u8]) -> io::Result<RegionWriter> {
        let words = (0..size.div_ceil(WORD)).map(|_| UnsafeCell::new(0)).collect();
        let mut writer = Self::with_memory(Memory::Heap(words), 0, true)?;
        writer.append(bytes)?;
        Ok(writer)
    }

    fn with_memory(memory: Memory, stable: u64, is_writable: bool) -> io::Result<RegionWriter> {
        if stable > memory.size() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let region = Arc::new(Self { memory, stable: AtomicU64::new(stable) });
        Ok(RegionWriter { region, is_writable })
    }

    /// Bytes below this never change and can be read.
    #[inline]
    pub fn stable(&self) -> u64 {
        // ORDERING: Acquire, pairs with `RegionWriter::advance`.
        self.stable.load(Ordering::Acquire)
    }

    /// The bytes in `range`; `None` when it is not all stable.
    #[inline]
    pub fn bytes(&self, range: Range<u64>) -> Option<&[u8]> {
        if range.start > range.end || range.end > self.stable() {
            return None;
        }
        let start = usize::try_from(range.start).ok()?;
        let length = usize::try_from(range.end - range.start).ok()?;
        // SAFETY: `stable` is at most the size, so the start is inside the memory.
        let first = unsafe { self.memory.pointer().add(start) };
        // SAFETY: the range lies inside the memory, which lives as long as `self`; below `stable`
        // nothing is written any more, and what was written happens before the Acquire above.
        Some(unsafe { std::slice::from_raw_parts(first, length) })
    }
}

impl RegionWriter {
    /// The region, for readers.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Where the next bytes go.
    pub fn position(&self) -> u64 {
        // ORDERING: Relaxed: only this writer moves it.
        self.region.stable.load(Ordering::Relaxed)
    }

    /// Adds `bytes`, their first word last, so that whoever finds it in the file finds the rest.
    ///
    /// # Errors
    /// When they do not fit, or the region is mapped for reading.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let start = self.place(bytes.len())?;
        if !self.is_writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (first, rest) = bytes.split_at(bytes.len().min(WORD));
        // SAFETY: `place` saw that all bytes fit behind `start`.
        let target = unsafe { self.region.memory.pointer().add(start) };
        if !rest.is_empty() {
            // SAFETY: as above; `rest` is not empty, so a whole word lies before it.
            let behind = unsafe { target.add(WORD) };
            // SAFETY: the bytes at and above `stable` are handed out to nobody, and this is the
            // only writer; the source is a slice of somebody else.
            unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), behind, rest.len()) };
        }
        // ORDERING: Release, pairs with the end of the process: what it leaves in the file has the
        // first word only together with the rest.
        fence(Ordering::Release);
        if let Ok(word) = <[u8; WORD]>::try_from(first)
            && start.is_multiple_of(WORD)
        {
            let word = u64::from_le_bytes(word).to_le();
            #[expect(clippy::cast_ptr_alignment, reason = "aligned, see below")]
            let place = target.cast::<u64>();
            // SAFETY: the memory begins at a page or a word, and `start` is a multiple of eight;
            // the rest as for `rest`. One store, volatile so that it stays behind the fence.
            unsafe { place.write_volatile(word) };
        } else {
            // SAFETY: as for `rest`. No record is so short, nor begins elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(first.as_ptr(), target, first.len()) };
        }
        self.advance(bytes.len());
        Ok(())
    }

    /// Whether so many bytes fit.
    ///
    /// # Errors
    /// When they do not.
    pub fn check_room(&self, length: usize) -> io::Result<()> {
        self.place(length).map(drop)
    }

    /// Counts `length` bytes as readable that were written to the mapped file by other means.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn written(&mut self, length: usize) -> io::Result<()> {
        self.place(length)?;
        self.advance(length);
        Ok(())
    }

    /// Where `length` more bytes would go.
    fn place(&self, length: usize) -> io::Result<usize> {
        let start = usize::try_from(self.position()).map_err(io::Error::other)?;
        if length > self.region.memory.size() - start {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(start)
    }

    fn advance(&self, length: usize) {
        let stable = self.position() + length as u64;
        // ORDERING: Release, pairs with `Region::stable`: who sees it sees the bytes.
        self.region.stable.store(stable, Ordering::Release);
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.memory.size();
        f.debug_struct("Region").field("size", &size).field("stable", &self.stable()).finish()
    }
}

impl fmt::Debug for RegionWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegionWriter").field(&self.region).finish()
    }
}
