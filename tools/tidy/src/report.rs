//! What a rule reports.

use std::fmt;

/// One place that breaks one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, relative to the repository's root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, problem, remedy } = self;
        write!(f, "{path}:{line}: {rule}: {problem}; {remedy}")
    }
}

/// What `rule` finds in a tree of `files` (path, text), as `path:line`, in order.
#[cfg(test)]
pub(crate) fn found(rule: crate::rules::Rule, files: &[(&str, &str)]) -> Vec<String> {
    let mut report = Vec::new();
    rule(&crate::Tree::of(files), &mut report);
    report.sort();
    report.iter().map(|v| format!("{}:{}", v.path, v.line)).collect()
}

#[cfg(test)]
mod tests {
    use super::Violation;

    #[test]
    fn prints_place_rule_problem_and_remedy() {
        let violation = Violation {
            path: "src/a.rs".into(),
            line: 3,
            rule: "ascii",
            problem: "not ASCII".into(),
            remedy: "spell it in ASCII",
        };
        assert_eq!(violation.to_string(), "src/a.rs:3: ascii: not ASCII; spell it in ASCII");
    }
}
