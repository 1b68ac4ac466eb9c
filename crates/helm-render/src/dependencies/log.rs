//! Warnings as the two versions word them: Helm 3 writes sentences, Helm 4 a message with attributes.

use go_text::quote::quoted;
use helm_chart::{Helm, Warning};

/// Picks the wording of the version.
pub(super) fn warning(helm: Helm, sentence: String, message: &str, attributes: &[(&str, &str)]) -> Warning {
    if helm == Helm::V3 {
        return Warning::new(sentence);
    }
    let mut text = message.to_owned();
    for (key, value) in attributes {
        let needs_quotes = value.is_empty()
            || value.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '='));
        let value = if needs_quotes {
            quoted(value)
        } else {
            (*value).to_owned()
        };
        text.push_str(&format!(" {key}={value}"));
    }
    Warning::new(text)
}
