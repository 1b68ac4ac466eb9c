//! Text of a notification for chats: who, what, how bad, within the limits of each. Pure.

use std::borrow::Cow;

use aws_lc_rs::digest;

use crate::notification::{Notification, State};
use crate::target::Target;

/// Names of objects have at most 253 characters, but third parties may post anything.
const MAX_TITLE: usize = 400;
const MAX_FIELD_NAME: usize = 256;

/// A notification as chats see it.
pub(crate) struct Said<'a> {
    notification: &'a Notification,
}

/// How much metadata a service takes, counted as JSON.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    /// How many.
    pub(crate) count: usize,
    /// How long a value may be.
    pub(crate) value: usize,
    /// How long they all may be.
    pub(crate) total: usize,
}

impl Fields {
    /// As many as one wants to read.
    pub(crate) const MANY: Self = Self {
        count: 60,
        value: 2_000,
        total: 16_000,
    };
}

impl<'a> Said<'a> {
    pub(crate) fn from_notification(notification: &'a Notification) -> Self {
        Self { notification }
    }

    /// `kind/name.namespace`, as in Flux's messages.
    pub(crate) fn title(&self) -> String {
        let subject = self.notification.subject();
        let kind = cut(subject.kind, MAX_TITLE).to_lowercase();
        let [name, namespace] = [subject.name, subject.namespace].map(|text| cut(text, MAX_TITLE));
        cut(&format!("{kind}/{name}.{namespace}"), MAX_TITLE).into_owned()
    }

    /// Returns whether it is to be seen as a failure.
    pub(crate) fn is_bad(&self) -> bool {
        match self.notification.state {
            State::Event => self.notification.event.is_error(),
            State::Firing => true,
            State::Resolved => false,
        }
    }

    /// One of two texts, by how bad it is.
    pub(crate) fn pick(&self, good: &'static str, bad: &'static str) -> &'static str {
        if self.is_bad() { bad } else { good }
    }

    /// How bad it is, in a word.
    pub(crate) fn severity(&self) -> &'a str {
        match self.notification.state {
            State::Event => self.notification.event.severity.as_str(),
            State::Firing => "error",
            State::Resolved => "resolved",
        }
    }

    /// The text of the template, or the message of the event.
    pub(crate) fn text(&self) -> &'a str {
        message(self.notification)
    }

    /// The metadata by name, unless a template says it all. What is too long is cut, what is too much left out.
    pub(crate) fn fields(&self, limits: Fields) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        if self.notification.text.is_some() {
            return Vec::new();
        }
        fields(self.notification, limits)
    }
}

/// The metadata by name. What is too long is cut, what is too much left out.
pub(crate) fn fields(notification: &Notification, limits: Fields) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    let mut left = limits.total;
    let mut fields = Vec::new();
    for (name, value) in &notification.event.metadata {
        let name = cut(name, MAX_FIELD_NAME);
        let value = cut_json(value, limits.value);
        let length = json_length(&name) + json_length(&value);
        if fields.len() == limits.count || length > left {
            break;
        }
        left -= length;
        fields.push((name, value));
    }
    fields
}

/// The text of the template, or the message of the event.
pub(crate) fn message(notification: &Notification) -> &str {
    notification
        .text
        .as_deref()
        .unwrap_or(&notification.event.message)
}

/// The same for all messages of this target about the same thing, and for no other: what services tell incidents and
/// threads apart by.
pub(crate) fn stable_key(target: &Target, notification: &Notification) -> String {
    key_of(target, &notification.key)
}

/// The same for this target and text, and for no other.
pub(crate) fn key_of(target: &Target, text: &str) -> String {
    let key = format!("{}/{text}", target.provider.uid);
    hex::encode(digest::digest(&digest::SHA256, key.as_bytes()))
}

/// The text if it has at most so many characters; else its begin, and `…`.
pub(crate) fn cut(text: &str, longest: usize) -> Cow<'_, str> {
    cut_by(text, longest, |_| 1)
}

/// As [`cut`], counted in bytes of UTF-8.
pub(crate) fn cut_bytes(text: &str, longest: usize) -> Cow<'_, str> {
    cut_by(text, longest, char::len_utf8)
}

/// As [`cut`], counted in code units of UTF-16.
pub(crate) fn cut_utf16(text: &str, longest: usize) -> Cow<'_, str> {
    cut_by(text, longest, char::len_utf16)
}

/// As [`cut`], counted in bytes of JSON.
pub(crate) fn cut_json(text: &str, longest: usize) -> Cow<'_, str> {
    cut_by(text, longest, length_in_json)
}

fn cut_by(text: &str, longest: usize, measure: fn(char) -> usize) -> Cow<'_, str> {
    let room = longest.saturating_sub(measure('…'));
    let (mut length, mut end) = (0, 0);
    for (at, found) in text.char_indices() {
        if length <= room {
            end = at;
        }
        length += measure(found);
        if length > longest {
            return Cow::Owned(format!("{}…", &text[..end]));
        }
    }
    Cow::Borrowed(text)
}

/// The length of a text in JSON, without quotes.
pub(crate) fn json_length(text: &str) -> usize {
    text.chars().map(length_in_json).sum()
}

fn length_in_json(found: char) -> usize {
    match found {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => 6,
        other if other.is_control() => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_what_the_service_counts() {
        assert_eq!(cut("héllo", 5), "héllo");
        assert_eq!(cut("héllo!", 5), "héll…");
        assert_eq!(cut_bytes("héllo", 6), "héllo");
        assert_eq!(cut_bytes("héllo!", 6), "hé…");
        assert_eq!(cut_utf16("😀😀", 4), "😀😀");
        assert_eq!(cut_utf16("😀😀😀", 4), "😀…");
        assert_eq!(cut_json("<<", 12), "<<");
        assert_eq!(cut_json("<<<", 12), "<…");
        assert_eq!(cut("", 0), "");
        assert_eq!(cut("ab", 1), "…");
    }

    #[test]
    fn no_cut_text_is_longer_than_allowed() {
        let text = "a\u{1}é<😀\"…".repeat(20);
        for longest in 3..400 {
            assert!(cut(&text, longest).chars().count() <= longest);
            assert!(cut_bytes(&text, longest).len() <= longest);
            assert!(cut_utf16(&text, longest).encode_utf16().count() <= longest);
            assert!(json_length(&cut_json(&text, longest)) <= longest);
        }
    }
}
