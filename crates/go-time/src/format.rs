//! Writes a time by a layout.

use std::io::Write;

use crate::civil::{self, Civil};
use crate::layout::{Element, Offset, Precision, next_chunk};
use crate::location::Zone;
use crate::time::Time;

impl Time {
    /// Writes the time as the layout shows it.
    #[must_use]
    pub fn format(&self, layout: &[u8]) -> Vec<u8> {
        let zone = self.location().zone_at(self.unix());
        let civil = Civil::new(self.unix().wrapping_add(zone.offset.into()));
        let writer = Writer {
            zone,
            civil,
            nanosecond: self.nanosecond(),
        };
        let mut text = Vec::with_capacity(layout.len() + 10);
        let mut rest = layout;
        loop {
            let chunk = next_chunk(rest);
            text.extend_from_slice(chunk.before);
            let Some(element) = chunk.element else {
                return text;
            };
            writer.write(element, &mut text);
            rest = chunk.rest;
        }
    }
}

struct Writer {
    zone: Zone,
    civil: Civil,
    nanosecond: u32,
}

impl Writer {
    fn write(&self, element: Element, text: &mut Vec<u8>) {
        let Civil {
            year,
            month,
            day,
            year_day,
            weekday,
            hour,
            minute,
            second,
        } = self.civil;
        let month_name = civil::month_name(month);
        let weekday_name = civil::weekday_name(weekday);
        let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
        let half = if hour >= 12 { "PM" } else { "AM" };
        let written = match element {
            Element::LongMonth => text.write_all(month_name.as_bytes()),
            Element::Month => text.write_all(&month_name.as_bytes()[..3]),
            Element::NumericMonth => write!(text, "{month}"),
            Element::ZeroMonth => write!(text, "{month:02}"),
            Element::LongWeekday => text.write_all(weekday_name.as_bytes()),
            Element::Weekday => text.write_all(&weekday_name.as_bytes()[..3]),
            Element::Day => write!(text, "{day}"),
            Element::UnderDay => write!(text, "{day:2}"),
            Element::ZeroDay => write!(text, "{day:02}"),
            Element::UnderYearDay => write!(text, "{year_day:3}"),
            Element::ZeroYearDay => write!(text, "{year_day:03}"),
            Element::Hour => write!(text, "{hour:02}"),
            Element::Hour12 => write!(text, "{hour12}"),
            Element::ZeroHour12 => write!(text, "{hour12:02}"),
            Element::Minute => write!(text, "{minute}"),
            Element::ZeroMinute => write!(text, "{minute:02}"),
            Element::Second => write!(text, "{second}"),
            Element::ZeroSecond => write!(text, "{second:02}"),
            Element::LongYear if year < 0 => write!(text, "-{:04}", year.unsigned_abs()),
            Element::LongYear => write!(text, "{year:04}"),
            Element::Year => write!(text, "{:02}", year.unsigned_abs() % 100),
            Element::UpperHalf => text.write_all(half.as_bytes()),
            Element::LowerHalf => text.write_all(half.to_ascii_lowercase().as_bytes()),
            Element::ZoneName if self.zone.abbreviation.is_empty() => self.write_offset(NUMERIC, text),
            Element::ZoneName => text.write_all(self.zone.abbreviation.as_bytes()),
            Element::Offset(offset) => self.write_offset(offset, text),
            Element::Fraction {
                digits,
                trimmed,
                comma,
            } => {
                self.write_fraction(digits, trimmed, comma, text);
                Ok(())
            }
        };
        written.expect("writing to a Vec never fails");
    }

    fn write_offset(&self, form: Offset, text: &mut Vec<u8>) -> std::io::Result<()> {
        let offset = self.zone.offset;
        if form.iso && offset == 0 {
            return text.write_all(b"Z");
        }
        // Go looks at the minutes for the sign, so that an offset of -30 seconds is "+0000".
        let minutes = offset / 60;
        let (sign, seconds) = if minutes < 0 {
            ('-', -offset)
        } else {
            ('+', offset)
        };
        let minutes = minutes.abs();
        let colon = if form.colons { ":" } else { "" };
        write!(text, "{sign}{:02}", minutes / 60)?;
        if form.precision >= Precision::Minutes {
            write!(text, "{colon}{:02}", minutes % 60)?;
        }
        if form.precision == Precision::Seconds {
            let seconds = seconds % 60;
            // Go's padding does not count the sign of what should not have one.
            let sign = if seconds < 0 { "-" } else { "" };
            write!(text, "{colon}{sign}{:02}", seconds.abs())?;
        }
        Ok(())
    }

    fn write_fraction(&self, digits: usize, trimmed: bool, comma: bool, text: &mut Vec<u8>) {
        // The count is kept in 12 bits.
        let digits = digits & 0xfff;
        if trimmed && (digits == 0 || self.nanosecond == 0) {
            return;
        }
        let all = format!("{:09}", self.nanosecond);
        let shown = &all.as_bytes()[..digits.min(9)];
        let zeroes = shown.iter().rev().take_while(|&&b| b == b'0').count();
        let shown = if trimmed {
            &shown[..shown.len() - zeroes]
        } else {
            shown
        };
        if trimmed && shown.is_empty() {
            return;
        }
        text.push(if comma { b',' } else { b'.' });
        text.extend_from_slice(shown);
    }
}

const NUMERIC: Offset = Offset {
    iso: false,
    precision: Precision::Minutes,
    colons: false,
};

#[cfg(test)]
mod tests;
