//! Where the pieces of an index begin and end that is written in block style, as all tools write it.
//!
//! ```text
//! apiVersion: v1          a field
//! entries:
//!   app:                  a chart
//!   - name: app           an entry
//!     version: 1.0.0
//! ```
//! In: lines. Out: [`Piece`]s, each of them text that the YAML reader understands by itself. Only the indentation and the
//! first characters of lines are looked at. Where that is not enough to be sure, the answer is [`Split::Unsure`]. A text
//! that is cut in the wrong place ends within quotes or brackets, which the YAML reader refuses.

use std::mem;

/// A part of an index, with the line it begins in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) what: What,
    pub(crate) text: Vec<u8>,
    pub(crate) line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A mapping with a field of the index.
    Field,
    /// `entries:`, with nothing behind it.
    Entries,
    /// A mapping with a chart and its versions, which are not listed line by line.
    Chart,
    /// The name of a chart (`name:`) whose entries follow.
    ChartName,
    /// A sequence with one entry of the chart named before.
    Entry,
}

/// Meaning of a line.
pub(crate) enum Split {
    /// It goes on.
    More,
    /// This cannot be cut line by line.
    Unsure,
}

/// Cuts a text that is given line by line.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    place: Place,
    /// The piece that is being collected.
    open: Option<Piece>,
    /// Pieces that are complete.
    done: Vec<Piece>,
    /// A document has begun.
    begun: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Among the fields of the index.
    #[default]
    Fields,
    /// Behind `entries:`; the indentation of the charts is not known yet.
    BeforeCharts,
    /// Among the charts.
    Charts { indent: usize },
    /// Behind the name of a chart; it is not known yet how its versions are written.
    BeforeEntries { indent: usize },
    /// In the list of a chart.
    Entries { indent: usize, dash: usize },
}

impl Splitter {
    /// The pieces that were completed.
    pub(crate) fn take(&mut self) -> Vec<Piece> {
        mem::take(&mut self.done)
    }

    /// How much is collected.
    pub(crate) fn size(&self) -> usize {
        self.open.as_ref().map_or(0, |piece| piece.text.len())
    }

    /// Where what is collected begins.
    pub(crate) fn start(&self) -> u32 {
        self.open.as_ref().map_or(0, |piece| piece.line)
    }

    /// The text is over.
    pub(crate) fn finish(&mut self) {
        self.close();
    }

    /// Takes a line with its end.
    pub(crate) fn line(&mut self, text: &[u8], number: u32) -> Split {
        let indent = text.iter().take_while(|byte| **byte == b' ').count();
        let rest = trimmed(&text[indent..]);
        if rest.is_empty() || rest.starts_with(b"#") {
            return self.append(text);
        }
        let is_marker =
            |mark: &[u8]| indent == 0 && rest.starts_with(mark) && (rest.len() == 3 || rest[3] == b' ');
        if is_marker(b"---") && rest.len() == 3 && !self.begun {
            self.begun = true;
            return Split::More;
        }
        if is_marker(b"---") || is_marker(b"...") || (indent == 0 && rest[0] == b'%') {
            return Split::Unsure;
        }
        self.begun = true;
        match self.place {
            Place::Fields if indent == 0 => self.field(text, rest, number),
            Place::Fields => self.append_to_open(text),
            Place::BeforeCharts if indent == 0 => self.field(text, rest, number),
            Place::BeforeCharts => self.chart(text, rest, indent, number),
            Place::Charts { indent: charts }
            | Place::BeforeEntries { indent: charts }
            | Place::Entries { indent: charts, .. } => self.within_charts(text, rest, indent, charts, number),
        }
    }

    fn within_charts(
        &mut self,
        text: &[u8],
        rest: &[u8],
        indent: usize,
        charts: usize,
        number: u32,
    ) -> Split {
        let is_item = rest[0] == b'-' && (rest.len() == 1 || rest[1] == b' ');
        match self.place {
            Place::BeforeEntries { .. } if is_item && indent >= charts => {
                if let Some(piece) = &mut self.open {
                    piece.what = What::ChartName;
                }
                self.place = Place::Entries {
                    indent: charts,
                    dash: indent,
                };
                self.begin(What::Entry, text, number)
            }
            Place::Entries { dash, .. } if is_item && indent == dash => self.begin(What::Entry, text, number),
            Place::Entries { dash, .. } if indent > dash => self.append_to_open(text),
            _ if indent == 0 => self.field(text, rest, number),
            _ if indent == charts => self.chart(text, rest, indent, number),
            Place::Charts { .. } if indent > charts => self.append_to_open(text),
            Place::BeforeEntries { .. } if indent > charts => {
                self.place = Place::Charts { indent: charts };
                self.append_to_open(text)
            }
            _ => Split::Unsure,
        }
    }

    /// A line that begins a field of the index.
    fn field(&mut self, text: &[u8], rest: &[u8], number: u32) -> Split {
        let Some((key, value)) = key_and_value(rest) else {
            return match self.place {
                // A list may stand as far left as the name of its field.
                Place::Fields if rest[0] == b'-' => self.append_to_open(text),
                _ => Split::Unsure,
            };
        };
        if key == b"entries" && value.is_empty() {
            self.place = Place::BeforeCharts;
            return self.begin(What::Entries, text, number);
        }
        self.place = Place::Fields;
        self.begin(What::Field, text, number)
    }

    /// A line that begins a chart.
    fn chart(&mut self, text: &[u8], rest: &[u8], indent: usize, number: u32) -> Split {
        let Some((_, value)) = key_and_value(rest) else {
            return Split::Unsure;
        };
        self.place = if value.is_empty() {
            Place::BeforeEntries { indent }
        } else {
            Place::Charts { indent }
        };
        self.begin(What::Chart, text, number)
    }

    fn begin(&mut self, what: What, text: &[u8], line: u32) -> Split {
        self.close();
        self.open = Some(Piece {
            what,
            text: text.to_owned(),
            line,
        });
        Split::More
    }

    fn close(&mut self) {
        self.done.extend(self.open.take());
    }

    /// Blanks and comments belong to what is open, if anything is.
    fn append(&mut self, text: &[u8]) -> Split {
        if let Some(piece) = &mut self.open {
            piece.text.extend_from_slice(text);
        }
        Split::More
    }

    fn append_to_open(&mut self, text: &[u8]) -> Split {
        match &mut self.open {
            Some(piece) if !matches!(piece.what, What::Entries) => {
                piece.text.extend_from_slice(text);
                Split::More
            }
            _ => Split::Unsure,
        }
    }
}

/// Key and value of a line such as `name: value`, if the key is a plain or quoted word. Comments are no value.
fn key_and_value(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = match rest[0] {
        quote @ (b'"' | b'\'') => {
            let end = 1 + rest[1..].iter().position(|byte| *byte == quote)?;
            if rest[1..end].contains(&b'\\') || rest.get(end + 1) == Some(&quote) {
                return None;
            }
            end + 1
        }
        byte if byte.is_ascii_alphanumeric() || byte == b'_' => {
            let is_of_word =
                |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
            rest.iter().position(|byte| !is_of_word(byte))?
        }
        _ => return None,
    };
    let value = rest[end..].strip_prefix(b":")?;
    if !(value.is_empty() || value[0] == b' ') {
        return None;
    }
    let value = trimmed(value);
    let key = rest[..end].trim_ascii();
    Some((key, if value.starts_with(b"#") { b"" } else { value }))
}

/// Without the end of the line, and blanks at both ends. Tabs stay: they are for the YAML reader to judge.
fn trimmed(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\r' | b'\n');
    let start = text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len());
    let end = text
        .iter()
        .rposition(|byte| !is_blank(byte))
        .map_or(start, |at| at + 1);
    &text[start..end]
}
