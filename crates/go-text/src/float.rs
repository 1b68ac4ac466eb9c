//! The shortest digits of a float, and Go's layouts of them.
//!
//! Go, like Ryū, rounds to the even digit where two shortest texts are equally near (`1513954756054102.25` is `…102.2`);
//! Rust's own formatting rounds up there. So the digits come from the crate that `serde_json` uses as well.

/// The shortest digits that read back as the same number.
#[derive(Clone, Copy, Debug)]
pub struct Shortest {
    /// True if there is a sign, be it that of a negative zero.
    pub negative: bool,
    digits: [u8; 20],
    length: usize,
    /// Where the point stands, counted from before the first digit: `0.digits * 10^point`.
    pub point: i32,
}

impl Shortest {
    /// Takes the digits of a finite number.
    pub fn from_number(number: f64) -> Self {
        Self::of_text(
            number.is_sign_negative(),
            zmij::Buffer::new().format_finite(number.abs()),
        )
    }

    /// Takes the digits that suffice for 32 bits.
    pub fn of_32(number: f32) -> Self {
        Self::of_text(
            number.is_sign_negative(),
            zmij::Buffer::new().format_finite(number.abs()),
        )
    }

    fn of_text(negative: bool, text: &str) -> Self {
        let mut shortest = Self {
            negative,
            digits: [b'0'; 20],
            length: 0,
            point: 0,
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut seen_point = false;
        for byte in mantissa.bytes() {
            match byte {
                b'.' => seen_point = true,
                // Zeros before the first other digit only move the point.
                b'0' if shortest.length == 0 => shortest.point -= i32::from(seen_point),
                _ => {
                    shortest.digits[shortest.length] = byte;
                    shortest.length += 1;
                    shortest.point += i32::from(!seen_point);
                }
            }
        }
        while shortest.length > 0 && shortest.digits[shortest.length - 1] == b'0' {
            shortest.length -= 1;
        }
        if shortest.length == 0 {
            // Go's zero is the one digit 0 before the point.
            shortest.length = 1;
            shortest.point = 1;
            return shortest;
        }
        shortest.point += exponent
            .trim_start_matches('+')
            .parse::<i32>()
            .unwrap_or_default();
        shortest
    }

    /// Returns the digits, without zeros at either end; those of zero are `0`.
    pub fn digits(&self) -> &str {
        std::str::from_utf8(&self.digits[..self.length]).unwrap_or_default()
    }

    /// Returns the exponent that `%e` shows.
    pub fn exponent(&self) -> i32 {
        if self.digits() == "0" { 0 } else { self.point - 1 }
    }

    /// Appends the number without an exponent, as `strconv.FormatFloat(number, 'f', -1, 64)` does.
    pub fn push_plain(&self, out: &mut String) {
        if self.negative {
            out.push('-');
        }
        let digits = self.digits();
        let before = usize::try_from(self.point).unwrap_or(0);
        if before == 0 {
            out.push_str("0.");
            (self.point..0).for_each(|_| out.push('0'));
            out.push_str(digits);
        } else if before >= digits.len() {
            out.push_str(digits);
            (digits.len()..before).for_each(|_| out.push('0'));
        } else {
            out.push_str(&digits[..before]);
            out.push('.');
            out.push_str(&digits[before..]);
        }
    }

    /// Appends the number with an exponent of at least `width` digits; `strconv.FormatFloat(number, 'e', -1, 64)` has two.
    pub fn push_exponent(&self, width: usize, out: &mut String) {
        if self.negative {
            out.push('-');
        }
        let (first, rest) = self.digits().split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        let exponent = self.exponent();
        let sign = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("e{sign}{:0width$}", exponent.abs()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(number: f64, plain: &str, exponent: &str) {
        let shortest = Shortest::from_number(number);
        let (mut first, mut second) = (String::new(), String::new());
        shortest.push_plain(&mut first);
        shortest.push_exponent(2, &mut second);
        assert_eq!((first.as_str(), second.as_str()), (plain, exponent), "{number}");
    }

    #[test]
    fn numbers_are_laid_out_as_strconv_does() {
        check(0.0, "0", "0e+00");
        check(-0.0, "-0", "-0e+00");
        check(1.0, "1", "1e+00");
        check(100.0, "100", "1e+02");
        check(-12.5, "-12.5", "-1.25e+01");
        check(0.000_123, "0.000123", "1.23e-04");
        check(0.5, "0.5", "5e-01");
        check(1e21, "1000000000000000000000", "1e+21");
        check(1e-7, "0.0000001", "1e-07");
        check(1.5e300, &format!("15{}", "0".repeat(299)), "1.5e+300");
        check(5e-324, &format!("0.{}5", "0".repeat(323)), "5e-324");
    }

    #[test]
    fn of_two_equally_near_texts_the_even_one_is_taken() {
        check(
            6_055_819_024_216_409.0 / 4.0, // ….25
            "1513954756054102.2",
            "1.5139547560541022e+15",
        );
    }
}
