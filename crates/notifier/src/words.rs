//! Names and reasons as words, the way Flux writes them. Pure.

use event::Event;

use crate::said::cut;

/// Names and reasons are shorter; third parties may post anything.
const MAX_WORDS: usize = 1_000;

/// `kind/name` and the words of the reason, in lower case: what statuses of commits are called.
pub(crate) fn name_and_description(event: &Event) -> (String, String) {
    let object = &event.involved_object;
    (name(&object.kind, &object.name), description(&event.reason))
}

/// `kind/name` in lower case.
pub(crate) fn name(kind: &str, name: &str) -> String {
    format!("{}/{}", cut(kind, MAX_WORDS), cut(name, MAX_WORDS)).to_lowercase()
}

/// The words of a reason in lower case.
pub(crate) fn description(reason: &str) -> String {
    split_camel_case(&cut(reason, MAX_WORDS)).join(" ").to_lowercase()
}

/// `HealthCheckFailed` is three words; so are `OCIArtifactFailed` and `build-7`.
pub(crate) fn split_camel_case(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = None;
    for found in text.chars() {
        let class = Class::from_found(found);
        match words.last_mut() {
            Some(word) if last == Some(class) => word.push(found),
            // the last capital before small letters begins their word
            Some(word) if last == Some(Class::Upper) && class == Class::Lower => {
                let first = word.pop().into_iter();
                if word.is_empty() {
                    words.pop();
                }
                words.push(first.chain([found]).collect());
            }
            _ => words.push(found.to_string()),
        }
        last = Some(class);
    }
    words
}

/// Each word with a capital, and small letters after it; as Unicode has it, a hyphen ends a word, and an apostrophe, dot
/// or underscore between letters does not.
pub(crate) fn title_case(text: &str) -> String {
    let mut title = String::with_capacity(text.len());
    let mut is_within = false;
    let mut characters = text.chars().peekable();
    while let Some(found) = characters.next() {
        if found.is_alphabetic() && !is_within {
            title.extend(found.to_uppercase());
            is_within = true;
            continue;
        }
        let joins = match found {
            '_' => true,
            '\'' | '’' | '.' | ':' | '·' => characters.peek().is_some_and(|next| next.is_alphanumeric()),
            other => other.is_alphanumeric(),
        };
        is_within = is_within && joins;
        title.extend(found.to_lowercase());
    }
    title
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Other,
}

impl Class {
    fn from_found(found: char) -> Self {
        if found.is_lowercase() {
            Self::Lower
        } else if found.is_uppercase() {
            Self::Upper
        } else if found.is_numeric() {
            Self::Digit
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_split_into_words_as_in_flux() {
        let cases = [
            ("HealthCheckFailed", "Health|Check|Failed"),
            ("OCIArtifactUpToDate2", "OCI|Artifact|Up|To|Date|2"),
            ("build-failed", "build|-|failed"),
            ("PDFLoader", "PDF|Loader"),
            ("A", "A"),
            ("aB", "a|B"),
            ("", ""),
        ];
        for (text, words) in cases {
            assert_eq!(split_camel_case(text).join("|"), words);
        }
    }

    #[test]
    fn titles_are_those_of_unicode_words() {
        assert_eq!(title_case("it's an_odd.reason"), "It's An_odd.reason");
        assert_eq!(title_case("build-failed"), "Build-Failed");
        assert_eq!(title_case("OCIArtifactUpToDate2"), "Ociartifactuptodate2");
    }
}
