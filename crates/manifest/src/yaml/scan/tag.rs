//! Tags, anchors and aliases.

use std::borrow::Cow;

use super::token::{TagToken, Token, TokenKind};
use super::{Result, Scanner};

impl<'a> Scanner<'a> {
    /// Takes `&name` or `*name`.
    pub(super) fn scan_anchor(&mut self) -> Result<Token<'a>> {
        let line = self.cursor.line;
        let is_alias = self.cursor.peek(0) == b'*';
        self.cursor.skip(1);
        let name = self.take_word();
        let ends = self.cursor.is_blank_or_end(0)
            || matches!(
                self.cursor.peek(0),
                b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`'
            );
        if name.is_empty() || !ends {
            return Err(self.failure(line, "did not find expected alphabetic or numeric character"));
        }
        let kind = if is_alias {
            TokenKind::Alias(name)
        } else {
            TokenKind::Anchor(name)
        };
        Ok(Token { kind, line })
    }

    pub(super) fn scan_tag(&mut self) -> Result<Token<'a>> {
        let line = self.cursor.line;
        let tag = if self.cursor.peek(1) == b'<' {
            self.cursor.skip(2);
            let suffix = self.take_tag_uri("", line)?;
            if self.cursor.peek(0) != b'>' {
                return Err(self.failure(line, "did not find the expected '>'"));
            }
            self.cursor.skip(1);
            TagToken { handle: "", suffix }
        } else {
            self.take_short_tag(line)?
        };
        if !self.cursor.is_blank_or_end(0) {
            return Err(self.failure(line, "did not find expected whitespace or line break"));
        }
        Ok(Token {
            kind: TokenKind::Tag(Box::new(tag)),
            line,
        })
    }

    /// Takes `!suffix`, `!handle!suffix` or `!`.
    fn take_short_tag(&mut self, start: u32) -> Result<TagToken<'a>> {
        let handle = self.take_tag_handle(false, start)?;
        if handle.len() > 1 && handle.ends_with('!') {
            let suffix = self.take_tag_uri("", start)?;
            return Ok(TagToken { handle, suffix });
        }
        let suffix = self.take_tag_uri(handle, start)?;
        Ok(if suffix.is_empty() {
            TagToken {
                handle: "",
                suffix: Cow::Borrowed("!"),
            }
        } else {
            TagToken { handle: "!", suffix }
        })
    }

    pub(super) fn take_tag_handle(&mut self, directive: bool, start: u32) -> Result<&'a str> {
        if self.cursor.peek(0) != b'!' {
            return Err(self.failure(start, "did not find expected '!'"));
        }
        let from = self.cursor.at;
        self.cursor.skip(1);
        self.take_word();
        if self.cursor.peek(0) == b'!' {
            self.cursor.skip(1);
        } else if directive && self.cursor.at > from + 1 {
            return Err(self.failure(start, "did not find expected '!'"));
        }
        Ok(&self.cursor.text[from..self.cursor.at])
    }

    /// Takes the characters of a URI; `head` is what was already taken of it, with the `!` before it.
    pub(super) fn take_tag_uri(&mut self, head: &'a str, start: u32) -> Result<Cow<'a, str>> {
        let from = self.cursor.at;
        let mut escaped: Option<Vec<u8>> = None;
        loop {
            match self.cursor.peek(0) {
                b'%' => {
                    let plain = &self.cursor.text.as_bytes()[from..self.cursor.at];
                    let mut bytes = escaped.take().unwrap_or_else(|| plain.to_vec());
                    self.take_uri_escape(&mut bytes, start)?;
                    escaped = Some(bytes);
                }
                byte if self.cursor.is_word() || b";/?:@&=+$,.!~*'()[]".contains(&byte) => {
                    if let Some(bytes) = &mut escaped {
                        bytes.push(byte);
                    }
                    self.cursor.skip(1);
                }
                _ => break,
            }
        }
        if head.is_empty() && self.cursor.at == from {
            return Err(self.failure(start, "did not find expected tag URI"));
        }
        let head = head.strip_prefix('!').unwrap_or(head);
        let tail = match &escaped {
            // Escapes are checked by go-yaml no further than by their first bits.
            Some(bytes) => String::from_utf8_lossy(bytes),
            None => Cow::Borrowed(&self.cursor.text[from..self.cursor.at]),
        };
        Ok(match (head, tail) {
            ("", Cow::Borrowed(_)) if escaped.is_none() => {
                Cow::Borrowed(&self.cursor.text[from..self.cursor.at])
            }
            (head, tail) => Cow::Owned(format!("{head}{tail}")),
        })
    }

    /// Takes the `%xx` of one character.
    fn take_uri_escape(&mut self, bytes: &mut Vec<u8>, start: u32) -> Result<()> {
        let mut left = 0;
        loop {
            let digit = |ahead| char::from(self.cursor.peek(ahead)).to_digit(16);
            let (b'%', Some(high), Some(low)) = (self.cursor.peek(0), digit(1), digit(2)) else {
                return Err(self.failure(start, "did not find URI escaped octet"));
            };
            let octet = u8::try_from(high << 4 | low).unwrap_or(0);
            if left == 0 {
                left = match octet {
                    0..=0x7f => 1,
                    0xc0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    0xf0..=0xf7 => 4,
                    _ => return Err(self.failure(start, "found an incorrect leading UTF-8 octet")),
                };
            } else if octet & 0xc0 != 0x80 {
                return Err(self.failure(start, "found an incorrect trailing UTF-8 octet"));
            }
            bytes.push(octet);
            self.cursor.skip(3);
            left -= 1;
            if left == 0 {
                return Ok(());
            }
        }
    }

    pub(super) fn take_word(&mut self) -> &'a str {
        let from = self.cursor.at;
        while self.cursor.is_word() {
            self.cursor.skip(1);
        }
        &self.cursor.text[from..self.cursor.at]
    }
}
