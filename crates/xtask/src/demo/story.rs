//! Terminal output of the demo: titles, lines with latencies, tables. Colours on a terminal only; plain text
//! in a pipe.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _, stdout};
use std::time::{Duration, Instant};

use anyhow::Result;

/// The narrator.
#[derive(Debug)]
pub(crate) struct Story {
    colours: bool,
    chapters: u32,
    cause: Instant,
}

impl Story {
    /// A story with nothing told yet.
    pub(crate) fn new() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            colours: wanted && stdout().is_terminal(),
            chapters: 0,
            cause: Instant::now(),
        }
    }

    /// Begins a chapter.
    pub(crate) fn chapter(&mut self, title: &str) -> Result<()> {
        self.chapters += 1;
        let title = format!("{}. {title}", self.chapters);
        self.print(&format!("\n{}", self.paint("1", &title)))
    }

    /// The moment from which latencies count from now on.
    pub(crate) fn cause(&mut self, what: &str) -> Result<()> {
        self.cause = Instant::now();
        self.print(&format!("{:>11}  {}", "", self.paint("36", what)))
    }

    /// Something that was seen at a moment: `subject` such as `Deployment/shop`, `verb` such as `available`.
    pub(crate) fn seen(&self, at: Instant, subject: &str, verb: &str, detail: &str) -> Result<()> {
        let latency = seconds(at.saturating_duration_since(self.cause));
        let verb = self.paint("32", &format!("{verb:<10}"));
        self.print(format!("{latency:>11}  {subject:<32} {verb} {detail}").trim_end())
    }

    /// A step of the preparation that took `time`.
    pub(crate) fn prepared(&self, what: &str, time: Duration, detail: impl Display) -> Result<()> {
        self.print(format!("{:>11}  {what:<32} {detail}", seconds(time)).trim_end())
    }

    /// A line without a latency.
    pub(crate) fn note(&self, text: &str) -> Result<()> {
        self.print(format!("{:>11}  {text}", "").trim_end())
    }

    /// A table with a heading; columns are as wide as their widest cell.
    pub(crate) fn table(&self, heading: &[&str], rows: &[Vec<String>]) -> Result<()> {
        let width = |column: usize| {
            let cells = rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count());
            cells.chain([heading[column].len()]).max().unwrap_or(0)
        };
        let line = |cells: Vec<&str>| {
            let padded = cells
                .iter()
                .enumerate()
                .map(|(column, cell)| format!("{cell:<0$}", width(column)));
            format!("  {}", padded.collect::<Vec<_>>().join("  "))
        };
        self.print(self.paint("1", line(heading.to_vec()).trim_end()).as_str())?;
        for row in rows {
            self.print(line(row.iter().map(String::as_str).collect()).trim_end())?;
        }
        Ok(())
    }

    /// One line as it is.
    pub(crate) fn print(&self, line: &str) -> Result<()> {
        let mut out = stdout().lock();
        writeln!(out, "{line}")?;
        Ok(out.flush()?)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
