//! In which form an answer is printed: tables for people, JSON and YAML for programs, names for other commands.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use delivery_graph::{kind, object};
use serde_json::{Value, json};

use super::Failure;

/// The forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Human-readable columns
    #[default]
    Table,
    /// Additional columns, nothing truncated
    Wide,
    /// JSON, as returned by the API server
    Json,
    /// YAML, as returned by the API server
    Yaml,
    /// One KIND/NAME per line
    Name,
}

/// How good the news in a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
    Open,
}

impl Tone {
    /// The tone of a condition's status.
    pub(crate) fn from_status(status: &str) -> Self {
        match status {
            "True" => Self::Good,
            "False" => Self::Bad,
            _ => Self::Open,
        }
    }

    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Good => Some("32"),
            Self::Bad => Some("31"),
            Self::Open => Some("33"),
        }
    }
}

/// Whether colours are written. They are for terminals, and for those who do not refuse them (no-color.org).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Colours(bool);

impl Colours {
    /// Detects colours and width from standard output and the environment.
    pub(crate) fn of_terminal() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self(io::stdout().is_terminal() && !refused && !dumb)
    }

    /// For what is not shown as it is.
    pub(crate) fn none() -> Self {
        Self(false)
    }

    pub(crate) fn paint(self, text: &str, tone: Tone) -> String {
        match tone.code() {
            Some(code) if self.0 && !text.is_empty() => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            _ => text.to_owned(),
        }
    }
}

/// A cell of a table.
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: delivery_graph::one_line(&text.into()),
            tone,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// Lays out rows below their header; the last column is as wide as it likes.
pub(crate) fn table(header: &[&str], rows: &[Vec<Cell>], colours: Colours) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0);
        widest.max(header[column].chars().count())
    };
    let widths: Vec<_> = (0..header.len()).map(width).collect();
    let header: Vec<_> = header.iter().map(|&title| Cell::from(title)).collect();
    let mut text = String::new();
    for row in std::iter::once(&header).chain(rows) {
        let mut line = String::new();
        let mut gap = 0;
        for (cell, width) in row.iter().zip(&widths) {
            if !cell.text.is_empty() {
                line.push_str(&" ".repeat(gap));
                line.push_str(&colours.paint(&cell.text, cell.tone));
                gap = 0;
            }
            gap += width - cell.text.chars().count() + 2;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Writes objects for programs: one alone as it is, else a List as kubectl makes it.
pub(crate) fn objects(mut found: Vec<Value>, one: bool, output: Output) -> Result<String, Failure> {
    if output == Output::Name {
        return Ok(found
            .iter()
            .map(|object| format!("{}\n", reference(object)))
            .collect());
    }
    let value = match found.len() {
        1 if one => found.remove(0),
        _ => json!({"apiVersion": "v1", "kind": "List", "items": found}),
    };
    document(&value, output)
}

/// Writes a value as JSON or YAML.
pub(crate) fn document(value: &Value, output: Output) -> Result<String, Failure> {
    match output {
        Output::Yaml => manifest::yaml::write(value).map_err(|error| Failure::Write(error.to_string())),
        _ => serde_json::to_string_pretty(value)
            .map(|text| text + "\n")
            .map_err(|error| Failure::Write(error.to_string())),
    }
}

/// Names an object in a way that this command and kubectl both take.
fn reference(object: &Value) -> String {
    let id = object::id(object);
    match kind::kind_of(&id) {
        Some(kind) => format!("{}/{}", kind.kind.to_lowercase(), id.name),
        None => format!("{}/{}", id.kind.to_lowercase(), id.name),
    }
}

/// Prints an answer. To a terminal, what a cluster or a file said cannot steer it.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = match out.is_terminal() {
        true => harmless(text),
        false => Cow::Borrowed(text),
    };
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::Print)
}

/// The text without control characters, except for ends of lines, tabs and our own colours.
fn harmless(text: &str) -> Cow<'_, str> {
    const COLOURS: [&str; 4] = ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"];
    let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_harmful) {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let colour = COLOURS
            .into_iter()
            .find(|colour| rest.starts_with(colour))
            .unwrap_or_default();
        kept.push_str(colour);
        let skipped = rest.chars().next().map_or(0, char::len_utf8).max(colour.len());
        rest = &rest[skipped..];
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// How long ago something was, as kubectl says it.
pub(crate) fn age(time: &str, now: jiff::Timestamp) -> String {
    let Ok(time) = time.parse::<jiff::Timestamp>() else {
        return "<unknown>".to_owned();
    };
    let seconds = now.as_second().saturating_sub(time.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_does_not_steer_the_terminal() {
        let painted = Colours(true).paint("False", Tone::Bad);
        for (text, kept) in [
            ("a\tb\nc", "a\tb\nc"),
            (painted.as_str(), painted.as_str()),
            ("a\u{1b}]0;title\u{7}b", "a]0;titleb"),
            ("a\u{1b}[2Jb\rc\u{9b}d", "a[2Jbcd"),
            ("\u{1b}\u{1b}[31mx", "\u{1b}[31mx"),
            ("é\u{8}\u{8}", "é"),
        ] {
            assert_eq!(harmless(text), kept);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_without_spaces() {
        let rows = vec![
            vec!["app".into(), Cell::toned("False", Tone::Bad), "it\nfailed".into()],
            vec!["a-longer-name".into(), Cell::toned("True", Tone::Good), "".into()],
            vec!["é".into(), "".into(), "fine".into()],
        ];
        let header = ["NAME", "READY", "MESSAGE"];
        assert_eq!(
            table(&header, &rows, Colours::none()),
            "NAME           READY  MESSAGE\n\
             app            False  it failed\n\
             a-longer-name  True\n\
             é                     fine\n"
        );
        let painted = table(&header, &rows, Colours(true));
        assert!(
            painted.contains("app            \u{1b}[31mFalse\u{1b}[0m  it failed"),
            "{painted}"
        );
    }

    #[test]
    fn what_is_in_a_message_does_not_steer_the_terminal() {
        assert_eq!(delivery_graph::one_line("a\u{1b}[31m\tb\r\n c"), "a[31m b c");
    }

    #[test]
    fn one_object_that_was_named_stands_alone_and_others_in_a_list() {
        let object = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "app"}});
        let written = |one, output| objects(vec![object.clone()], one, output).unwrap();
        assert!(written(true, Output::Yaml).starts_with("apiVersion: kustomize"));
        assert!(written(false, Output::Json).contains("\"kind\": \"List\""));
        assert_eq!(written(false, Output::Name), "kustomization/app\n");
    }

    #[test]
    fn ages_are_told_in_the_largest_unit_that_says_enough() {
        let now = "2026-01-03T00:00:00Z".parse().unwrap();
        for (time, shown) in [
            ("2026-01-02T23:59:30Z", "30s"),
            ("2026-01-02T23:50:00Z", "10m"),
            ("2026-01-02T20:00:00Z", "4h"),
            ("2025-12-30T00:00:00Z", "4d"),
            ("2026-01-04T00:00:00Z", "0s"),
            ("never", "<unknown>"),
        ] {
            assert_eq!(age(time, now), shown);
        }
    }
}
