//! Validation failures: a tree, printed as santhosh-tekuri/jsonschema v6 prints it.

use go_text::json::Json;
use go_text::quote::quoted as go_quote;

use super::number::{english, english_float};

/// A value that does not fit, and why.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Where the value stands, as a JSON pointer.
    pub(super) location: String,
    pub(super) kind: Kind,
    pub(super) causes: Vec<Failure>,
}

/// The kinds of failures whose message depends on their causes' place in the tree, or that have a message of their own.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Only that something failed matters.
    Quiet,
    /// Several failures of one value.
    Group,
    /// The target of a reference failed; not shown above a single cause.
    Reference,
    /// Anything else, with its message.
    Message(String),
}

impl Failure {
    pub(super) fn quiet() -> Self {
        Self {
            location: String::new(),
            kind: Kind::Quiet,
            causes: Vec::new(),
        }
    }

    /// Prints the failures of a whole document, one a line, each but the first behind a line break.
    pub(super) fn print(failures: &[Self]) -> String {
        let mut text = String::new();
        for failure in failures {
            failure.display(&mut text, 1);
        }
        text
    }

    fn display(&self, text: &mut String, indent: usize) {
        let skipped = matches!(self.kind, Kind::Reference) && self.causes.len() == 1;
        if !skipped {
            text.push('\n');
            text.extend(std::iter::repeat_n("  ", indent - 1));
            text.push_str("- at ");
            text.push_str(&quote(&self.location));
            text.push_str(": ");
            text.push_str(match &self.kind {
                Kind::Message(message) => message,
                Kind::Quiet | Kind::Group | Kind::Reference => "validation failed",
            });
        }
        for cause in &self.causes {
            cause.display(text, indent + usize::from(!skipped));
        }
    }
}

/// Text in single quotes: Go's quotes, but with the other mark escaped.
pub(super) fn quote(text: &str) -> String {
    let quoted = go_quote(text).replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{}'", &quoted[1..quoted.len() - 1])
}

pub(super) fn join_quoted<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(quote).collect::<Vec<_>>().join(", ")
}

/// A scalar as messages show it.
pub(super) fn display(value: &Json<'_>) -> String {
    match value {
        Json::Null => "<nil>".to_owned(),
        Json::Bool(b) => b.to_string(),
        Json::Number(number) => number.to_string(),
        Json::Text(text) => quote(text),
        Json::Array(_) | Json::Object(_) => "value".to_owned(),
    }
}

/// The message about too few or too many of something.
pub(super) fn count(keyword: &str, got: usize, want: i64) -> String {
    let got = i64::try_from(got).unwrap_or(i64::MAX);
    format!("{keyword}: got {}, want {}", english(got), english(want))
}

/// The message about a number out of bounds.
pub(super) fn bound(keyword: &str, got: f64, want: f64) -> String {
    format!(
        "{keyword}: got {}, want {}",
        english_float(got),
        english_float(want)
    )
}
