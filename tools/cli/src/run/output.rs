//! Output files: opened all or none, written in blocks, never losing count of their lines.
//!
//! A line is in the buffer or in the file, or its attempt has failed. What could not be written in
//! the end is told by [`Output::finish`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waystage::log::SinkFile;

use super::problem::{Problem, is_failure};
use crate::files::{Identity, Taken};
use crate::words::plain;

/// A buffer of this many bytes is written out.
const BLOCK_BYTES: usize = 1 << 16;

/// A file that the records of a stage are written to.
#[derive(Debug)]
pub struct Output {
    /// Its name, as the flow has it.
    pub name: String,
    path: PathBuf,
    to: To,
}

/// How lines get there.
#[derive(Debug)]
enum To {
    /// Through a buffer.
    File(Mutex<State>),
    /// With the settlements of a durable flow.
    Sink(Arc<SinkFile>),
}

#[derive(Debug)]
struct State {
    file: File,
    /// Where the whole lines in the file end.
    end: u64,
    /// What comes behind them: whole lines.
    buffer: Vec<u8>,
    /// Lines in the file and in the buffer.
    lines: u64,
    /// Whether what an earlier run left is gone.
    emptied: bool,
}

impl State {
    fn new(file: File) -> Self {
        Self { file, end: 0, buffer: Vec::new(), lines: 0, emptied: false }
    }
}

impl Output {
    /// Removes what an earlier run left. Before this nothing is appended.
    ///
    /// # Errors
    /// What the system says.
    pub fn empty(&self) -> io::Result<()> {
        let Some(mut state) = self.state() else { return Ok(()) };
        if !state.emptied {
            state.file.set_len(0)?;
            state.emptied = true;
        }
        Ok(())
    }

    /// Whether what an earlier run left is gone.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.state().is_none_or(|state| state.emptied)
    }

    /// The sink of a durable flow.
    #[must_use]
    pub fn sink(&self) -> Option<&Arc<SinkFile>> {
        match &self.to {
            To::File(_) => None,
            To::Sink(sink) => Some(sink),
        }
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        match &self.to {
            To::File(state) => Some(state.lock().unwrap_or_else(PoisonError::into_inner)),
            To::Sink(_) => None,
        }
    }

    /// Adds one line; `line` brings its own line end.
    ///
    /// # Errors
    /// The file refused a block, and the line is not part of it.
    pub fn append(&self, line: &[u8]) -> io::Result<()> {
        let Some(mut state) = self.state() else { return Err(io::ErrorKind::Unsupported.into()) };
        state.buffer.extend_from_slice(line);
        if state.buffer.len() >= BLOCK_BYTES
            && let Err(error) = state.flush()
        {
            // The last line is the last to be written, so it is still here.
            let rest = state.buffer.len() - line.len();
            state.buffer.truncate(rest);
            return Err(error);
        }
        state.lines += 1;
        Ok(())
    }

    /// Writes out what is in the buffer, for whoever reads the file meanwhile. A failure is told
    /// by the next block, or in the end.
    pub fn show(&self) {
        if let Some(mut state) = self.state() {
            let _ = state.flush();
        }
    }

    /// Writes out what is in the buffer; returns the lines in the file, those of this run where it
    /// is a sink.
    ///
    /// # Errors
    /// The lines that are in the file, those that are not, and why.
    pub fn finish(&self) -> Result<u64, (u64, u64, io::Error)> {
        let mut state = match &self.to {
            To::Sink(sink) => return Ok(sink.additions()),
            To::File(state) => state.lock().unwrap_or_else(PoisonError::into_inner),
        };
        let Err(error) = state.flush() else {
            return Ok(state.lines);
        };
        let lost = state.buffer.iter().filter(|byte| **byte == b'\n').count() as u64;
        Err((state.lines.saturating_sub(lost), lost, error))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl State {
    /// Writes the buffer out; lines of which the file did not take all stay, and are not in it.
    fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        let mut result = Ok(());
        while written < self.buffer.len() {
            match self.file.write(&self.buffer[written..]) {
                Ok(0) => {
                    result = Err(io::ErrorKind::WriteZero.into());
                    break;
                }
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if result.is_err() {
            let whole = self.buffer[..written].iter().rposition(|byte| *byte == b'\n');
            let whole = whole.map_or(0, |last| last + 1);
            if whole < written {
                // Why it could not be written is what is told.
                let _ = self.cut(self.end + whole as u64);
            }
            written = whole;
        }
        self.end += written as u64;
        self.buffer.drain(..written);
        result
    }

    /// Takes the part of a line that was written out of the file again: a disk that is full takes
    /// any part of a block. What cannot be taken out is written over by what comes next.
    fn cut(&mut self, end: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(end))?;
        self.file.set_len(end)
    }
}

/// What a stage writes to.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The stage.
    pub stage: String,
    /// The file, as the flow has it.
    pub name: String,
    /// Where that is.
    pub path: PathBuf,
}

/// Opens every output, or none: what was made is removed again when one of them fails. Nothing is
/// emptied yet: see [`Output::empty`].
///
/// # Errors
/// Every output that cannot be written, or that is taken: an input of the same run, say, or the
/// output of another stage, whatever its name.
pub fn open(wanted: &[Wanted], taken: &Taken) -> Result<Vec<Arc<Output>>, Vec<Problem>> {
    let mut made = Made::default();
    let mut problems = Vec::new();
    let mut opened: Vec<(Identity, &Wanted)> = Vec::new();
    let mut outputs = Vec::new();
    for wanted in wanted {
        let Wanted { stage, name, path } = wanted;
        match made.open(path, taken) {
            Err(Refusal::System(error)) => {
                let problem = Problem::new(
                    format!("output {name} ({}): {}", path.display(), plain(&error)),
                    "correct `path` of the stage, or write elsewhere with --out DIR",
                );
                problems.push(problem.failed(is_failure(&error)));
            }
            Err(Refusal::Taken(why)) => problems.push(Problem::new(
                format!("output {name}: {why}"),
                "records need a file of their own: give another `path`, or write elsewhere with \
                 --out DIR",
            )),
            Ok((file, place)) => {
                if let Some((_, before)) = opened.iter().find(|(other, _)| *other == place) {
                    let Wanted { stage: other, name: before, .. } = before;
                    problems.push(Problem::new(
                        format!(
                            "output {name} of `{stage}` is the same file as {before} of `{other}`"
                        ),
                        "send both to one stage, or give each a file of its own",
                    ));
                    continue;
                }
                opened.push((place, wanted));
                let (name, path) = (name.clone(), path.clone());
                let to = To::File(Mutex::new(State::new(file)));
                outputs.push(Arc::new(Output { name, path, to }));
            }
        }
    }
    if problems.is_empty() {
        return Ok(outputs);
    }
    made.undo();
    Err(problems)
}

/// The outputs of a durable flow, whose bus has opened them.
#[must_use]
pub fn sinks(wanted: &[Wanted], find: impl Fn(&str) -> Option<Arc<SinkFile>>) -> Vec<Arc<Output>> {
    let output = |Wanted { name, path, .. }: &Wanted| {
        let to = To::Sink(find(name)?);
        Some(Arc::new(Output { name: name.clone(), path: path.clone(), to }))
    };
    wanted.iter().filter_map(output).collect()
}

/// What was made while opening, newest last.
#[derive(Default)]
struct Made {
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

/// Why an output is not opened.
enum Refusal {
    System(io::Error),
    Taken(&'static str),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl Made {
    fn open(&mut self, path: &Path, taken: &Taken) -> Result<(File, Identity), Refusal> {
        // Before it is opened: opening a named pipe waits for a reader.
        if let Ok(metadata) = fs::metadata(path) {
            taken.check(&metadata).map_err(Refusal::Taken)?;
        }
        if let Some(folder) = path.parent() {
            self.make_folder(folder)?;
        }
        let existed = fs::metadata(path).is_ok();
        // Emptied later, once there is something to write.
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if !existed {
            // Where links lead to.
            self.files.push(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
        }
        let metadata = file.metadata()?;
        taken.check(&metadata).map_err(Refusal::Taken)?;
        Ok((file, Identity::from(&metadata)))
    }

    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        let missing = folder.ancestors().take_while(|folder| {
            !folder.as_os_str().is_empty() && fs::symlink_metadata(folder).is_err()
        });
        let missing: Vec<_> = missing.map(Path::to_owned).collect();
        for folder in missing.into_iter().rev() {
            match fs::create_dir(&folder) {
                Ok(()) => self.folders.push(folder),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn undo(self) {
        // Best effort: what cannot be removed is empty.
        for file in self.files {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.into_iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests;
