//! Text into values: what `parse` does, and how rows of CSV become objects.

use std::collections::HashSet;
use std::io::Read as _;

use serde_json::{Map, Value};

use super::lines::is_open;
use super::record::Record;
use crate::flow::model::Format;

/// Reads the record's text, unless that was done already.
///
/// # Errors
/// Why it cannot be read, in words. Another attempt would say the same.
pub fn parse(record: &mut Record, format: Format) -> Result<(), String> {
    if record.value.is_some() {
        return Ok(());
    }
    let value = match format {
        Format::Ndjson => json(&record.text)?,
        Format::Csv => row(&record.text, record.columns.as_deref())?,
        Format::Lines => Value::String(record.text.clone()),
    };
    record.value = Some(value);
    record.read_as = Some(format);
    Ok(())
}

/// Whether the text is one value of JSON, as [`parse`] reads it.
#[must_use]
pub fn is_json(text: &str) -> bool {
    json(text).is_ok()
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| {
        let words = error.to_string();
        // The line within the record is always the first: only the column tells something.
        match words.split_once(" at line ") {
            Some((words, _)) => format!("{words} at column {}", error.column()),
            None => words,
        }
    })
}

/// One row as an object of strings; without columns as a list of strings.
///
/// # Errors
/// In words, when it is no row or has other fields than the header.
pub fn row(text: &str, columns: Option<&[String]>) -> Result<Value, String> {
    let fields = fields(text)?;
    let Some(columns) = columns else {
        return Ok(fields.into_iter().map(Value::String).collect());
    };
    if fields.len() != columns.len() {
        return Err(format!("{} fields, but the header has {}", fields.len(), columns.len()));
    }
    let pairs = columns.iter().cloned().zip(fields.into_iter().map(Value::String));
    Ok(Value::Object(pairs.collect::<Map<_, _>>()))
}

/// The names of a header.
///
/// # Errors
/// In words, when it is no row, or when a name is empty or there twice.
pub fn header(text: &str) -> Result<Vec<String>, String> {
    let names = fields(text)?;
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    let mut told = HashSet::new();
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() {
            wrong.push(format!("column {} has no name", index + 1));
        } else if !seen.insert(name) && told.insert(name) {
            wrong.push(format!("more than one column is named `{}`", name.escape_debug()));
        }
    }
    if wrong.is_empty() { Ok(names) } else { Err(format!("the header: {}", wrong.join("; "))) }
}

/// The fields of one row.
///
/// # Errors
/// In words, when a quote is never closed or the text is more than one row.
pub fn fields(text: &str) -> Result<Vec<String>, String> {
    if is_open(text) {
        return Err("a quote is opened and never closed".to_owned());
    }
    // The reader drops a byte order mark at its very start: here it would be a field's text.
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(text.len().clamp(64, 1 << 16))
        .from_reader(b"\n".chain(text.as_bytes()));
    let mut record = csv::StringRecord::new();
    let mut read = |record: &mut csv::StringRecord| {
        reader.read_record(record).map_err(|error| error.to_string())
    };
    if !read(&mut record)? {
        return Ok(vec![String::new()]);
    }
    let fields = record.iter().map(str::to_owned).collect();
    if read(&mut record)? {
        return Err("a line end inside it: more than one row".to_owned());
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{fields, header, parse, row};
    use crate::flow::model::Format;
    use crate::run::record::{Place, Record};

    fn record(text: &str) -> Record {
        let place = Place { file: Arc::from("a"), line: 1 };
        Record { text: text.into(), value: None, read_as: None, columns: None, place }
    }

    #[test]
    fn every_format() {
        for (format, text, want) in [
            (Format::Ndjson, r#"{"b":1.50,"a":[]}"#, json!({"b": 1.5, "a": []}).to_string()),
            (Format::Csv, r#"a,"b ""c""",,d"#, json!(["a", "b \"c\"", "", "d"]).to_string()),
            (Format::Lines, "a \"line\"", json!("a \"line\"").to_string()),
        ] {
            let mut record = record(text);
            parse(&mut record, format).unwrap();
            let got = record.value.unwrap().to_string().replace("1.50", "1.5");
            assert_eq!(got, want);
        }
    }

    #[test]
    fn errors_name_the_column() {
        let mut broken = record(r#"{"a": 1 "b": 2}"#);
        let words = parse(&mut broken, Format::Ndjson).unwrap_err();
        assert_eq!(words, "expected `,` or `}` at column 9");
        assert!(broken.value.is_none());
    }

    #[test]
    fn rows_need_the_header_s_fields() {
        let columns = ["a".to_owned(), "b".to_owned()];
        assert_eq!(row("1,2", Some(&columns)).unwrap(), json!({"a": "1", "b": "2"}));
        let words = row("1,2,3", Some(&columns)).unwrap_err();
        assert_eq!(words, "3 fields, but the header has 2");
    }

    #[test]
    fn nothing_after_the_first_row_is_dropped() {
        assert!(fields("1,2\r3,4").unwrap_err().contains("more than one row"));
        assert!(fields("5\" pipe,1\nfoo,2").unwrap_err().contains("more than one row"));
        assert!(fields("1,\"2\n3,4").unwrap_err().contains("never closed"));
        assert_eq!(fields("\u{FEFF}\"a\",5\" b").unwrap(), ["\u{FEFF}\"a\"", "5\" b"]);
        assert_eq!(fields("1,\"2\r\n3\"\r\n").unwrap(), ["1", "2\r\n3"]);
    }

    #[test]
    fn a_header_names_every_column_once() {
        assert_eq!(header("a,A, a").unwrap(), ["a", "A", " a"]);
        assert_eq!(
            header("a,b,a,,a,\"b\"").unwrap_err(),
            "the header: more than one column is named `a`; column 4 has no name; \
             more than one column is named `b`"
        );
    }
}
