//! Lines and rows, cut at every place.

use super::{Line, Lines, is_open};
use crate::run::parse::fields;

fn text(text: &str) -> Line {
    Line::Text(text.to_owned())
}

fn all(input: &[u8], line_bytes_max: u64) -> Vec<Line> {
    let mut lines = Lines::new(input, line_bytes_max);
    let mut all = Vec::new();
    while let Some((number, line)) = lines.next_line().unwrap() {
        all.push(line);
        assert_eq!(number, all.len() as u64);
    }
    assert_eq!(lines.bytes(), input.len() as u64);
    all
}

#[test]
fn line_ends_of_all_kinds() {
    assert_eq!(all(b"a\nb\r\n\nc", 9), [text("a"), text("b"), text(""), text("c")]);
    assert_eq!(all(b"\xEF\xBB\xBFa\n", 9), [text("a")]);
    assert_eq!(all(b"", 9), []);
}

#[test]
fn the_bound_is_exact_and_sizes_are_told() {
    assert_eq!(
        all(b"1234\n12345\n123456\n1", 5),
        [text("1234"), text("12345"), Line::TooLong(6), text("1")]
    );
    assert_eq!(all(b"12345\r\n1234567", 5), [text("12345"), Line::TooLong(7)]);
    let mut long = vec![b'x'; 1_000_000];
    long.extend_from_slice(b"\nshort\n");
    assert_eq!(all(&long, 10), [Line::TooLong(1_000_000), text("short")]);
}

#[test]
fn wrong_bytes_are_told_by_place() {
    assert_eq!(all(b"ab\xFFc\nok\n", 9), [Line::NotText(3), text("ok")]);
}

/// The rows, read in pieces of every small size: all must be the same.
fn rows(input: &[u8], line_bytes_max: u64) -> Vec<(u64, Line)> {
    let read = |size| {
        let reader = std::io::BufReader::with_capacity(size, input);
        let mut lines = Lines::new(reader, line_bytes_max);
        let mut rows = Vec::new();
        while let Some(row) = lines.next_row().unwrap() {
            rows.push(row);
        }
        assert_eq!(lines.bytes(), input.len() as u64);
        rows
    };
    let rows = read(1000);
    for size in 1..9 {
        assert_eq!(read(size), rows, "in pieces of {size}");
    }
    rows
}

#[test]
fn rows_go_on_while_a_quote_is_open() {
    assert_eq!(
        rows(b"a,\"b\n\"\"c\"\"\",d\ne\n\"open", 20),
        [(1, text("a,\"b\n\"\"c\"\"\",d")), (3, text("e")), (4, text("\"open"))]
    );
    assert_eq!(rows(b"\xEF\xBB\xBF\"a\nb\"\nc", 20), [(1, text("\"a\nb\"")), (3, text("c"))]);
    assert!(is_open("a,\"b") && is_open("\"\"\"") && is_open("\"a\nb,"));
    assert!(!is_open("a\"b") && !is_open("\"\"") && !is_open("\"a\"\"\",b\""));
}

#[test]
fn a_quote_inside_a_plain_field_opens_nothing() {
    assert_eq!(
        rows(b"5\" pipe,1\n\"x\" y\"\nfoo, \"2\nz", 20),
        [(1, text("5\" pipe,1")), (2, text("\"x\" y\"")), (3, text("foo, \"2")), (4, text("z"))]
    );
}

#[test]
fn rows_end_at_line_ends_of_all_kinds() {
    assert_eq!(
        rows(b"a\rb\r\n\"c\r\nd\re\"\n\nf\r", 20),
        [(1, text("a")), (2, text("b")), (3, text("\"c\r\nd\re\"")), (6, text("")), (7, text("f"))]
    );
}

#[test]
fn a_wrong_row_is_wrong_up_to_its_end() {
    assert_eq!(rows(b"\"a\n\xFF\n1,2\n\"\nok\n", 20), [(1, Line::NotText(4)), (5, text("ok"))]);
    assert_eq!(
        rows(b"\"a\n1234567\n1,2\n\"\r\n12345", 5),
        [(1, Line::TooLong(16)), (5, text("12345"))]
    );
}

#[test]
fn rows_are_those_of_the_parser() {
    let alphabet = b"a,\"\r\n";
    for seed in 0..5_usize.pow(6) {
        let mut rest = seed;
        let input = [(); 6].map(|()| {
            let byte = alphabet[rest % 5];
            rest /= 5;
            byte
        });
        let mut reader = csv::ReaderBuilder::new();
        let reader =
            reader.has_headers(false).flexible(true).buffer_capacity(8).from_reader(&input[..]);
        let want: Vec<Vec<String>> = reader
            .into_records()
            .map(|row| row.unwrap().iter().map(str::to_owned).collect())
            .collect();
        let mut lines = Lines::new(&input[..], 20);
        let mut got = Vec::new();
        while let Some((_, line)) = lines.next_row().unwrap() {
            match line {
                Line::Text(row) if row.is_empty() => {}
                Line::Text(row) if is_open(&row) => got.push(want[got.len()].clone()),
                Line::Text(row) => got.push(fields(&row).unwrap()),
                wrong => panic!("{wrong:?}"),
            }
        }
        assert_eq!(got, want, "{:?}", String::from_utf8_lossy(&input));
    }
}
