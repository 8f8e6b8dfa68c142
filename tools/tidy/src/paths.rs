//! Reads the paths of Rust code: `use` groups are flattened, and paths inside expressions count.

use crate::lexer::is_ident;

/// A path in code, such as `crate::coord::Parker`; a lone word is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CodePath<'a> {
    /// Where its last part stands, as an offset into the code.
    pub(crate) offset: usize,
    /// Its parts; a glob is `*`, and `self` in a group is left out.
    pub(crate) parts: Vec<&'a str>,
    /// The name behind `as`.
    pub(crate) alias: Option<&'a str>,
}

/// All paths in `code` (comments and strings blanked).
pub(crate) fn read(code: &str) -> Vec<CodePath<'_>> {
    let mut reader = Reader { code, at: 0, paths: Vec::new() };
    while reader.at < code.len() {
        if is_ident(code.as_bytes()[reader.at]) {
            let offset = reader.at;
            let word = reader.word();
            reader.tail(vec![word], offset);
        } else {
            reader.at += 1;
        }
    }
    reader.paths.retain(|path| path.parts.len() > 1);
    reader.paths
}

/// The offsets at which `word` stands as a whole word in `code`.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).is_some_and(|b| is_ident(bytes[b]));
        let after = bytes.get(at + word.len()).is_some_and(|&b| is_ident(b));
        !before && !after
    })
}

struct Reader<'a> {
    code: &'a str,
    at: usize,
    paths: Vec<CodePath<'a>>,
}

impl<'a> Reader<'a> {
    fn byte(&self) -> Option<u8> {
        self.code.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.byte().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn word(&mut self) -> &'a str {
        let start = self.at;
        while self.byte().is_some_and(is_ident) {
            self.at += 1;
        }
        &self.code[start..self.at]
    }

    /// Reads on behind `parts`, whose last part stands at `offset`.
    fn tail(&mut self, mut parts: Vec<&'a str>, mut offset: usize) {
        // rustfmt leaves no space before `::`; where there is one, a global path starts.
        while self.code[self.at..].starts_with("::") {
            self.at += 2;
            self.skip_space();
            match self.byte() {
                Some(b'{') => return self.group(&parts),
                Some(b'*') => {
                    offset = self.at;
                    parts.push("*");
                    self.at += 1;
                    break;
                }
                Some(byte) if is_ident(byte) => {
                    offset = self.at;
                    parts.push(self.word());
                }
                _ => break,
            }
        }
        if parts.len() > 1 && parts.last() == Some(&"self") {
            parts.pop();
        }
        let alias = self.alias();
        self.paths.push(CodePath { offset, parts, alias });
    }

    fn alias(&mut self) -> Option<&'a str> {
        let end = self.at;
        self.skip_space();
        if self.word() == "as" {
            self.skip_space();
            let name = self.word();
            if !name.is_empty() {
                return Some(name);
            }
        }
        self.at = end;
        None
    }

    fn group(&mut self, parts: &[&'a str]) {
        self.at += 1;
        while let Some(byte) = self.byte() {
            if byte == b'}' {
                self.at += 1;
                return;
            }
            let (offset, mut all) = (self.at, parts.to_vec());
            if byte == b'*' {
                self.at += 1;
                all.push("*");
                self.paths.push(CodePath { offset, parts: all, alias: None });
            } else if is_ident(byte) {
                all.push(self.word());
                self.tail(all, offset);
            } else {
                self.at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{read, words};

    fn check(code: &str, want: &[&str]) {
        let paths: Vec<String> = read(code)
            .iter()
            .map(|p| p.parts.join("::") + &p.alias.map(|a| format!(" as {a}")).unwrap_or_default())
            .collect();
        assert_eq!(paths, want, "paths of {code:?}");
    }

    #[test]
    fn groups_are_flattened() {
        check(
            "pub(crate) use crate::{a::b, c::{self, d as e, *}, f};",
            &["crate::a::b", "crate::c", "crate::c::d as e", "crate::c::*", "crate::f"],
        );
        check("use a::{\n    b,\n    c::d,\n};", &["a::b", "a::c::d"]);
        check("use a::b::*;", &["a::b::*"]);
        check("use ::std::thread;", &["std::thread"]);
    }

    #[test]
    fn expressions_and_types() {
        check("let x = crate::a::f(b::C::d());", &["crate::a::f", "b::C::d"]);
        check("Vec::<crate::a::B>::new()", &["crate::a::B"]);
        check("x as usize; match a::B { c => 1 }", &["a::B"]);
        check("a::b as u64", &["a::b as u64"]);
        check("self.a.b()", &[]);
    }

    #[test]
    fn whole_words_only() {
        let code = "unsafe unsafe_code my_unsafe unsafe";
        assert_eq!(words(code, "unsafe").collect::<Vec<_>>(), [0, 29]);
    }
}
