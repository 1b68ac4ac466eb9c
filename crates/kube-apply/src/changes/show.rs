//! How values are shown: shortened, and masked where they are no one's business.

use secret_mask::MASK;
use serde_json::Value;

/// Characters of one value, and of one path.
const VALUE: usize = 96;
const PATH: usize = 240;

/// The words are Flux's (`ssa.SanitizeUnstructuredData`).
const BEFORE: &str = "*** (before)";
const AFTER: &str = "*** (after)";

/// Shows a value as JSON on one line.
pub(super) fn show(value: &Value) -> String {
    shorten(&value.to_string(), VALUE)
}

/// Cuts a path in its middle: both ends tell more.
pub(super) fn shorten_path(path: &str) -> String {
    let length = path.chars().count();
    if length <= PATH {
        return path.to_owned();
    }
    let (start, end): (String, String) = (
        path.chars().take(PATH / 2).collect(),
        path.chars().skip(length - PATH / 2).collect(),
    );
    format!("{start}…{end}")
}

fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Which values are not shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mask {
    /// Those that repeat a whole object.
    Copies,
    /// The data of a Secret, and what repeats it.
    Data,
    /// All.
    Everything,
}

/// kubectl's copy of the object, which may be older or newer than it.
const COPY: &str = "metadata.annotations[\"kubectl.kubernetes.io/last-applied-configuration\"]";

impl Mask {
    pub(super) fn new(object: &Value, is_confidential: bool) -> Self {
        let text = |field: &str| object.get(field).and_then(Value::as_str);
        match (text("apiVersion"), text("kind")) {
            _ if is_confidential => Mask::Everything,
            (Some("v1"), Some("Secret")) => Mask::Data,
            _ => Mask::Copies,
        }
    }

    /// Returns what is shown in place of the values of a field; None when they are shown.
    pub(super) fn shown(self, path: &str, was: bool, is: bool) -> Option<(Option<String>, Option<String>)> {
        let is_data = ["data", "stringData"].iter().any(|field| {
            path.strip_prefix(field)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        });
        let is_masked = path == COPY
            || match self {
                Mask::Copies => false,
                Mask::Data => is_data,
                Mask::Everything => true,
            };
        let words = if was && is { (BEFORE, AFTER) } else { (MASK, MASK) };
        is_masked.then(|| (was.then(|| words.0.to_owned()), is.then(|| words.1.to_owned())))
    }
}
