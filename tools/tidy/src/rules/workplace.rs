//! The repository speaks of the project only, never of the machine it was written on.

use crate::{Tree, Violation};

// Written in two parts, so that this file may be checked too.
const WORDS: &[&str] =
    &[concat!("/wo", "rk/"), concat!(".lib", "rary"), concat!("artif", "actory")];

/// Reports each line of a text file with one of the words, in any case.
pub(crate) fn check(tree: &Tree, report: &mut Vec<Violation>) {
    for file in tree.files() {
        for (index, line) in file.text.lines().enumerate() {
            let lower = line.to_ascii_lowercase();
            let Some(word) = WORDS.iter().find(|word| lower.contains(**word)) else {
                continue;
            };
            report.push(Violation {
                path: file.path.clone(),
                line: index + 1,
                rule: "workplace",
                problem: format!("`{word}` is about one machine"),
                remedy: "use a path relative to the repository, or leave it out",
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WORDS, check};
    use crate::report::found;

    #[test]
    fn finds_each_word_in_any_text_file() {
        for word in WORDS {
            let text = format!("fine\nsee {}x\n", word.to_ascii_uppercase());
            assert_eq!(found(check, &[("README.md", &text)]), ["README.md:2"], "{word}");
        }
        let clean = "a worker's work, in a library of artifacts\n";
        assert!(found(check, &[("README.md", clean)]).is_empty());
    }
}
