//! Command lines as a shell takes them again, for what is proposed to do next.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A word of a command line, in quotes where the shell would read it otherwise.
#[must_use]
pub fn word(word: &OsStr) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.bytes().all(is_plain) => text.to_owned(),
        Some(text) if !text.contains(char::is_control) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => {
            let mut quoted = "$'".to_owned();
            for byte in word.as_bytes() {
                // Writing to a string does not fail.
                let _ = match byte {
                    b'\\' | b'\'' => write!(quoted, "\\{}", char::from(*byte)),
                    b' '..=b'~' => write!(quoted, "{}", char::from(*byte)),
                    _ => write!(quoted, "\\{byte:03o}"),
                };
            }
            quoted + "'"
        }
    }
}

/// The name of a file as a word that no command takes for a flag.
#[must_use]
pub fn file(path: &Path) -> String {
    if path.as_os_str().as_bytes().starts_with(b"-") {
        return word(Path::new(".").join(path).as_os_str());
    }
    word(path.as_os_str())
}

/// A command as it was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typed(Vec<OsString>);

impl Typed {
    /// One of these arguments.
    pub fn new(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self(arguments.into_iter().map(Into::into).collect())
    }

    /// The same with this flag, in place of what it said of it; `value` is empty for a switch.
    #[must_use]
    pub fn with(&self, flag: &str, value: &str) -> String {
        let end = self.0.iter().position(|argument| argument == "--").unwrap_or(self.0.len());
        let (flags, files) = self.0.split_at(end);
        let assigned = format!("{flag}=");
        let mut words = Vec::with_capacity(self.0.len() + 2);
        let mut flags = flags.iter();
        while let Some(argument) = flags.next() {
            if argument == flag {
                if !value.is_empty() {
                    let _its_value = flags.next();
                }
            } else if !argument.as_bytes().starts_with(assigned.as_bytes()) {
                words.push(argument.as_os_str());
            }
        }
        words.push(OsStr::new(flag));
        words.extend(Some(OsStr::new(value)).filter(|value| !value.is_empty()));
        words.extend(files.iter().map(OsString::as_os_str));
        line(words)
    }
}

impl std::fmt::Display for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&line(self.0.iter().map(OsString::as_os_str)))
    }
}

fn line<'w>(words: impl IntoIterator<Item = &'w OsStr>) -> String {
    let words = words.into_iter().map(word);
    std::iter::once("waystage".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;

    use super::{Typed, file, word};

    #[test]
    fn words_and_files() {
        let words = ["a/b-1.x", "", "a b", "it's", "~x", "*", "a\nb"].map(OsStr::new).map(word);
        let want = ["a/b-1.x", "''", "'a b'", "'it'\\''s'", "'~x'", "'*'", "$'a\\012b'"];
        assert_eq!(words, want);
        assert_eq!(word(OsStr::from_bytes(b"\xFF'x")), "$'\\377\\'x'");
        let files = ["-x", "~x", "--help me", "x"].map(Path::new).map(file);
        assert_eq!(files, ["./-x", "'~x'", "'./--help me'", "x"]);
    }

    #[test]
    fn a_flag_stands_once_and_before_the_files() {
        let typed = Typed::new(["run", "f", "--json", "--drain", "1s", "--drain=2s", "--", "-x"]);
        assert_eq!(typed.to_string(), "waystage run f --json --drain 1s --drain=2s -- -x");
        let again = typed.with("--json", "");
        assert_eq!(again, "waystage run f --drain 1s --drain=2s --json -- -x");
        assert_eq!(typed.with("--drain", "5m"), "waystage run f --json --drain 5m -- -x");
        assert_eq!(Typed::new(["run"]).with("--json", ""), "waystage run --json");
    }
}
