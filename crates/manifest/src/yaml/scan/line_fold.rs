//! How the lines of a plain or quoted scalar become one text.

use std::borrow::Cow;

/// The text of a scalar, borrowed as long as it stands in one piece.
#[derive(Debug, Default)]
pub(super) struct Folded<'a> {
    first: &'a str,
    whole: Option<String>,
}

impl<'a> Folded<'a> {
    /// Appends a piece of the scanned text.
    pub(super) fn push(&mut self, piece: &'a str) {
        match &mut self.whole {
            Some(whole) => whole.push_str(piece),
            None if self.first.is_empty() => self.first = piece,
            None => self.whole().push_str(piece),
        }
    }

    /// Returns the text for changes.
    pub(super) fn whole(&mut self) -> &mut String {
        let first = self.first;
        self.whole.get_or_insert_with(|| first.to_owned())
    }

    pub(super) fn finish(self) -> Cow<'a, str> {
        match self.whole {
            Some(whole) => Cow::Owned(whole),
            None => Cow::Borrowed(self.first),
        }
    }
}

/// The line breaks between two lines of a scalar.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    first: &'static str,
    others: String,
}

impl Breaks {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    pub(super) fn push(&mut self, line_break: &'static str) {
        if self.is_empty() {
            self.first = line_break;
        } else {
            self.others.push_str(line_break);
        }
    }

    /// Appends what the breaks mean: a space for one, all but the first for several; Unicode's separators are kept.
    pub(super) fn fold_into(&self, text: &mut String) {
        match self.first {
            "\n" if self.others.is_empty() => text.push(' '),
            "\n" => {}
            other => text.push_str(other),
        }
        text.push_str(&self.others);
    }
}
