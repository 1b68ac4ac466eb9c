//! Elements of a layout, read from a time, and the time that they make together.

use super::scan::{name, signed, three_digits, two_digits, zone_name};
use crate::civil::{MONTHS, WEEKDAYS, days_before, days_in, is_leap};
use crate::layout::{Element, Offset, Precision, next_chunk};
use crate::location::Location;
use crate::time::Time;

/// Why an element cannot be read.
pub(super) enum Problem {
    Mismatch,
    OutOfRange(&'static str),
}

type Rest<'a> = Result<&'a [u8], Problem>;

/// Values read so far.
#[derive(Debug, Default)]
pub(super) struct Fields {
    year: i64,
    month: Option<u32>,
    day: Option<u32>,
    year_day: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    nanosecond: u32,
    is_before_noon: bool,
    is_after_noon: bool,
    is_utc: bool,
    offset: Option<i32>,
    zone: Vec<u8>,
}

impl Fields {
    /// Reads an element. The layout behind it says whether a fraction is to come on its own.
    pub(super) fn read<'a>(&mut self, element: Element, text: &'a [u8], layout: &[u8]) -> Rest<'a> {
        let ((), rest) = match element {
            Element::LongMonth => set(&mut self.month, name(text, &MONTHS, None).map(from_one))?,
            Element::Month => set(&mut self.month, name(text, &MONTHS, Some(3)).map(from_one))?,
            Element::NumericMonth => self.month(two_digits(text, false))?,
            Element::ZeroMonth => self.month(two_digits(text, true))?,
            Element::LongWeekday => passed(name(text, &WEEKDAYS, None))?,
            Element::Weekday => passed(name(text, &WEEKDAYS, Some(3)))?,
            Element::Day => set(&mut self.day, two_digits(text, false))?,
            Element::UnderDay => {
                let text = text.strip_prefix(b" ").unwrap_or(text);
                set(&mut self.day, two_digits(text, false))?
            }
            Element::ZeroDay => set(&mut self.day, two_digits(text, true))?,
            Element::UnderYearDay => {
                let text = text.strip_prefix(b" ").unwrap_or(text);
                let text = text.strip_prefix(b" ").unwrap_or(text);
                set(&mut self.year_day, three_digits(text, false))?
            }
            Element::ZeroYearDay => set(&mut self.year_day, three_digits(text, true))?,
            Element::Hour => bounded(&mut self.hour, two_digits(text, false), 23, "hour")?,
            Element::Hour12 => bounded(&mut self.hour, two_digits(text, false), 12, "hour")?,
            Element::ZeroHour12 => bounded(&mut self.hour, two_digits(text, true), 12, "hour")?,
            Element::Minute => bounded(&mut self.minute, two_digits(text, false), 59, "minute")?,
            Element::ZeroMinute => bounded(&mut self.minute, two_digits(text, true), 59, "minute")?,
            Element::Second => return self.second(two_digits(text, false), layout),
            Element::ZeroSecond => return self.second(two_digits(text, true), layout),
            Element::LongYear => return self.long_year(text),
            Element::Year => return self.short_year(text),
            Element::UpperHalf => return self.half(text, [b"AM", b"PM"]),
            Element::LowerHalf => return self.half(text, [b"am", b"pm"]),
            Element::ZoneName => return self.zone(text),
            Element::Offset(form) => return self.offset(form, text),
            Element::Fraction {
                digits,
                trimmed: false,
                ..
            } => {
                return self.fraction(text, 1 + (digits & 0xfff));
            }
            Element::Fraction { .. } => return self.any_fraction(text),
        };
        Ok(rest)
    }

    fn month<'a>(&mut self, read: Option<(u32, &'a [u8])>) -> Result<((), &'a [u8]), Problem> {
        let (month, rest) = read.ok_or(Problem::Mismatch)?;
        if !(1..=12).contains(&month) {
            return Err(Problem::OutOfRange("month"));
        }
        self.month = Some(month);
        Ok(((), rest))
    }

    fn long_year<'a>(&mut self, text: &'a [u8]) -> Rest<'a> {
        let (digits, rest) = text.split_at_checked(4).ok_or(Problem::Mismatch)?;
        if !digits[0].is_ascii_digit() {
            return Err(Problem::Mismatch);
        }
        self.year = signed(digits).ok_or(Problem::Mismatch)?;
        Ok(rest)
    }

    fn short_year<'a>(&mut self, text: &'a [u8]) -> Rest<'a> {
        let (digits, rest) = text.split_at_checked(2).ok_or(Problem::Mismatch)?;
        let year = signed(digits).ok_or(Problem::Mismatch)?;
        // Unix time begins in 1969 in some zones.
        self.year = year + if year >= 69 { 1900 } else { 2000 };
        Ok(rest)
    }

    /// A fraction is read where there is one, even if the layout has none.
    fn second<'a>(&mut self, read: Option<(u32, &'a [u8])>, layout: &[u8]) -> Rest<'a> {
        let ((), rest) = bounded(&mut self.second, read, 59, "second")?;
        let [b'.' | b',', digits @ ..] = rest else {
            return Ok(rest);
        };
        let own_element = matches!(next_chunk(layout).element, Some(Element::Fraction { .. }));
        let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        if length == 0 || own_element {
            return Ok(rest);
        }
        self.fraction(rest, 1 + length)
    }

    fn any_fraction<'a>(&mut self, text: &'a [u8]) -> Rest<'a> {
        let [b'.' | b',', digits @ ..] = text else {
            return Ok(text);
        };
        match digits.iter().take_while(|b| b.is_ascii_digit()).count() {
            0 => Ok(text),
            length => self.fraction(text, 1 + length),
        }
    }

    /// Reads a point or comma and digits, `length` bytes in all, of which what is below a nanosecond is dropped.
    fn fraction<'a>(&mut self, text: &'a [u8], length: usize) -> Rest<'a> {
        let (fraction, rest) = text.split_at_checked(length).ok_or(Problem::Mismatch)?;
        let Some((b'.' | b',', digits)) = fraction.split_first() else {
            return Err(Problem::Mismatch);
        };
        let digits = &digits[..digits.len().min(9)];
        let value = signed(digits).ok_or(Problem::Mismatch)?;
        let value = u32::try_from(value).map_err(|_| Problem::OutOfRange("fractional second"))?;
        let missing = 9 - digits.len() as u32;
        self.nanosecond = value * 10_u32.pow(missing);
        Ok(rest)
    }

    fn half<'a>(&mut self, text: &'a [u8], [before, after]: [&[u8]; 2]) -> Rest<'a> {
        let (half, rest) = text.split_at_checked(2).ok_or(Problem::Mismatch)?;
        if half != before && half != after {
            return Err(Problem::Mismatch);
        }
        self.is_before_noon |= half == before;
        self.is_after_noon |= half == after;
        Ok(rest)
    }

    fn offset<'a>(&mut self, form: Offset, text: &'a [u8]) -> Rest<'a> {
        if form.iso
            && let Some(rest) = text.strip_prefix(b"Z")
        {
            self.is_utc = true;
            return Ok(rest);
        }
        let colon = usize::from(form.colons);
        let parts = match form.precision {
            Precision::Hours => 1,
            Precision::Minutes => 2,
            Precision::Seconds => 3,
        };
        let length = 3 + (parts - 1) * (2 + colon);
        let (written, rest) = text.split_at_checked(length).ok_or(Problem::Mismatch)?;
        let mut values = [0; 3];
        let mut problem = None;
        for (part, value) in values.iter_mut().enumerate().take(parts) {
            let at = 1 + part * (2 + colon);
            if part > 0 && colon > 0 && written[at - 1] != b':' {
                return Err(Problem::Mismatch);
            }
            match two_digits(&written[at..], true) {
                Some((number, _)) if problem.is_none() => *value = number,
                Some(_) => {}
                None => problem = Some(Problem::Mismatch),
            }
        }
        // What is out of range is told even where the rest is misspelt; 24 and 60 are let through.
        let [hours, minutes, seconds] = values;
        for (value, most, what) in [
            (seconds, 60, "time zone offset second"),
            (minutes, 60, "time zone offset minute"),
            (hours, 24, "time zone offset hour"),
        ] {
            if value > most {
                return Err(Problem::OutOfRange(what));
            }
        }
        if let Some(problem) = problem {
            return Err(problem);
        }
        let offset = ((hours * 60 + minutes) * 60 + seconds).cast_signed();
        self.offset = Some(match written[0] {
            b'+' => offset,
            b'-' => -offset,
            _ => return Err(Problem::Mismatch),
        });
        Ok(rest)
    }

    fn zone<'a>(&mut self, text: &'a [u8]) -> Rest<'a> {
        if let Some(rest) = text.strip_prefix(b"UTC") {
            self.is_utc = true;
            return Ok(rest);
        }
        let length = zone_name(text).ok_or(Problem::Mismatch)?;
        let (zone, rest) = text.split_at(length);
        self.zone = zone.to_vec();
        Ok(rest)
    }

    /// The month and day, checked against each other and the year.
    pub(super) fn date(&self) -> Result<(u32, u32), &'static str> {
        let (month, day) = match self.year_day {
            None => (self.month.unwrap_or(1), self.day.unwrap_or(1)),
            Some(year_day) => {
                let (month, day) = self.date_of_year_day(year_day)?;
                if self.month.is_some_and(|given| given != month) {
                    return Err("day-of-year does not match month");
                }
                if self.day.is_some_and(|given| given != day) {
                    return Err("day-of-year does not match day");
                }
                (month, day)
            }
        };
        if day < 1 || day > days_in(month, self.year) {
            return Err("day out of range");
        }
        Ok((month, day))
    }

    fn date_of_year_day(&self, year_day: u32) -> Result<(u32, u32), &'static str> {
        let days = 365 + u32::from(is_leap(self.year));
        if !(1..=days).contains(&year_day) {
            return Err("day-of-year out of range");
        }
        let is_begun = |month: &u32| days_before(*month, self.year) < year_day;
        let month = (1..=12).rev().find(is_begun).unwrap_or(1);
        Ok((month, year_day - days_before(month, self.year)))
    }

    /// The time that all this means.
    pub(super) fn at(&self, (month, day): (u32, u32), default: &Location, local: &Location) -> Time {
        let hour = match self.hour {
            hour if self.is_after_noon && hour < 12 => hour + 12,
            12 if self.is_before_noon => 0,
            hour => hour,
        };
        let date = (self.year, month.into(), day.into());
        let clock = (hour.into(), self.minute.into(), self.second.into());
        let at = |location| Time::from_date(date, clock, self.nanosecond.into(), location);
        if self.is_utc {
            return at(Location::UTC);
        }
        let zone = String::from_utf8_lossy(&self.zone);
        // Go takes one second west of UTC for no offset, as it marks the absence by it.
        match self.offset.filter(|&offset| offset != -1) {
            Some(offset) => with_offset(&at(Location::UTC), offset, &zone, local),
            None if !zone.is_empty() => with_zone(&at(Location::UTC), &zone, local),
            None => at(default.clone()),
        }
    }
}

/// The place has its own zone of that offset, or a zone is made up.
fn with_offset(shown: &Time, offset: i32, name: &str, local: &Location) -> Time {
    let location = |unix| {
        let zone = local.zone_at(unix);
        let is_local = zone.offset == offset && (name.is_empty() || name == zone.abbreviation);
        if is_local {
            local.clone()
        } else {
            Location::fixed(name, offset)
        }
    };
    let unix = shown.unix().wrapping_sub(offset.into());
    Time::from_unix(unix, shown.nanosecond().into(), location(unix))
}

/// The place knows the zone's name, or a zone is made up, of which only `GMT+3` and the like tell an offset.
fn with_zone(shown: &Time, name: &str, local: &Location) -> Time {
    if let Some(offset) = local.offset_of_name(name, shown.unix()) {
        let unix = shown.unix().wrapping_sub(offset.into());
        return Time::from_unix(unix, shown.nanosecond().into(), local.clone());
    }
    let hours = name.strip_prefix("GMT").filter(|rest| !rest.is_empty());
    let hours = hours.and_then(|rest| signed(rest.as_bytes())).unwrap_or(0);
    let offset = i32::try_from(hours * 3600).unwrap_or(0);
    shown.in_location(Location::fixed(name, offset))
}

fn from_one((index, rest): (u32, &[u8])) -> (u32, &[u8]) {
    (index + 1, rest)
}

fn set<'a>(field: &mut Option<u32>, read: Option<(u32, &'a [u8])>) -> Result<((), &'a [u8]), Problem> {
    let (value, rest) = read.ok_or(Problem::Mismatch)?;
    *field = Some(value);
    Ok(((), rest))
}

fn passed(read: Option<(u32, &[u8])>) -> Result<((), &[u8]), Problem> {
    let (_, rest) = read.ok_or(Problem::Mismatch)?;
    Ok(((), rest))
}

fn bounded<'a>(
    field: &mut u32,
    read: Option<(u32, &'a [u8])>,
    most: u32,
    what: &'static str,
) -> Result<((), &'a [u8]), Problem> {
    let (value, rest) = read.ok_or(Problem::Mismatch)?;
    if value > most {
        return Err(Problem::OutOfRange(what));
    }
    *field = value;
    Ok(((), rest))
}
