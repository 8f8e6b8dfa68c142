//! A small table: no borders, one header line, numbers to the right.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr as _;

use crate::style::STRONG;

/// Which side a column is aligned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Prints rows under their header.
///
/// # Errors
/// The writer took no more.
pub fn print(
    header: &[(&str, Side)],
    rows: &[Vec<String>],
    data: &mut dyn Write,
) -> io::Result<()> {
    let width = |column: usize, title: &str| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain([title.width()]).max().unwrap_or(0)
    };
    let columns: Vec<_> = header
        .iter()
        .enumerate()
        .map(|(column, (title, side))| (width(column, title), *side))
        .collect();
    let titles = header.iter().map(|(title, _)| *title);
    writeln!(data, "{STRONG}{}{STRONG:#}", line(&columns, titles))?;
    for row in rows {
        writeln!(data, "{}", line(&columns, row.iter().map(String::as_str)))?;
    }
    Ok(())
}

/// One line of cells, each as wide as its column.
#[must_use]
pub fn line<'a>(columns: &[(usize, Side)], cells: impl Iterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for ((width, side), cell) in columns.iter().zip(cells) {
        let space = " ".repeat(width.saturating_sub(cell.width()));
        if !line.is_empty() {
            line.push_str("  ");
        }
        match side {
            Side::Left => line.extend([cell, &space]),
            Side::Right => line.extend([&space, cell]),
        }
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::{Side, print};

    #[test]
    fn cells_are_as_wide_as_their_column() {
        let mut data = Vec::new();
        let rows =
            [vec!["a".to_owned(), "1,000".to_owned()], vec!["long".to_owned(), "7".to_owned()]];
        print(&[("NAME", Side::Left), ("N", Side::Right)], &rows, &mut data).unwrap();
        let text = anstream::adapter::strip_bytes(&data).into_vec();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, "NAME      N\na     1,000\nlong      7\n");
    }
}
