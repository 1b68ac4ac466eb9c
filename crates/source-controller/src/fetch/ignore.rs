//! Ignore rules that can match nothing, told to the log.
//!
//! Flux passes over them without a word, so a source that has them keeps working; but somebody meant to leave something out.

use artifact::ignore;

/// Rules of one text that are told.
const MAX_TOLD: usize = 10;
/// Characters of a rule that are shown.
const MAX_SHOWN: usize = 100;

/// Warns of each malformed rule, with the text where it stands and its line.
pub(crate) fn warn(place: &str, text: &str) {
    for (line, rule) in ignore::malformed(text).take(MAX_TOLD) {
        let rule: String = rule.chars().take(MAX_SHOWN).collect();
        tracing::warn!(
            "the rule {rule:?} in line {line} of {place} is malformed, so that it matches nothing"
        );
    }
}
