//! The repository is tidy.

#[test]
fn repository_is_tidy() {
    let violations =
        waystage_tidy::check(&waystage_tidy::root()).expect("the repository can be read");
    let list: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "{} violations:\n{}", list.len(), list.join("\n"));
}

#[test]
fn the_check_sees_the_repository() {
    let tree =
        waystage_tidy::Tree::read(&waystage_tidy::root()).expect("the repository can be read");
    for path in ["Cargo.toml", "src/sync.rs", "tools/tidy/src/lib.rs"] {
        assert!(tree.get(path).is_some(), "{path} is not in the tree");
    }
}
