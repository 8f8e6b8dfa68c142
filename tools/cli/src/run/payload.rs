//! A record as the log keeps it: where it stands, its text, and how that was read. Its value is
//! read again, as the text says it.

use std::sync::Arc;

use serde_json::{Value, json};
use waystage::envelope::{Payload, PayloadError};

use super::parse::parse;
use super::record::{Place, Record};
use crate::flow::model::Format;

impl Payload for Record {
    const CONTENT_TYPE: &'static str = "application/vnd.waystage.record+json";

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), PayloadError> {
        let columns = self.columns.as_deref();
        let read = self.read_as.filter(|_| self.value.is_some()).map(Format::name);
        let Place { file, line } = &self.place;
        let record = json!([&**file, line, self.text, read, columns]);
        serde_json::to_writer(out, &record).map_err(PayloadError::encode)
    }

    fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let wrong = || PayloadError::decode("it is no record of a flow");
        let record: Value = serde_json::from_slice(bytes).map_err(PayloadError::decode)?;
        let [file, line, text, read, columns] =
            <[Value; 5]>::try_from(take_list(record).ok_or_else(wrong)?)
                .map_err(|_other_length| wrong())?;
        let file: Arc<str> = file.as_str().ok_or_else(wrong)?.into();
        let place = Place { file, line: line.as_u64().ok_or_else(wrong)? };
        let Value::String(text) = text else { return Err(wrong()) };
        let names = |list: Vec<Value>| {
            let name = |value: Value| value.as_str().map(str::to_owned);
            list.into_iter().map(name).collect::<Option<Vec<String>>>()
        };
        let columns = match columns {
            Value::Null => None,
            list => Some(take_list(list).and_then(names).ok_or_else(wrong)?.into()),
        };
        let mut record = Self { text, value: None, read_as: None, columns, place };
        if let Some(name) = read.as_str() {
            let format = Format::of_name(name).ok_or_else(wrong)?;
            parse(&mut record, format).map_err(PayloadError::decode)?;
        }
        Ok(record)
    }
}

fn take_list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(list) => Some(list),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use waystage::envelope::Payload as _;

    use super::{Format, Place, Record, parse};

    #[test]
    fn records_come_back_as_they_were() {
        let columns: std::sync::Arc<[String]> = ["a".to_owned(), "b".to_owned()].into();
        for (text, columns, format) in [
            ("{\"mag\": 1.50, \"n\": 12345678901234567890}", None, Some(Format::Ndjson)),
            ("1,\"x \"\"y\"\"\"", Some(columns), Some(Format::Csv)),
            ("a line", None, Some(Format::Lines)),
            ("{ not read", None, None),
        ] {
            let place = Place { file: "in".into(), line: 7 };
            let mut record =
                Record { text: text.to_owned(), value: None, read_as: None, columns, place };
            if let Some(format) = format {
                parse(&mut record, format).unwrap();
            }
            let mut bytes = Vec::new();
            record.encode(&mut bytes).unwrap();
            assert_eq!(Record::decode(&bytes).unwrap(), record);
            for end in 0..bytes.len() {
                assert!(Record::decode(&bytes[..end]).is_err(), "{end}");
            }
        }
        for strange in ["[]", "{}", "[1,2,3,4,5]", "[\"a\",1,\"t\",\"xml\",null]", "null"] {
            assert!(Record::decode(strange.as_bytes()).is_err(), "{strange}");
        }
    }
}
