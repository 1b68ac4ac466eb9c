//! What can be wrong with YAML text, and where.

use std::fmt;

/// What is wrong with a document, and in which line.
///
/// Displayed as go-yaml words it (`yaml: line 3: mapping values are not allowed in this context`), because users search
/// for those words and the recorded cases hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line of the problem, counted from 1; 0 when it is not known.
    pub line: u32,
    /// What is wrong, without position.
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

    pub(super) fn of_syntax(error: &libyaml_safer::Error) -> Self {
        let line_of =
            |mark: Option<libyaml_safer::Mark>| mark.map_or(0, |m| u32::try_from(m.line).unwrap_or(0));
        let context = line_of(error.context_mark());
        let problem = line_of(error.problem_mark());
        // go-yaml v3, `parser.fail`: the context's line, else the problem's; 0-based except for the scanner's errors.
        let chosen = if context != 0 { context } else { problem };
        let scanner = error.kind() == libyaml_safer::ErrorKind::Scanner;
        let go_line = if chosen != 0 && scanner {
            chosen + 1
        } else {
            chosen
        };
        let line = if error.problem_mark().is_some() {
            problem + 1
        } else {
            0
        };
        Self {
            line,
            text: error.problem().to_owned(),
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
    /// What is wrong in it.
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
