//! Errors in YAML text, with their position.

use std::fmt;

use super::dialect::Dialect;

/// Problem of a document, and its line.
///
/// Displayed as go-yaml words it (`yaml: line 3: mapping values are not allowed in this context`), because users search
/// for those words and the recorded cases hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line of the problem, counted from 1; 0 when it is not known.
    pub line: u32,
    /// The problem, without position.
    pub text: String,
    go_line: u32,
    bare: bool,
}

impl Problem {
    /// Describes a problem found in a node of the tree; go-yaml gives such problems no line.
    pub fn in_node(line: u32, text: impl Into<String>) -> Self {
        Self {
            line,
            text: text.into(),
            go_line: 0,
            bare: false,
        }
    }

    /// Describes a problem of the bridge to JSON, which speaks without go-yaml's prefix.
    pub fn in_json(line: u32, text: impl Into<String>) -> Self {
        Self {
            line,
            text: text.into(),
            go_line: 0,
            bare: true,
        }
    }

    /// Moves the problem down by the lines that stand before the text that was parsed.
    #[must_use]
    pub fn below(mut self, lines: u32) -> Self {
        if self.line > 0 {
            self.line += lines;
        }
        self
    }

    /// Describes what the scanner found in line `line`, in something that started in line `start`, both counted from 0.
    pub(super) fn of_scanner(dialect: Dialect, start: u32, line: u32, text: impl Into<String>) -> Self {
        // go-yaml's `parser.fail`: v2 names the problem's line, v3 that of the start; a first line counts as none.
        let go_line = match (dialect, start, line) {
            (Dialect::Sigs, start, 0) => start,
            (Dialect::Sigs, _, line) | (Dialect::Kyaml, 0, line @ 1..) => line + 1,
            (Dialect::Kyaml, 0, 0) => 0,
            (Dialect::Kyaml, start, _) => start + 1,
        };
        Self {
            line: line + 1,
            text: text.into(),
            go_line,
            bare: false,
        }
    }

    /// Describes what the parser found in line `line`, in something that started in line `start`, both counted from 0.
    pub(super) fn of_parser(dialect: Dialect, start: u32, line: u32, text: impl Into<String>) -> Self {
        // As above, but these lines are not moved from 0 to 1.
        let go_line = match (dialect, start, line) {
            (Dialect::Sigs, start, 0) => start,
            (Dialect::Sigs, _, line) | (Dialect::Kyaml, 0, line) => line,
            (Dialect::Kyaml, start, _) => start,
        };
        Self {
            line: line + 1,
            text: text.into(),
            go_line,
            bare: false,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bare {
            return f.write_str(&self.text);
        }
        f.write_str("yaml: ")?;
        if self.go_line > 0 {
            write!(f, "line {}: ", self.go_line)?;
        }
        f.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}

/// A file that could not be read as YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read {}", place(.file, .problem.line))]
pub struct Error {
    /// The file, as given to the reader.
    pub file: String,
    /// The problem.
    #[source]
    pub problem: Problem,
}

impl Error {
    /// Names the file that a problem stands in.
    pub fn new(file: &str, problem: Problem) -> Self {
        Self {
            file: file.to_owned(),
            problem,
        }
    }
}

fn place(file: &str, line: u32) -> String {
    if line == 0 {
        file.to_owned()
    } else {
        format!("{file}:{line}")
    }
}
