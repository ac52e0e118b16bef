//! Holds the benchmark's rows and prints them as Markdown.

use std::fmt::Write as _;

use crate::samples::Samples;

/// What a row's figures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Microseconds: less is better.
    Micros,
    /// Milliseconds of processor time per gigabyte.
    CpuPerGigabyte,
    /// Megabytes a second.
    Rate,
    /// Kilobytes.
    Kilobytes,
    /// A multiple of the same contestant's figure in another row.
    Growth,
}

/// One line of the table: a figure for each contestant.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) cells: Vec<(&'static str, Cell)>,
}

/// One figure.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// A median, a 95th percentile.
    Figure(f64, f64),
    /// Something that has no figure, in words.
    Words(String),
}

/// Everything that was measured.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    /// What the places that hold sessions by themselves have beside it, as Markdown.
    pub(crate) places: Option<String>,
}

/// The columns, in the order in which people look for them.
const COLUMNS: &[&str] = &["floor", "wharf", BEFORE, "dtach", "screen", "tmux"];

/// The column of an earlier build of Wharf: there where one took part.
pub(crate) const BEFORE: &str = "wharf before";

impl Row {
    pub(crate) fn new(what: impl Into<String>, unit: Unit) -> Self {
        Self { what: what.into(), unit, cells: Vec::new() }
    }

    pub(crate) fn samples(&mut self, who: &'static str, samples: &Samples) {
        if let (Some(median), Some(most)) = (samples.median(), samples.percentile(0.95)) {
            self.cells.push((who, Cell::Figure(median, most)));
        }
    }

    pub(crate) fn figure(&mut self, who: &'static str, value: f64) {
        self.cells.push((who, Cell::Figure(value, value)));
    }

    pub(crate) fn words(&mut self, who: &'static str, words: impl Into<String>) {
        self.cells.push((who, Cell::Words(words.into())));
    }

    fn median(&self, who: &str) -> Option<f64> {
        self.cells.iter().find(|(name, _)| *name == who).and_then(|(_, cell)| match cell {
            Cell::Figure(median, _) => Some(*median),
            Cell::Words(_) => None,
        })
    }

    fn cell(&self, who: &str) -> String {
        let Some((_, cell)) = self.cells.iter().find(|(name, _)| *name == who) else {
            return "–".to_owned();
        };
        let (median, most) = match cell {
            Cell::Words(words) => return words.clone(),
            Cell::Figure(median, most) => (*median, *most),
        };
        let mut text = match self.unit {
            Unit::Micros => format!("{} µs (p95 {})", digits(median), digits(most)),
            Unit::CpuPerGigabyte => format!("{} ms/GB", digits(median)),
            Unit::Rate => format!("{} MB/s", digits(median)),
            Unit::Kilobytes => format!("{} KB", digits(median)),
            Unit::Growth => format!("{median:.2}×"),
        };
        if who != "floor"
            && let Some(floor) = self.median("floor").filter(|floor| *floor > 0.0)
        {
            let _ = write!(text, " **{:.2}×**", median / floor);
        }
        text
    }
}

impl Table {
    pub(crate) fn find(&self, what: &str, who: &str) -> Option<f64> {
        self.rows.iter().find(|row| row.what == what)?.median(who)
    }

    /// As Markdown, which is readable as it is.
    pub(crate) fn markdown(&self) -> String {
        let has_before = self.rows.iter().any(|row| row.median(BEFORE).is_some());
        let columns: Vec<&str> = COLUMNS.iter().copied().filter(|who| has_before || *who != BEFORE).collect();
        let mut text = format!("| | {} |\n|---|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
        for row in &self.rows {
            let cells: Vec<String> = columns.iter().map(|who| row.cell(who)).collect();
            let _ = writeln!(text, "| {} | {} |", row.what, cells.join(" | "));
        }
        text
    }
}

fn digits(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_stand_beside_figures() {
        let mut row = Row::new("create", Unit::Micros);
        row.figure("floor", 200.0);
        row.figure("wharf", 300.0);
        row.words("tmux", "loses bytes");
        let table = Table { rows: vec![row], places: None };
        let text = table.markdown();
        assert_eq!(
            text.lines().last().unwrap(),
            "| create | 200 µs (p95 200) | 300 µs (p95 300) **1.50×** | – | – | loses bytes |"
        );
        assert_eq!(table.find("create", "wharf"), Some(300.0));
    }

    #[test]
    fn an_earlier_build_has_a_column_where_one_took_part() {
        let mut row = Row::new("create", Unit::Micros);
        row.figure("floor", 200.0);
        row.figure("wharf", 300.0);
        row.figure(BEFORE, 320.0);
        let text = Table { rows: vec![row], places: None }.markdown();
        assert!(text.starts_with("| | floor | wharf | wharf before | dtach |"), "{text}");
        assert!(text.contains("| 320 µs (p95 320) **1.60×** |"), "{text}");
    }
}
