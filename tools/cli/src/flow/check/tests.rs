//! The tick list of right and wrong flows, as text.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{CheckOptions, bytes_text, counted, run_check};

const FLOW: &str = r#"
flow = "test"
slip = ["parse", "archive"]
[input]
files = ["data-*.ndjson"]
[bus]
workers = 2
[stage.parse]
parse = {}
[stage.archive]
write = { path = "out/archive.ndjson" }
"#;

/// A folder with a flow and two files of input.
fn folder(flow: &str) -> TempDir {
    let folder = TempDir::new().expect("a scratch folder");
    fs::write(folder.path().join("flow.toml"), flow).expect("written");
    for name in ["data-1.ndjson", "data-2.ndjson"] {
        fs::write(folder.path().join(name), "{}\n".repeat(100)).expect("written");
    }
    folder
}

/// Exit code, standard output and standard error, without colours and without the folder.
fn run(folder: &Path, options: &CheckOptions) -> (u8, String, String) {
    let mut out = anstream::StripStream::new(Vec::new());
    let mut err = anstream::StripStream::new(Vec::new());
    let options = CheckOptions { path: folder.join("flow.toml"), ..options.clone() };
    let code = run_check(&options, &mut out, &mut err);
    let folder = format!("{}/", folder.display());
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("text");
        text.replace(&folder, "").replace(folder.trim_end_matches('/'), "DIR")
    };
    (code, text(out.into_inner()), text(err.into_inner()))
}

#[test]
fn a_right_flow_gets_its_ticks_and_nothing_is_created() {
    let folder = folder(FLOW);
    let (code, out, err) = run(folder.path(), &CheckOptions::default());
    let want = "\
\u{2713} syntax and keys          4 tables
\u{2713} slip                     2 hops, 2 stages
\u{2713} input                    2 files, 600 B
\u{2713} outputs writable         1 file
ok
";
    assert_eq!((code, out.as_str(), err.as_str()), (0, want, ""));
    assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 3);
}

#[test]
fn a_wrong_flow_is_exit_2_and_on_the_error_stream() {
    let folder = folder(&FLOW.replace("workers", "workres"));
    let (code, out, err) = run(folder.path(), &CheckOptions::default());
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.ends_with("flow.toml: 1 error; nothing was started\n"), "{err}");
}

#[test]
fn missing_input_and_unwritable_output_are_found_unless_left_out() {
    let flow = FLOW.replace("data-*", "none-*").replace("out/archive", "data-1.ndjson/archive");
    let folder = folder(&flow);
    let (code, out, _) = run(folder.path(), &CheckOptions::default());
    let want = "\
\u{2713} syntax and keys          4 tables
\u{2713} slip                     2 hops, 2 stages
\u{2717} input                    not found
    `none-*.ndjson`: no such file in DIR
\u{2717} outputs writable         1 file
    `archive`: `data-1.ndjson/archive.ndjson`: data-1.ndjson is not a folder
not ok
";
    assert_eq!((code, out.as_str()), (2, want));
    let options = CheckOptions { no_files: true, ..CheckOptions::default() };
    let (code, out, _) = run(folder.path(), &options);
    assert_eq!((code, out.lines().count()), (0, 3), "{out}");
}

/// Whoever asks: root may write where permissions say that nobody may.
#[cfg(unix)]
#[test]
fn a_folder_is_writable_when_the_system_says_so() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = folder(FLOW);
    let out = folder.path().join("out");
    fs::create_dir(&out).expect("created");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o555)).expect("set");
    let (code, said, _) = run(folder.path(), &CheckOptions::default());
    assert_eq!(fs::read_dir(&out).expect("read").count(), 0, "nothing is left behind");
    let writes = fs::write(out.join("tried"), "").is_ok();
    assert_eq!(code == 0, writes, "{said}");
    assert!(writes || said.contains("`out/archive.ndjson`: DIR/out: permission denied"), "{said}");
}

/// Nobody can, not even root.
#[cfg(target_os = "linux")]
#[test]
fn a_link_to_nowhere_and_another_folder_for_outputs() {
    let folder = folder(FLOW);
    let options = |out: &str| CheckOptions { out: Some(out.into()), ..CheckOptions::default() };
    let file = folder.path().join("data-1.ndjson");
    let (code, said, _) = run(folder.path(), &options(&file.display().to_string()));
    assert_eq!(code, 2);
    assert!(said.contains("data-1.ndjson is not a folder"), "{said}");
    let (code, said, _) = run(folder.path(), &options(&folder.path().display().to_string()));
    assert_eq!(code, 0, "{said}");
    std::os::unix::fs::symlink("gone", folder.path().join("out")).expect("linked");
    assert_eq!(run(folder.path(), &CheckOptions::default()).0, 2);
}

#[test]
fn every_missing_input_is_named() {
    let folder = folder(&FLOW.replace("\"data-*.ndjson\"", "\"x*\", \"y.ndjson\", \"data-*\""));
    let (_, out, _) = run(folder.path(), &CheckOptions::default());
    assert!(out.contains("`x*`: no such file") && out.contains("`y.ndjson`: no such"), "{out}");
}

#[test]
fn warnings_are_wrong_only_when_denied() {
    let folder = folder(&FLOW.replace("parse = {}", "permits = 3\nparse = {}"));
    let (code, _, err) = run(folder.path(), &CheckOptions::default());
    assert_eq!(code, 0);
    assert!(err.ends_with("flow.toml: 1 warning; the flow can be run\n"), "{err}");
    let options = CheckOptions { deny_warnings: true, ..CheckOptions::default() };
    let (code, out, err) = run(folder.path(), &options);
    assert_eq!(code, 2);
    assert!(out.ends_with("not ok\n"), "{out}");
    assert!(err.ends_with("flow.toml: 1 warning; warnings are denied\n"), "{err}");
}

#[test]
fn verbose_says_where_each_value_comes_from() {
    let folder = folder(&FLOW.replace("[stage.parse]", "[defaults]\nbatch = 8\n[stage.parse]"));
    let options = CheckOptions { verbose: true, ..CheckOptions::default() };
    let (code, out, _) = run(folder.path(), &options);
    assert_eq!(code, 0);
    let has = |key: &str, value: &str, origin: &str| {
        let line = format!("  {key:<32} {value:<24} {origin}");
        assert!(out.lines().any(|printed| printed == line), "{line}\nnot in\n{out}");
    };
    has("flow", "test", "line 2");
    has("bus.workers", "2", "line 7");
    has("bus.hop-limit", "1000", "default");
    has("stage.archive.batch", "8", "line 9, [defaults]");
    has("stage.archive.on-full", "block 5s", "default");
}

#[test]
fn a_missing_flow_file_is_exit_2() {
    let folder = TempDir::new().expect("a scratch folder");
    let (code, _, err) = run(folder.path(), &CheckOptions::default());
    assert_eq!(code, 2);
    assert!(err.starts_with("error: cannot read the flow file: "), "{err}");
}

#[test]
fn numbers_are_for_people() {
    assert_eq!(counted(1, "file"), "1 file");
    assert_eq!(counted(1_234_567, "stage"), "1,234,567 stages");
    let table = [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (812_345, "0.8 MB")];
    for (bytes, want) in table {
        assert_eq!(bytes_text(bytes), want);
    }
}

#[test]
fn the_quakes_example_is_fine() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quakes");
    let options = CheckOptions { deny_warnings: true, ..CheckOptions::default() };
    let (code, out, err) = run(&folder, &options);
    let want = "\
\u{2713} syntax and keys          9 tables
\u{2713} slip                     4 hops, 6 stages
\u{2713} input                    1 file, 0.8 MB
\u{2713} outputs writable         3 files
ok
";
    assert_eq!((code, out.as_str(), err.as_str()), (0, want, ""));
}
