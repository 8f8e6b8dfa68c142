//! Finds the value at a JSON pointer in text, without building the document.
//!
//! The reader needs one id of each record, on one thread; the whole record is read later by a
//! stage, on many. What is not JSON gives no id here and is found wrong there.

use std::borrow::Cow;

use jsonptr::Pointer;
use serde_json::Value;

/// The string or number at `pointer`, as the text of an id; of equal keys the last, as everywhere.
#[must_use]
pub fn id_at(text: &str, pointer: &Pointer) -> Option<String> {
    let mut found = text;
    for token in pointer.tokens() {
        let token = token.decoded();
        found = match found.trim_start().as_bytes().first()? {
            b'{' => member(found, &token)?,
            b'[' => element(found, token.parse().ok()?)?,
            _ => return None,
        };
    }
    match serde_json::from_str(found).ok()? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn member<'t>(object: &'t str, wanted: &str) -> Option<&'t str> {
    let mut scan = Scan { text: object, at: 0 };
    let mut found = None;
    scan.expect(b'{')?;
    if scan.peek()? == b'}' {
        return None;
    }
    loop {
        let key = scan.value()?;
        scan.expect(b':')?;
        let value = scan.value()?;
        if unquote(key)? == wanted {
            found = Some(value);
        }
        match scan.next()? {
            b',' => {}
            b'}' => return found,
            _ => return None,
        }
    }
}

fn element(list: &str, wanted: usize) -> Option<&str> {
    let mut scan = Scan { text: list, at: 0 };
    scan.expect(b'[')?;
    for index in 0.. {
        let value = scan.value()?;
        if index == wanted {
            return Some(value);
        }
        scan.expect(b',')?;
    }
    None
}

fn unquote(key: &str) -> Option<Cow<'_, str>> {
    let inner = key.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(key).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// A place in JSON text. It tells values apart; whether they are right is asked later.
struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    /// Skips one value and returns its text.
    fn value(&mut self) -> Option<&'t str> {
        let first = self.peek()?;
        let begin = self.at;
        let bytes = self.text.as_bytes();
        match first {
            b'"' => self.string()?,
            b'{' | b'[' => {
                let mut depth = 0_usize;
                loop {
                    match *bytes.get(self.at)? {
                        b'"' => {
                            self.string()?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':');
                while bytes.get(self.at).is_some_and(|byte| !is_end(byte)) {
                    self.at += 1;
                }
            }
        }
        self.text.get(begin..self.at)
    }

    fn string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        loop {
            match *bytes.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jsonptr::Pointer;

    use super::id_at;

    fn check(text: &str, pointer: &'static str, want: Option<&str>) {
        let found = id_at(text, Pointer::from_static(pointer));
        assert_eq!(found.as_deref(), want, "{pointer} in {text}");
    }

    #[test]
    fn finds_strings_and_numbers_anywhere() {
        let text = r#" {"a" : {"x": [1, {"id": "in\"ner"}]}, "id" : "k1" , "n": -1.50,"b":true} "#;
        check(text, "/id", Some("k1"));
        check(text, "/n", Some("-1.50"));
        check(text, "/a/x/0", Some("1"));
        check(text, "/a/x/1/id", Some("in\"ner"));
        check(text, "/b", None);
        check(text, "/a", None);
        check(text, "/a/x/2", None);
        check(text, "/id/x", None);
        check(r#"{"a/b":{"~":"deep"},"\u0061":"last","a":"first","a":"last"}"#, "/a", Some("last"));
        check(r#"{"a/b":{"~":"deep"}}"#, "/a~1b/~0", Some("deep"));
        check("7", "", Some("7"));
        check("{}", "/a", None);
        check("[]", "/0", None);
    }

    #[test]
    fn what_is_not_json_has_no_id() {
        for text in
            ["", "{", r#"{"id"#, r#"{"id":"#, r#"{"id":"a"#, r#"{"id":"a\"#, "[1,", "]", "{]"]
        {
            check(text, "/id", None);
        }
        check(r#"{"id":"a" "b":1}"#, "/id", None);
    }
}
