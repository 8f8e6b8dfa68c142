//! The table of stages, as wide as the terminal: a narrow one gets fewer columns, and is told so.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use unicode_width::UnicodeWidthStr as _;
use waystage::StageSnapshot;
use waystage::metrics::Quantiles;

use super::Report;
use super::text::{NAME_CHARACTERS_MAX, wrapped};
use crate::style::STRONG;
use crate::words::{count, microseconds, rate, shortened};

/// Columns by their place among the [`cells`] of a stage, each with its title.
type Columns = [(usize, &'static str)];

/// All columns, then ever fewer.
const CHOICES: [&Columns; 6] = [
    &[
        (0, "STAGE"),
        (1, "IN"),
        (2, "DONE"),
        (3, "RETRIED"),
        (4, "DEAD"),
        (5, "WAIT \u{b5}s p50"),
        (6, "p99"),
        (7, "p99.9"),
        (8, "SERVICE \u{b5}s p50"),
        (9, "p99"),
        (10, "p99.9"),
        (11, "RATE/s"),
    ],
    &[
        (0, "STAGE"),
        (1, "IN"),
        (2, "DONE"),
        (3, "RETRIED"),
        (4, "DEAD"),
        (5, "WAIT \u{b5}s p50"),
        (6, "p99"),
        (8, "SERVICE \u{b5}s p50"),
        (9, "p99"),
        (11, "RATE/s"),
    ],
    &[
        (0, "STAGE"),
        (1, "IN"),
        (2, "DONE"),
        (3, "RETRIED"),
        (4, "DEAD"),
        (6, "WAIT \u{b5}s p99"),
        (9, "SERVICE \u{b5}s p99"),
        (11, "RATE/s"),
    ],
    &[
        (0, "STAGE"),
        (1, "IN"),
        (2, "DONE"),
        (4, "DEAD"),
        (6, "WAIT \u{b5}s p99"),
        (9, "SERVICE \u{b5}s p99"),
    ],
    &[(0, "STAGE"), (1, "IN"), (2, "DONE"), (4, "DEAD")],
    &[(0, "STAGE"), (2, "DONE"), (4, "DEAD")],
];

/// Stage names are cut to one of these, so that the table fits.
const NAMES: [usize; 3] = [NAME_CHARACTERS_MAX, 16, 8];

/// What the table says of a stage, in its order.
#[must_use]
pub fn cells(report: &Report, stage: &StageSnapshot) -> Vec<String> {
    let mut cells = vec![shortened(&stage.name, NAME_CHARACTERS_MAX)];
    cells.extend([stage.entered, stage.done, stage.retried, stage.dead].map(count));
    for meter in [&stage.wait, &stage.service] {
        cells.extend([0.5, 0.99, 0.999].map(|quantile| duration(meter, quantile)));
    }
    cells.push(if stage.entered == 0 { "-".to_owned() } else { rate(report.rate(stage)) });
    cells
}

fn duration(meter: &Quantiles, quantile: f64) -> String {
    if meter.count() == 0 { "-".to_owned() } else { microseconds(meter.at(quantile)) }
}

/// Prints the first choice of columns that fits, or else the narrowest.
///
/// # Errors
/// The writer took no more.
pub fn print(report: &Report, width: Option<usize>, data: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<_> = report.stages.iter().map(|stage| cells(report, stage)).collect();
    let (columns, lines) = fitting(&rows, width);
    for (index, line) in lines.iter().enumerate() {
        let style = if index == 0 { STRONG } else { Default::default() };
        writeln!(data, "{style}{line}{style:#}")?;
    }
    let left_out = CHOICES[0].len() - columns.len();
    if left_out > 0 {
        let words = format!("({left_out} columns do not fit; --json has them)");
        let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
        for line in wrapped("", &words, " ", 1, width) {
            writeln!(data, "{line}")?;
        }
    }
    Ok(())
}

fn fitting(rows: &[Vec<String>], width: Option<usize>) -> (&'static Columns, Vec<String>) {
    let fits =
        |lines: &[String]| width.is_none_or(|width| lines.iter().all(|line| line.width() <= width));
    let (mut columns, mut lines) = (CHOICES[0], drawn(rows, CHOICES[0], NAMES[0]));
    for choice in CHOICES {
        for name in NAMES {
            if fits(&lines) {
                return (columns, lines);
            }
            (columns, lines) = (choice, drawn(rows, choice, name));
        }
    }
    (columns, lines)
}

fn drawn(rows: &[Vec<String>], columns: &Columns, name_max: usize) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|(_, title)| *title));
    for row in rows {
        table.add_row(columns.iter().map(|(at, _)| match at {
            0 => shortened(&row[0], name_max),
            at => row[*at].clone(),
        }));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let is_name = index == 0;
        column.set_padding(if is_name { (0, 0) } else { (2, 0) });
        column.set_cell_alignment(if is_name { CellAlignment::Left } else { CellAlignment::Right });
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}
