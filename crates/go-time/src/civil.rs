//! The calendar: days and seconds to years, months and hours, and back.
//!
//! Counting starts, as in Go, at a March 1 so far back that every time of 64 bits lies after it; arithmetic wraps there.

/// Years from the start of counting to year 0. A multiple of 400, so that the calendar repeats.
const ABSOLUTE_YEARS: i64 = 292_277_022_400;
const DAYS_PER_400_YEARS: u64 = 146_097;
pub(crate) const SECONDS_PER_DAY: u64 = 86_400;
/// Days from March 1 of year 0 to the start of Unix time.
const UNIX_DAYS: u64 = 719_468;
/// Seconds from the start of counting to that of Unix time.
const UNIX_SECONDS: u64 = (ABSOLUTE_YEARS as u64 / 400 * DAYS_PER_400_YEARS)
    .wrapping_add(UNIX_DAYS)
    .wrapping_mul(SECONDS_PER_DAY);

/// A time taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: u32,
    pub(crate) day: u32,
    /// From 1.
    pub(crate) year_day: u32,
    /// From 0, which is Sunday.
    pub(crate) weekday: u32,
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    pub(crate) second: u32,
}

impl Civil {
    /// Takes apart seconds of Unix time that are already shifted to a zone.
    pub(crate) fn new(unix: i64) -> Self {
        let absolute = unix.cast_unsigned().wrapping_add(UNIX_SECONDS);
        let days = absolute / SECONDS_PER_DAY;
        let second = (absolute % SECONDS_PER_DAY) as u32;
        let (year, month, day) = date(days);
        Self {
            year,
            month,
            day,
            year_day: days_before(month, year) + day,
            // The first day of counting is a Wednesday.
            weekday: ((days + 3) % 7) as u32,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

/// Unix time of a date at midnight UTC. The month may be any, the day too.
pub(crate) fn unix_of(year: i64, month: i64, day: i64) -> i64 {
    let years = month.wrapping_sub(1).div_euclid(12);
    let month = month.wrapping_sub(1).rem_euclid(12);
    // Years that start in March: January and February belong to the year before.
    let march_month = (month + 10) % 12;
    let year = year.wrapping_add(years).wrapping_sub(i64::from(month < 2));
    let year = year.wrapping_add(ABSOLUTE_YEARS).cast_unsigned();
    let days = (year / 400)
        .wrapping_mul(DAYS_PER_400_YEARS)
        .wrapping_add((year % 400) * 365 + (year % 400) / 4 - (year % 400) / 100)
        .wrapping_add(((153 * march_month + 2) / 5).cast_unsigned())
        .wrapping_add(day.wrapping_sub(1).cast_unsigned());
    let seconds = days.wrapping_mul(SECONDS_PER_DAY).wrapping_sub(UNIX_SECONDS);
    seconds.cast_signed()
}

fn date(days: u64) -> (i64, u32, u32) {
    let cycle = days / DAYS_PER_400_YEARS;
    let day_of_cycle = days % DAYS_PER_400_YEARS;
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * march_month + 2) / 5 + 1) as u32;
    let month = (if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    }) as u32;
    let year = (cycle * 400 + year_of_cycle).cast_signed() - ABSOLUTE_YEARS;
    (year + i64::from(month <= 2), month, day)
}

pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) fn days_in(month: u32, year: i64) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the year before the first of the month.
pub(crate) fn days_before(month: u32, year: i64) -> u32 {
    const BEFORE: [u32; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    BEFORE[month as usize - 1] + u32::from(month > 2 && is_leap(year))
}

/// The English name of a month, from 1.
#[must_use]
pub fn month_name(month: u32) -> &'static str {
    MONTHS[(month as usize).clamp(1, 12) - 1]
}

/// The English name of a weekday, from 0, which is Sunday.
#[must_use]
pub fn weekday_name(weekday: u32) -> &'static str {
    WEEKDAYS[weekday as usize % 7]
}

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(crate) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix, expected) in [
            (0, (1970, 1, 1, 1, 4)),
            (-1, (1969, 12, 31, 365, 3)),
            (951_782_400, (2000, 2, 29, 60, 2)),
            (1_735_603_200, (2024, 12, 31, 366, 2)),
            (-62_135_596_800, (1, 1, 1, 1, 1)),
            (-62_167_219_200, (0, 1, 1, 1, 6)),
            (-62_198_755_200, (-1, 1, 1, 1, 5)),
            (253_402_300_800, (10_000, 1, 1, 1, 6)),
        ] {
            let civil = Civil::new(unix);
            let date = (civil.year, civil.month, civil.day, civil.year_day, civil.weekday);
            assert_eq!(date, expected);
            let midnight = unix - i64::from(civil.hour * 3600 + civil.minute * 60 + civil.second);
            assert_eq!(
                unix_of(civil.year, civil.month.into(), civil.day.into()),
                midnight
            );
        }
    }

    #[test]
    fn months_beyond_the_year_are_carried() {
        assert_eq!(unix_of(2023, 14, 0), unix_of(2024, 1, 31));
        assert_eq!(unix_of(2024, -11, 1), unix_of(2023, 1, 1));
    }
}
