//! Outputs of a scratch folder.

use std::fs;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::Mutex;

#[cfg(target_os = "linux")]
use super::{Output, State, To};
use super::{Taken, Wanted, open};

fn wanted(folder: &Path, name: &str) -> Wanted {
    Wanted { stage: format!("to-{name}"), name: name.to_owned(), path: folder.join(name) }
}

#[test]
fn all_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| wanted(folder.path(), name);
    fs::write(folder.path().join("old"), "kept").unwrap();
    let problems =
        open(&[at("old"), at("new/deep/a"), at("old/b")], &Taken::default()).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].what.contains("old/b"), "{problems:?}");
    assert_eq!(fs::read_to_string(folder.path().join("old")).unwrap(), "kept");
    assert!(!folder.path().join("new").exists());
}

#[test]
fn lines_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| wanted(folder.path(), name);
    fs::write(folder.path().join("a"), "old text").unwrap();
    let outputs = open(&[at("a")], &Taken::default()).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "old text");
    outputs[0].empty().unwrap();
    let long = [&[b'x'; 40_000][..], b"\n"].concat();
    for _ in 0..3 {
        outputs[0].append(&long).unwrap();
    }
    outputs[0].append(b"last\n").unwrap();
    assert_eq!(outputs[0].finish().unwrap(), 4);
    let text = fs::read_to_string(folder.path().join("a")).unwrap();
    assert_eq!(text.len(), 3 * long.len() + 5);
}

/// Links lead two stages that know nothing of each other to one file.
#[test]
fn one_file_by_two_names_is_refused() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| wanted(folder.path(), name);
    fs::write(folder.path().join("old"), "kept").unwrap();
    fs::hard_link(folder.path().join("old"), folder.path().join("hard")).unwrap();
    symlink("old", folder.path().join("soft")).unwrap();
    symlink("new", folder.path().join("to-new")).unwrap();
    fs::create_dir(folder.path().join("real")).unwrap();
    symlink("real", folder.path().join("linked")).unwrap();
    for (one, other) in [
        ("old", "old"),
        ("old", "hard"),
        ("soft", "old"),
        ("to-new", "new"),
        ("real/a/b", "linked/a/b"),
    ] {
        let problems = open(&[at(one), at(other)], &Taken::default()).unwrap_err();
        let words = format!("{other} of `to-{other}` is the same file as {one} of `to-{one}`");
        assert!(problems[0].what.contains(&words), "{problems:?}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("old")).unwrap(), "kept");
    for made in ["new", "real/a"] {
        assert!(!folder.path().join(made).exists(), "{made}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_fails_the_attempt_and_loses_no_count() {
    let file = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let to = To::File(Mutex::new(State::new(file)));
    let output = Output { name: "full".to_owned(), path: "/dev/full".into(), to };
    let long = [&[b'x'; 40_000][..], b"\n"].concat();
    output.append(&long).unwrap();
    assert!(output.append(&long).is_err());
    let (written, lost, _) = output.finish().unwrap_err();
    assert_eq!((written, lost), (0, 1));
}
