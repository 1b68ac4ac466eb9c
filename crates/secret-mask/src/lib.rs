//! Takes secrets out of texts that people and logs see. Pure.
//!
//! Whoever repeats a secret may spell it in another way: escaped for JSON or a URL, or in base64. A [`Mask`] knows
//! the secrets and finds them in all of these spellings. [`without_credentials`] needs to know nothing: it masks user and
//! password of every URL.
//!
//! ```
//! let mut mask = secret_mask::Mask::default();
//! mask.add_spellings("hunter2", 4);
//! assert_eq!(mask.without_secrets("got aHVudGVyMg=="), "got ***");
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Text in place of a secret.
pub const MASK: &str = "***";

/// A cut text ends before what may be the start of a secret of at least this many bytes.
const SHORTEST_START: usize = 4;

/// Secrets to find in texts. Its `Debug` output shows none of them.
#[derive(Clone, Default)]
pub struct Mask {
    /// The longest first: one may be part of another.
    secrets: BTreeSet<(Reverse<usize>, String)>,
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Mask of {} texts", self.secrets.len())
    }
}

impl Mask {
    /// Adds a secret as it is written. One of fewer than `shortest` bytes is left out: it would be found
    /// everywhere, and protect nothing.
    pub fn add(&mut self, secret: &str, shortest: usize) {
        if !secret.is_empty() && secret.len() >= shortest {
            self.secrets.insert((Reverse(secret.len()), secret.to_owned()));
        }
    }

    /// Adds a secret in all its spellings: plain, escaped for JSON or a URL, in base64, each also on one line.
    pub fn add_spellings(&mut self, secret: &str, shortest: usize) {
        let secret = secret.trim();
        let plain = one_line(secret);
        if plain.len() < shortest {
            return;
        }
        let escaped = serde_json::Value::from(secret).to_string();
        let quoted: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        for spelling in [
            one_line(escaped.trim_matches('"')),
            quoted.replace('+', "%20"),
            quoted,
            STANDARD.encode(secret),
            secret.to_owned(),
            plain,
        ] {
            self.add(&spelling, 1);
        }
    }

    /// Returns whether a text contains a secret.
    pub fn finds_in(&self, text: &str) -> bool {
        self.secrets
            .iter()
            .any(|(_, secret)| text.contains(secret.as_str()))
    }

    /// Returns the text with every secret masked.
    pub fn without_secrets(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, (_, secret)| {
            if text.contains(secret.as_str()) {
                text.replace(secret.as_str(), MASK)
            } else {
                text
            }
        })
    }

    /// Masks a text that was cut, and ends it before what may be the start of a secret.
    pub fn without_secrets_or_starts(&self, text: &str) -> String {
        let mut text = self.without_secrets(text);
        let cut = self
            .secrets
            .iter()
            .filter_map(|(_, secret)| start_at_end(&text, secret));
        if let Some(cut) = cut.min() {
            text.truncate(cut);
        }
        text
    }
}

/// Returns where the text ends with the start of the secret, if it does.
fn start_at_end(text: &str, secret: &str) -> Option<usize> {
    let longest = secret.len().min(text.len());
    (SHORTEST_START..=longest)
        .rev()
        .find(|length| text.as_bytes().ends_with(&secret.as_bytes()[..*length]))
        .map(|length| text.floor_char_boundary(text.len() - length))
}

/// Writes a text as words with single spaces between them, without characters that move the cursor.
pub fn one_line(text: &str) -> String {
    let words = text.split(char::is_whitespace);
    let words = words.map(|word| word.chars().filter(|c| !c.is_control()).collect::<String>());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Masks user and password of every URL in a text.
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://").map(|found| found + 3) {
        let (before, after) = rest.split_at(start);
        masked.push_str(before);
        let end =
            after.find(|c: char| matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>') || c.is_whitespace());
        let authority = &after[..end.unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(at) => {
                masked.push_str(MASK);
                &after[at..]
            }
            None => after,
        };
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(secrets: &[&str]) -> Mask {
        let mut mask = Mask::default();
        secrets.iter().for_each(|secret| mask.add_spellings(secret, 4));
        mask
    }

    #[test]
    fn secrets_are_found_in_every_spelling() {
        let mask = mask(&["p\"ss wörd", "p\"ss wörd and more", "abc"]);
        for text in [
            "p\"ss wörd",
            r#"p\"ss wörd"#,
            "p%22ss+w%C3%B6rd",
            "p%22ss%20w%C3%B6rd",
            "cCJzcyB3w7ZyZA==",
            "p\"ss wörd and more",
        ] {
            assert!(mask.finds_in(text), "{text}");
            assert_eq!(mask.without_secrets(&format!("<{text}>")), "<***>");
        }
        assert_eq!(
            mask.without_secrets("abc"),
            "abc",
            "too short to protect anything"
        );
        assert!(!format!("{mask:?}").contains("wörd"));
    }

    #[test]
    fn a_cut_text_ends_before_the_start_of_a_secret() {
        let mask = mask(&["tök-tök-tök"]);
        assert_eq!(mask.without_secrets_or_starts("it says tök-tö"), "it says ");
        assert_eq!(mask.without_secrets_or_starts("it says tö"), "it says tö");
        assert_eq!(mask.without_secrets_or_starts("tök-tök-tök!"), "***!");
    }

    #[test]
    fn credentials_in_urls_are_masked() {
        let cases = [
            ("no url", "no url"),
            ("https://example.com/a@b", "https://example.com/a@b"),
            ("https://user:pa%20ss@example.com/x", "https://***@example.com/x"),
            (
                "get \"https://t0ken@h/a\" and ssh://git@h:22/b",
                "get \"https://***@h/a\" and ssh://***@h:22/b",
            ),
            ("https://user:p@ss@example.com", "https://***@example.com"),
            ("a://", "a://"),
            ("https://ünï:cøde@example.com", "https://***@example.com"),
        ];
        for (text, expected) in cases {
            assert_eq!(without_credentials(text), expected);
        }
    }
}
