//! Finds `mod` items: those that name a file and those with a body.

use crate::lexer::is_ident;
use crate::paths::words;

/// A `mod` item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Module<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Where `mod` stands in the code.
    pub(crate) offset: usize,
    /// The range of its body; `None` for `mod name;`.
    pub(crate) body: Option<std::ops::Range<usize>>,
    /// Whether an attribute with `cfg(test` stands before it.
    pub(crate) test_only: bool,
}

/// All `mod` items in `code` (comments and strings blanked).
pub(crate) fn read(code: &str) -> Vec<Module<'_>> {
    words(code, "mod").filter_map(|offset| module_at(code, offset)).collect()
}

fn module_at(code: &str, offset: usize) -> Option<Module<'_>> {
    let rest = code[offset + 3..].trim_start();
    let name_at = code.len() - rest.len();
    let length = rest.bytes().position(|b| !is_ident(b))?;
    let name = &rest[..length];
    let after = rest[length..].trim_start();
    let after_at = code.len() - after.len();
    let body = match after.bytes().next()? {
        b';' => None,
        b'{' => Some(after_at..closing_brace(code, after_at)),
        _ => return None,
    };
    // The item starts behind the last statement or block; its attributes stand in between.
    let before = code[..offset].rfind([';', '{', '}']).map_or(0, |at| at + 1);
    let attributes: String = code[before..offset].split_whitespace().collect();
    let test_only =
        ["cfg(test", "cfg(all(test", "cfg(any(test"].iter().any(|form| attributes.contains(form));
    (name_at > offset + 3 && length > 0).then_some(Module { name, offset, body, test_only })
}

/// The end of the block that opens at `open`.
fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// How many modules with a body surround `offset`.
pub(crate) fn depth_at(modules: &[Module<'_>], offset: usize) -> usize {
    let around = |m: &&Module<'_>| m.body.as_ref().is_some_and(|body| body.contains(&offset));
    modules.iter().filter(around).count()
}

#[cfg(test)]
mod tests {
    use super::{depth_at, read};

    #[test]
    fn files_bodies_and_attributes() {
        let code =
            "pub mod a;\n#[cfg(test)]\nmod tests;\nmod b { mod c { x } }\nlet model = mod_x;";
        let modules = read(code);
        let names: Vec<_> =
            modules.iter().map(|m| (m.name, m.body.is_some(), m.test_only)).collect();
        let want =
            [("a", false, false), ("tests", false, true), ("b", true, false), ("c", true, false)];
        assert_eq!(names, want);
        assert_eq!(depth_at(&modules, code.find('x').expect("x stands in c")), 2);
        assert_eq!(depth_at(&modules, 0), 0);
    }
}
