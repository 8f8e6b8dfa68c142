//! Tells code, comments and strings of Rust source apart.
//!
//! Knows nested block comments, raw strings, and character literals beside lifetimes. It blanks
//! what is not asked for and keeps every line break, so that offsets and lines stay true.

/// What a byte of the source belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Code,
    Comment,
    Literal,
}

/// The source with everything but code blanked, and with everything but comments blanked.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// Code; the quotes of literals are blanked with their content.
    pub(crate) code: String,
    /// Comments, doc comments among them.
    pub(crate) comments: String,
}

/// Splits `text` into its views.
pub(crate) fn split(text: &str) -> Views {
    let bytes = text.as_bytes();
    let mut classes = vec![Class::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let (class, end) = token(bytes, at);
        classes[at..end].fill(class);
        at = end;
    }
    let view = |wanted| {
        let kept = bytes
            .iter()
            .zip(&classes)
            .map(|(&byte, &class)| if class == wanted || byte == b'\n' { byte } else { b' ' });
        String::from_utf8_lossy(&kept.collect::<Vec<_>>()).into_owned()
    };
    Views { code: view(Class::Code), comments: view(Class::Comment) }
}

/// The class of what starts at `at`, and where it ends.
fn token(bytes: &[u8], at: usize) -> (Class, usize) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        return (Class::Comment, at + length);
    }
    if rest.starts_with(b"/*") {
        return (Class::Comment, block_comment_end(bytes, at));
    }
    if rest[0] == b'"' {
        return (Class::Literal, string_end(bytes, at));
    }
    if rest[0] == b'\'' {
        return match char_end(bytes, at) {
            Some(end) => (Class::Literal, end),
            None => (Class::Code, at + 1),
        };
    }
    if is_ident(rest[0]) {
        return word(bytes, at);
    }
    (Class::Code, at + 1)
}

/// A word: code, unless it is the prefix of a raw string.
fn word(bytes: &[u8], at: usize) -> (Class, usize) {
    let end = at + bytes[at..].iter().position(|&b| !is_ident(b)).unwrap_or(bytes.len() - at);
    if matches!(&bytes[at..end], b"r" | b"br" | b"cr") {
        let hashes = bytes[end..].iter().take_while(|&&b| b == b'#').count();
        if bytes.get(end + hashes) == Some(&b'"') {
            let mut close = vec![b'"'];
            close.resize(hashes + 1, b'#');
            let body = end + hashes + 1;
            let length = bytes[body..].windows(close.len()).position(|w| w == close);
            return (Class::Literal, length.map_or(bytes.len(), |l| body + l + close.len()));
        }
    }
    (Class::Code, end)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of the character literal at `start`, or `None` when a lifetime starts there.
fn char_end(bytes: &[u8], start: usize) -> Option<usize> {
    let first = *bytes.get(start + 1)?;
    if first == b'\\' {
        let close = bytes[start + 3..].iter().position(|&b| b == b'\'')?;
        return Some(start + 3 + close + 1);
    }
    let width = match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    (bytes.get(start + 1 + width) == Some(&b'\'')).then_some(start + 2 + width)
}

/// Whether `byte` may stand in an identifier.
pub(crate) fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::split;

    fn check(text: &str, code: &str, comments: &str) {
        let views = split(text);
        let squeeze = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeeze(&views.code), code, "code of {text:?}");
        assert_eq!(squeeze(&views.comments), comments, "comments of {text:?}");
        assert_eq!(views.code.len(), text.len());
        assert_eq!(views.code.matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn comments() {
        check("a // b\nc", "a c", "// b");
        check("//! d\n/// e\nf", "f", "//! d /// e");
        check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
        check("a /* open", "a", "/* open");
    }

    #[test]
    fn strings() {
        check(r#"a("b // c \" d") // e"#, "a( ) // e".trim_end_matches(" // e"), "// e");
        check("a(r#\"b \" // c\"#, d)", "a( , d)", "");
        check("a(br\"b\\\", c)", "a( , c)", "");
        check("a(\"two\nlines\")", "a( )", "");
        check("radar(r)", "radar(r)", "");
        check("a(\"open", "a(", "");
    }

    #[test]
    fn characters_and_lifetimes() {
        check("f('\"', b'\\'', '\\\\', '/')", "f( , b , , )", "");
        check("fn f<'a>(x: &'a str) -> &'static str", "fn f<'a>(x: &'a str) -> &'static str", "");
        check("a('\u{e9}', '\\u{e9}') // \u{e9}", "a( , )", "// \u{e9}");
    }
}
