//! `%YAML` and `%TAG` lines.

use super::token::{TagDirective, Token, TokenKind};
use super::{Result, Scanner};

/// How many digits each number of a version may have.
const VERSION_DIGITS: u32 = 2;

impl<'a> Scanner<'a> {
    pub(super) fn scan_directive(&mut self) -> Result<Token<'a>> {
        let line = self.cursor.line;
        self.cursor.skip(1);
        let name = self.take_word();
        if name.is_empty() {
            return Err(self.failure(line, "could not find expected directive name"));
        }
        if !self.cursor.is_blank_or_end(0) {
            return Err(self.failure(line, "found unexpected non-alphabetical character"));
        }
        let kind = match name {
            "YAML" => self.take_version(line)?,
            "TAG" => self.take_tag_directive(line)?,
            _ => return Err(self.failure(line, "found unknown directive name")),
        };
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.is_break_or_end(0) {
            return Err(self.failure(line, "did not find expected comment or line break"));
        }
        self.cursor.take_break();
        Ok(Token { kind, line })
    }

    fn take_version(&mut self, start: u32) -> Result<TokenKind<'a>> {
        self.cursor.skip_blanks();
        let major = self.take_version_number(start)?;
        if self.cursor.peek(0) != b'.' {
            return Err(self.failure(start, "did not find expected digit or '.' character"));
        }
        self.cursor.skip(1);
        let minor = self.take_version_number(start)?;
        Ok(TokenKind::VersionDirective { major, minor })
    }

    fn take_version_number(&mut self, start: u32) -> Result<u8> {
        let (mut value, mut digits) = (0, 0);
        while let digit @ b'0'..=b'9' = self.cursor.peek(0) {
            digits += 1;
            if digits > VERSION_DIGITS {
                return Err(self.failure(start, "found extremely long version number"));
            }
            value = value * 10 + (digit - b'0');
            self.cursor.skip(1);
        }
        if digits == 0 {
            return Err(self.failure(start, "did not find expected version number"));
        }
        Ok(value)
    }

    fn take_tag_directive(&mut self, start: u32) -> Result<TokenKind<'a>> {
        self.cursor.skip_blanks();
        let handle = self.take_tag_handle(true, start)?;
        if !self.cursor.is_blank(0) {
            return Err(self.failure(start, "did not find expected whitespace"));
        }
        self.cursor.skip_blanks();
        let prefix = self.take_tag_uri("", start)?;
        if !self.cursor.is_blank_or_end(0) {
            return Err(self.failure(start, "did not find expected whitespace or line break"));
        }
        Ok(TokenKind::TagDirective(Box::new(TagDirective { handle, prefix })))
    }
}
