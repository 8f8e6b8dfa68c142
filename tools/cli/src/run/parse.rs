//! Text into values: what `parse` does, and how rows of CSV become objects.

use serde_json::{Map, Value};

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
    Ok(())
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

/// The fields of one row.
///
/// # Errors
/// In words.
pub fn fields(text: &str) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(text.len().clamp(64, 1 << 16))
        .from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    let some = reader.read_record(&mut record).map_err(|error| error.to_string())?;
    if !some {
        return Ok(vec![String::new()]);
    }
    Ok(record.iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::{parse, row};
    use crate::flow::model::Format;
    use crate::run::record::{Place, Record};

    fn record(text: &str) -> Record {
        let place = Place { file: Arc::from("a"), line: 1 };
        Record { text: text.into(), value: None, columns: None, place }
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
}
