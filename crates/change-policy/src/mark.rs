//! Marks by which a commit and a pull request say which change they are for.
//!
//! A mark is a claim of whoever wrote it. It decides about our own work only: a commit counts as ours only together with
//! its author and committer, and a pull request is never merged because of its mark.

use sha2::{Digest as _, Sha256};

/// Key of the last line of a commit's message.
const TRAILER: &str = "Windlass-Change";
const BEGIN: &str = "<!-- windlass-change: ";
const UNFINISHED: &str = " unfinished";
const END: &str = " -->";
/// Bytes of a digest that are written.
const LENGTH: usize = 16;

/// What identifies a change: the values that are set where, whatever was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change(String);

impl Change {
    /// Digests the parts in this order. Neither order nor borders of parts are lost.
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        Self(hex::encode(&digest.finalize()[..LENGTH]))
    }

    /// As in marks.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A commit's mark: the change, the files that it was made over, and who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The change.
    pub change: Change,
    /// Digest of the files before.
    pub base: Change,
    /// UID of the object that the commit was made for.
    pub owner: String,
}

impl Commit {
    /// The message with the mark as its trailer.
    pub fn signed_off(&self, message: &str) -> String {
        let (change, base, owner) = (&self.change.0, &self.base.0, &self.owner);
        format!("{}\n\n{TRAILER}: {change} {base} {owner}\n", message.trim_end())
    }

    /// The mark of a message, if it ends with one.
    pub fn of_message(message: &str) -> Option<Self> {
        let line = message.trim_end().lines().next_back()?;
        let rest = line.strip_prefix(TRAILER)?.strip_prefix(": ")?;
        let mut words = rest.split(' ');
        let (change, base, owner) = (words.next()?, words.next()?, words.next()?);
        let is_digest = |text: &str| text.len() == 2 * LENGTH && text.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_digest(change) || !is_digest(base) || words.next().is_some() {
            return None;
        }
        Some(Self {
            change: Change(change.to_owned()),
            base: Change(base.to_owned()),
            owner: owner.to_owned(),
        })
    }
}

/// The description of a pull request with its mark. It stands in front: some forges cut long texts.
pub fn marked(body: &str, change: &Change) -> String {
    format!("{BEGIN}{}{END}\n{body}", change.0)
}

/// As [`marked`], of a pull request that lacks labels or reviewers yet.
pub fn unfinished(body: &str, change: &Change) -> String {
    format!("{BEGIN}{}{UNFINISHED}{END}\n{body}", change.0)
}

/// Returns whether a pull request was opened and not finished.
pub fn is_unfinished(body: &str) -> bool {
    text_of(body).is_some_and(|text| text.ends_with(UNFINISHED))
}

/// The change that a pull request is for.
pub fn change_of(body: &str) -> Option<Change> {
    let text = text_of(body)?;
    let change = text.strip_suffix(UNFINISHED).unwrap_or(text);
    (change.len() == 2 * LENGTH).then(|| Change(change.to_owned()))
}

fn text_of(body: &str) -> Option<&str> {
    let rest = body.trim_start().strip_prefix(BEGIN)?;
    rest.split_once(END).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let mark = Commit {
            change: Change::new(["a", "b"]),
            base: Change::new(["c"]),
            owner: "6f1a".to_owned(),
        };
        let message = mark.signed_off("Update a\n\nto b\n\n");
        assert_eq!(Commit::of_message(&message), Some(mark.clone()));
        assert_eq!(
            Commit::of_message(&format!("{message}\nSigned-off-by: me\n")),
            None
        );
        assert_eq!(Commit::of_message("Windlass-Change: x y z"), None);
        let body = marked("text", &mark.change);
        assert_eq!(change_of(&body), Some(mark.change.clone()));
        assert_eq!(change_of(&body.replace('\n', "\r\n")), Some(mark.change));
        assert_eq!(change_of("text"), None);
        assert!(!is_unfinished(&body));
        let begun = unfinished("text", &Change::new(["a", "b"]));
        assert!(is_unfinished(&begun));
        assert_eq!(change_of(&begun), change_of(&body));
    }

    #[test]
    fn changes_differ_by_their_parts() {
        assert_ne!(Change::new(["ab", "c"]), Change::new(["a", "bc"]));
        assert_ne!(Change::new(["a", "b"]), Change::new(["b", "a"]));
    }
}
