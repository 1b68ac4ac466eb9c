//! Why an index is none, in Helm's words, with the line where there is one.

use manifest::yaml::Problem;

/// An index that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing in it.
    #[error("empty index.yaml file")]
    Empty,
    /// It does not say that it is an index.
    #[error("no API version specified")]
    NoApiVersion,
    /// It is not YAML, or YAML that no index may be.
    #[error("error converting YAML to JSON: {problem}{}", place(.chart, .problem.line))]
    Yaml {
        /// The chart whose entry it is; empty outside of entries.
        chart: String,
        /// The problem.
        problem: Problem,
    },
    /// A field has the wrong type, or a name that no field has.
    #[error("{text}{}", place(.chart, *.line))]
    Decode {
        /// The chart whose entry it is; empty outside of entries.
        chart: String,
        /// The line of the entry or field; 0 when it is not known.
        line: u32,
        /// The problem.
        text: String,
    },
    /// A piece is larger than what is held in memory.
    #[error("failed to read the index: {what} is larger than {limit} bytes{}", place(.chart, *.line))]
    TooLarge {
        /// The place.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The chart whose entry it is; empty outside of entries.
        chart: String,
        /// The line where it begins; 0 when it is not known.
        line: u32,
    },
    /// Reading or writing failed.
    #[error("failed to read or write the index")]
    Io(#[from] std::io::Error),
}

fn place(chart: &str, line: u32) -> String {
    match (chart, line) {
        ("", 0) => String::new(),
        ("", line) => format!(" (line {line})"),
        (chart, 0) => format!(" (chart '{chart}')"),
        (chart, line) => format!(" (chart '{chart}', line {line})"),
    }
}
