//! Reads numbers, roughly: `089` and `0x0.2` are read too, and refused when the parser works out their value.

use super::action::is_alphanumeric;
use super::{Item, Kind, Lexer};
use go_text::quote::quote;
use go_text::rune::decode;

impl Lexer<'_> {
    /// Reads a number, or two with a sign between them, of which the second must be imaginary.
    pub(super) fn lex_number(&mut self) -> Item {
        if !self.scan_number() {
            return self.fail_at_bad_number();
        }
        if !matches!(self.rest(), [b'+' | b'-', ..]) {
            return self.item(Kind::Number);
        }
        if !self.scan_number() || self.source[self.at - 1] != b'i' {
            return self.fail_at_bad_number();
        }
        self.item(Kind::Complex)
    }

    fn fail_at_bad_number(&mut self) -> Item {
        let mut quoted = Vec::new();
        quote(&self.source[self.start..self.at], &mut quoted);
        self.fail(format!("bad number syntax: {}", go_text::valid_text(&quoted)))
    }

    /// Returns whether what follows the number may follow one; if not, the character there is read too.
    fn scan_number(&mut self) -> bool {
        self.accept(b"+-");
        let base = self.scan_base();
        self.accept_digits(base);
        if self.accept(b".") {
            self.accept_digits(base);
        }
        let has_exponent = base == 10 && self.accept(b"eE") || base == 16 && self.accept(b"pP");
        if has_exponent {
            self.accept(b"+-");
            self.accept_digits(10);
        }
        self.accept(b"i");
        let (next, width) = decode(self.rest());
        if width > 0 && is_alphanumeric(next) {
            self.at += width;
            return false;
        }
        true
    }

    fn scan_base(&mut self) -> u32 {
        if !self.accept(b"0") {
            10
        } else if self.accept(b"xX") {
            16
        } else if self.accept(b"oO") {
            8
        } else if self.accept(b"bB") {
            2
        } else {
            10
        }
    }

    fn accept_digits(&mut self, base: u32) {
        while let [byte, ..] = *self.rest()
            && (byte == b'_' || char::from(byte).is_digit(base))
        {
            self.at += 1;
        }
    }

    fn accept(&mut self, valid: &[u8]) -> bool {
        let accepts = self.rest().first().is_some_and(|byte| valid.contains(byte));
        self.at += usize::from(accepts);
        accepts
    }
}
