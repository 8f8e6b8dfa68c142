//! A scratch folder with a flow, and the command run in it.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::CommandCargoExt as _;
use serde_json::Value;
use tempfile::TempDir;

/// The feed of a week, and its flow.
pub(crate) const QUAKES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/quakes");

/// A folder that goes away with the test.
pub(crate) struct Scratch {
    folder: TempDir,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) data: String,
    pub(crate) talk: String,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with this flow as `flow.toml`.
    pub(crate) fn with_flow(flow: &str) -> Self {
        let scratch = Self::new();
        scratch.put("flow.toml", flow);
        scratch
    }

    /// A folder with a flow over `lines.ndjson` that parses and writes `out/all.ndjson`; `more` is
    /// added to its [input].
    pub(crate) fn with_lines(lines: impl AsRef<[u8]>, more: &str) -> Self {
        let scratch = Self::with_flow(&format!(
            "slip = [\"parse\", \"keep\"]\n\
             [input]\nfiles = [\"lines.ndjson\"]\nformat = \"ndjson\"\n{more}\n\
             [stage.parse]\nparse = {{ format = \"ndjson\" }}\n\
             [stage.keep]\nwrite = {{ path = \"out/all.ndjson\" }}\n"
        ));
        scratch.put("lines.ndjson", lines);
        scratch
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// How many lines a file has.
    pub(crate) fn lines(&self, name: &str) -> usize {
        self.read(name).lines().count()
    }

    /// The command, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.prepared(Command::cargo_bin("waystage").unwrap(), arguments)
    }

    /// Another command in the same place, not started yet.
    pub(crate) fn wrapped(&self, program: &str, arguments: &[&str]) -> Command {
        self.prepared(Command::new(program), arguments)
    }

    fn prepared(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.current_dir(self.folder.path()).args(arguments).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WAYSTAGE_")) {
            command.env_remove(name);
        }
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        Said::of(self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Runs with `--json` and reads the document.
    pub(crate) fn json(&self, arguments: &[&str]) -> (Value, Said) {
        let said = self.run(&[arguments, &["--json"]].concat());
        let document = serde_json::from_str(&said.data);
        (document.unwrap_or_else(|error| panic!("{error}: {said:?}")), said)
    }

    /// Starts the command with an open standard input, which gets `text`.
    pub(crate) fn start(&self, arguments: &[&str], text: &str) -> Child {
        // The tests may run where a hangup is ignored, and the command would obey that.
        let binary = Command::cargo_bin("waystage").unwrap();
        let mut command = self.wrapped("env", &["--default-signal=HUP"]);
        command.arg(binary.get_program()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.as_mut().expect("it was piped");
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
        child
    }
}

impl Said {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }
}

impl From<std::process::Output> for Said {
    fn from(output: std::process::Output) -> Self {
        Self {
            code: output.status.code(),
            data: String::from_utf8(output.stdout).unwrap(),
            talk: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The number at a JSON pointer.
pub(crate) fn number(document: &Value, pointer: &str) -> u64 {
    let value = document.pointer(pointer).unwrap_or_else(|| panic!("{pointer} in {document}"));
    value.as_u64().unwrap_or_else(|| panic!("{pointer} is {value}"))
}

/// `count` records with an id each.
pub(crate) fn records(count: usize) -> String {
    (0..count).map(|index| format!("{{\"id\":{index}}}\n")).collect()
}

/// Sends a signal to a child.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits, yielding, until `is_true`; panics after far too long.
pub(crate) fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let (_sender, never) = std::sync::mpsc::channel::<()>();
    for _ in 0..6000 {
        if is_true() {
            return;
        }
        let _ = never.recv_timeout(std::time::Duration::from_millis(10));
    }
    panic!("never: {what}");
}
