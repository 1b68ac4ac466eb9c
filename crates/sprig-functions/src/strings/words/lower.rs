//! `snakecase` and `kebabcase`: huandu/xstrings' rules of where a word ends.

use go_text::rune::{self, decode, decode_all, encode};

use super::camel::is_connector;
use crate::unicode::{is_number, is_punctuation, is_upper, to_lower};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Bytes that are no characters; also what is there at the end.
    Invalid,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

impl Kind {
    /// Letters and digits may make one word.
    fn is_alphanumeric(self) -> bool {
        matches!(self, Self::Alphabet | Self::Number)
    }

    fn is_connector_or_punctuation(self) -> bool {
        matches!(self, Self::Connector | Self::Punctuation)
    }
}

/// Puts a connector between words, and lowers them.
pub(super) fn lower_case(text: &[u8], connector: char) -> Vec<u8> {
    let mut writer = Writer {
        out: Vec::with_capacity(text.len() + 8),
        connector,
    };
    let mut words = Words { rest: text };
    let (mut kind, mut word) = words.next_word();
    while !words.rest.is_empty() {
        if kind != Kind::Connector {
            writer.word(kind, word);
        }
        let (previous, last) = (kind, word);
        (kind, word) = words.next_word();
        match previous {
            Kind::Number => {
                (kind, word) = writer.alphanumerics(&mut words, kind, word);
                writer.connect(kind != Kind::Invalid && !kind.is_connector_or_punctuation());
            }
            Kind::Connector => writer.word(previous, last),
            Kind::Punctuation => {}
            _ if kind != Kind::Number => writer.connect(!kind.is_connector_or_punctuation()),
            _ if words.rest.is_empty() => {}
            _ => {
                let number = word;
                (kind, word) = words.next_word();
                if kind == Kind::Alphabet {
                    // "HTTP2xx": lower case letters after a number make one word with it.
                    writer.connect(true);
                    writer.word(Kind::Number, number);
                    (kind, word) = writer.alphanumerics(&mut words, kind, word);
                    writer.connect(kind != Kind::Invalid && !kind.is_connector_or_punctuation());
                } else {
                    // "Bld4Floor": the number belongs to the word before it.
                    writer.word(Kind::Number, number);
                    writer.connect(!kind.is_connector_or_punctuation());
                }
            }
        }
    }
    writer.word(kind, word);
    writer.out
}

struct Writer {
    out: Vec<u8>,
    connector: char,
}

impl Writer {
    fn connect(&mut self, wanted: bool) {
        if wanted {
            encode(self.connector, &mut self.out);
        }
    }

    fn word(&mut self, kind: Kind, word: &[u8]) {
        if !matches!(kind, Kind::Upper | Kind::Connector) {
            return self.out.extend_from_slice(word);
        }
        for character in decode_all(word) {
            let character = if is_connector(character) {
                self.connector
            } else if is_upper(character) {
                to_lower(character)
            } else {
                character
            };
            encode(character, &mut self.out);
        }
    }

    /// Writes words of letters and digits; returns the first other one.
    fn alphanumerics<'a>(
        &mut self,
        words: &mut Words<'a>,
        mut kind: Kind,
        mut word: &'a [u8],
    ) -> (Kind, &'a [u8]) {
        while kind.is_alphanumeric() {
            self.word(kind, word);
            (kind, word) = words.next_word();
        }
        (kind, word)
    }
}

struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    fn next_word(&mut self) -> (Kind, &'a [u8]) {
        if self.rest.is_empty() {
            return (Kind::Invalid, b"");
        }
        let (first, width) = next_valid(self.rest, rune::ERROR);
        let (kind, length) = if first == rune::ERROR {
            (Kind::Invalid, width)
        } else if is_connector(first) {
            (Kind::Connector, self.length_while(width, first, is_connector))
        } else if is_punctuation(first) {
            (Kind::Punctuation, self.length_while(width, first, is_punctuation))
        } else if is_upper(first) {
            (Kind::Upper, self.upper_length(width, first))
        } else if is_alphabet(first) {
            (Kind::Alphabet, self.length_while(width, first, is_small))
        } else if is_number(first) {
            (Kind::Number, self.length_while(width, first, is_number))
        } else {
            (Kind::Other, self.length_while(width, first, is_other))
        };
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        (kind, word)
    }

    /// Returns how many bytes from the start on belong together. What follows `length` must be of the class; bytes that are no
    /// characters count as part of the character behind them.
    fn length_while(&self, mut length: usize, mut previous: char, class: impl Fn(char) -> bool) -> usize {
        while length < self.rest.len() {
            let (character, width) = next_valid(&self.rest[length..], previous);
            if !class(character) {
                break;
            }
            previous = character;
            length += width;
        }
        length
    }

    /// The length of a word that begins with a capital: all capitals but the last where a small letter follows that one
    /// ("HTTPStatus"), or small letters.
    fn upper_length(&self, width: usize, first: char) -> usize {
        if width == self.rest.len() {
            return width;
        }
        let (second, second_width) = next_valid(&self.rest[width..], first);
        if !is_upper(second) {
            return if is_alphabet(second) {
                self.length_while(width + second_width, second, is_small)
            } else {
                width
            };
        }
        let (mut length, mut last_width, mut character) = (width + second_width, second_width, second);
        while length < self.rest.len() {
            let (next, next_width) = next_valid(&self.rest[length..], character);
            character = next;
            if !is_upper(next) {
                break;
            }
            last_width = next_width;
            length += next_width;
        }
        if length < self.rest.len() && is_alphabet(character) {
            length -= last_width;
        }
        length
    }
}

/// Reads the next character, with the invalid ones before it; where there is none, the previous one is taken again.
fn next_valid(mut text: &[u8], previous: char) -> (char, usize) {
    let mut length = 0;
    while let (character, width @ 1..) = decode(text) {
        length += width;
        if character != rune::ERROR {
            return (character, length);
        }
        text = &text[width..];
    }
    (previous, length)
}

fn is_small(character: char) -> bool {
    is_alphabet(character) && !is_upper(character)
}

fn is_other(character: char) -> bool {
    !is_connector(character) && !is_alphabet(character) && !is_number(character) && !is_punctuation(character)
}

/// A letter that is not one of the common CJK characters, each of which would be a word.
fn is_alphabet(character: char) -> bool {
    let is_ideograph = matches!(
        character,
        '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}'
    );
    !is_ideograph && rune::is_letter(character)
}
