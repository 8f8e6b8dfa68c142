//! Going on with an input file where an earlier run ended: positions as the log keeps them.
//!
//! A position says which file, up to where, and what the last record was; a file of which that is
//! not true any more is another one, and nothing of it is skipped.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use twox_hash::XxHash3_64;

/// How far a file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The file's inode.
    pub inode: u64,
    /// Where the last record begins, in bytes.
    pub begin: u64,
    /// Where the next one begins.
    pub end: u64,
    /// Lines before that.
    pub lines: u64,
    /// Whether the last byte was a `\r`, so that a `\n` there ends no line.
    pub after_return: bool,
    /// Whether the last record had no line end.
    pub cut_short: bool,
    /// The checksum of the last record.
    pub checksum: u64,
}

/// Words of a position in bytes.
const WORDS: usize = 6;

impl Position {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let flags = u64::from(self.after_return) | u64::from(self.cut_short) << 1;
        let words = [self.inode, self.begin, self.end, self.lines, flags, self.checksum];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// From these bytes; `None` when they are no position.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: [[u8; 8]; WORDS] = words.try_into().ok().filter(|_| rest.is_empty())?;
        let [inode, begin, end, lines, flags, checksum] = words.map(u64::from_le_bytes);
        let (after_return, cut_short) = (flags & 1 != 0, flags & 2 != 0);
        Some(Self { inode, begin, end, lines, after_return, cut_short, checksum })
    }

    /// Whether the file is the one that was read, up to here; and where to go on. A line end that
    /// the last record got meanwhile is its own.
    ///
    /// # Errors
    /// In words: how it has changed, or why it cannot be read.
    pub fn check(mut self, path: &Path) -> Result<Self, String> {
        let words = |error: io::Error| crate::words::plain(&error);
        let mut file = File::open(path).map_err(words)?;
        let metadata = file.metadata().map_err(words)?;
        if metadata.ino() != self.inode {
            return Err("it is another file than the one that was read".to_owned());
        }
        if metadata.len() < self.end || self.end < self.begin {
            let (found, end) = (metadata.len(), self.end);
            return Err(format!("it has {found} bytes, and {end} were read"));
        }
        let length = usize::try_from(self.end - self.begin).map_err(|error| error.to_string())?;
        let mut record = vec![0; length];
        file.seek(SeekFrom::Start(self.begin)).map_err(words)?;
        file.read_exact(&mut record).map_err(words)?;
        if checksum(&record) != self.checksum {
            let begin = self.begin;
            return Err(format!("the record at byte {begin} is not the one that was read"));
        }
        if self.cut_short && metadata.len() > self.end {
            let mut next = Vec::new();
            file.take(2).read_to_end(&mut next).map_err(words)?;
            self.end += match next[..] {
                [b'\n', ..] => 1,
                [b'\r', b'\n'] => 2,
                _ => {
                    let end = self.end;
                    return Err(format!(
                        "its last line had no end at byte {end}, was taken for a record, and \
                         goes on now"
                    ));
                }
            };
        }
        Ok(self)
    }
}

/// The checksum of a record, whatever ends its line.
#[must_use]
pub fn checksum(record: &[u8]) -> u64 {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    let record = record.strip_prefix(MARK).unwrap_or(record);
    let is_text = |byte: &u8| !matches!(byte, b'\r' | b'\n');
    let begin = record.iter().position(is_text).unwrap_or(record.len());
    let end = record.iter().rposition(is_text).map_or(begin, |last| last + 1);
    XxHash3_64::oneshot(&record[begin..end])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Position, checksum};

    #[test]
    fn a_changed_file_is_not_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        fs::write(&path, "one\r\ntwo\r\nthree\r\n").unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap());
        let (begin, end, lines) = (5, 10, 2);
        let checksum = checksum(b"two");
        let (after_return, cut_short) = (false, false);
        let position = Position { inode, begin, end, lines, after_return, cut_short, checksum };
        assert_eq!(Position::from_bytes(&position.to_bytes()), Some(position));
        assert_eq!(Position::from_bytes(&position.to_bytes()[1..]), None);
        assert_eq!(position.check(&path), Ok(position));
        fs::write(&path, "one\r\ntwo\r\nthree\r\nand more").unwrap();
        assert_eq!(position.check(&path), Ok(position), "it may grow");
        let open = Position { begin: 12, end: 17, cut_short: true, ..position };
        let open = Position { checksum: super::checksum(b"three"), begin: 10, end: 15, ..open };
        assert_eq!(open.check(&path), Ok(Position { end: 17, ..open }), "its line end came");
        fs::write(&path, "one\r\ntwo\r\nthree and more").unwrap();
        assert!(open.check(&path).unwrap_err().contains("goes on now"));
        fs::write(&path, "one\r\ntwi\r\nthree\r\n").unwrap();
        assert!(position.check(&path).unwrap_err().contains("the record at byte 5"));
        fs::write(&path, "one\r\n").unwrap();
        assert!(position.check(&path).unwrap_err().contains("5 bytes"));
        fs::write(folder.path().join("new"), "one\r\ntwo\r\nthree\r\n").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(position.check(&path).unwrap_err().contains("another file"));
    }
}
