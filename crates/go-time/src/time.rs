//! An instant at a place.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::civil::{self, Civil};
use crate::duration::Duration;
use crate::location::Location;

/// Seconds from January 1 of year 1, where Go's zero time is, to the start of Unix time.
const INTERNAL_SECONDS: i64 = 62_135_596_800;
const NANOSECONDS: i64 = 1_000_000_000;

/// An instant, with the place where it is looked at. `Display` is Go's String, without a reading of the monotonic clock.
#[derive(Debug, Clone)]
pub struct Time {
    unix: i64,
    /// Below 10^9.
    nanosecond: u32,
    location: Location,
}

impl Time {
    /// The instant of the call.
    #[must_use]
    pub fn now(location: Location) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            unix: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanosecond: since.subsec_nanos(),
            location,
        }
    }

    /// An instant by its Unix time; nanoseconds beyond a second are carried (time.Unix).
    #[must_use]
    pub fn from_unix(seconds: i64, nanoseconds: i64, location: Location) -> Self {
        Self {
            unix: seconds.wrapping_add(nanoseconds.div_euclid(NANOSECONDS)),
            nanosecond: nanoseconds.rem_euclid(NANOSECONDS) as u32,
            location,
        }
    }

    /// January 1 of year 1 in universal time: Go's zero time.
    #[must_use]
    pub fn zero() -> Self {
        Self::from_unix(-INTERNAL_SECONDS, 0, Location::UTC)
    }

    /// The instant at which clocks of a place show this; months, days and hours beyond their range are carried
    /// (time.Date).
    #[must_use]
    pub fn from_date(
        date: (i64, i64, i64),
        clock: (i64, i64, i64),
        nanosecond: i64,
        location: Location,
    ) -> Self {
        let (year, month, day) = date;
        let (hour, minute, second) = clock;
        let seconds = hour
            .wrapping_mul(3600)
            .wrapping_add(minute.wrapping_mul(60))
            .wrapping_add(second)
            .wrapping_add(nanosecond.div_euclid(NANOSECONDS));
        let shown = civil::unix_of(year, month, day).wrapping_add(seconds);
        // The offset is that of the instant, which is only known with the offset: a second look settles it.
        let guess = shown.wrapping_sub(location.offset_at(shown).into());
        let unix = shown.wrapping_sub(location.offset_at(guess).into());
        Self {
            unix,
            nanosecond: nanosecond.rem_euclid(NANOSECONDS) as u32,
            location,
        }
    }

    /// The same instant at another place.
    #[must_use]
    pub fn in_location(&self, location: Location) -> Self {
        Self {
            location,
            ..self.clone()
        }
    }

    /// The place.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Seconds since the start of 1970 in universal time.
    #[must_use]
    pub fn unix(&self) -> i64 {
        self.unix
    }

    /// Milliseconds since the start of 1970; it wraps around where Go's does.
    #[must_use]
    pub fn unix_milli(&self) -> i64 {
        self.unix_in(1_000)
    }

    /// Microseconds since the start of 1970; it wraps around where Go's does.
    #[must_use]
    pub fn unix_micro(&self) -> i64 {
        self.unix_in(1_000_000)
    }

    /// Nanoseconds since the start of 1970; it wraps around where Go's does.
    #[must_use]
    pub fn unix_nano(&self) -> i64 {
        self.unix_in(NANOSECONDS)
    }

    /// The year.
    #[must_use]
    pub fn year(&self) -> i64 {
        self.civil().year
    }

    /// The month, from 1.
    #[must_use]
    pub fn month(&self) -> u32 {
        self.civil().month
    }

    /// The day of the month, from 1.
    #[must_use]
    pub fn day(&self) -> u32 {
        self.civil().day
    }

    /// The day of the year, from 1.
    #[must_use]
    pub fn year_day(&self) -> u32 {
        self.civil().year_day
    }

    /// The day of the week, from 0, which is Sunday.
    #[must_use]
    pub fn weekday(&self) -> u32 {
        self.civil().weekday
    }

    /// The hour of the day.
    #[must_use]
    pub fn hour(&self) -> u32 {
        self.civil().hour
    }

    /// The minute of the hour.
    #[must_use]
    pub fn minute(&self) -> u32 {
        self.civil().minute
    }

    /// The second of the minute.
    #[must_use]
    pub fn second(&self) -> u32 {
        self.civil().second
    }

    /// The nanosecond of the second.
    #[must_use]
    pub fn nanosecond(&self) -> u32 {
        self.nanosecond
    }

    /// Returns whether it is the zero time, at whatever place.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.unix == -INTERNAL_SECONDS && self.nanosecond == 0
    }

    /// Returns whether summer time is in effect.
    #[must_use]
    pub fn is_dst(&self) -> bool {
        self.location.zone_at(self.unix).is_dst
    }

    /// Order of instants; the place does not count.
    #[must_use]
    pub fn compare(&self, other: &Self) -> std::cmp::Ordering {
        (self.unix, self.nanosecond).cmp(&(other.unix, other.nanosecond))
    }

    /// The instant so much later.
    #[must_use]
    pub fn add(&self, duration: Duration) -> Self {
        let nanoseconds = i64::from(self.nanosecond) + duration.0 % NANOSECONDS;
        let unix = self.unix.wrapping_add(duration.0 / NANOSECONDS);
        Self::from_unix(unix, nanoseconds, self.location.clone())
    }

    /// The same time of the day so many years, months and days later.
    #[must_use]
    pub fn add_date(&self, years: i64, months: i64, days: i64) -> Self {
        let civil = self.civil();
        let date = (
            civil.year.wrapping_add(years),
            i64::from(civil.month).wrapping_add(months),
            i64::from(civil.day).wrapping_add(days),
        );
        let clock = (civil.hour.into(), civil.minute.into(), civil.second.into());
        Self::from_date(date, clock, self.nanosecond.into(), self.location.clone())
    }

    /// The time since another instant; the greatest or least duration where it is beyond that.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Duration {
        let nanoseconds = self.nanoseconds() - other.nanoseconds();
        let bound = if nanoseconds < 0 { i64::MIN } else { i64::MAX };
        Duration(i64::try_from(nanoseconds).unwrap_or(bound))
    }

    /// The multiple of `unit` since the zero time that is not later.
    #[must_use]
    pub fn truncate(&self, unit: Duration) -> Self {
        if unit.0 <= 0 {
            return self.clone();
        }
        self.add(Duration(-self.beyond(unit)))
    }

    /// The nearest multiple of `unit` since the zero time, the later one of two.
    #[must_use]
    pub fn round(&self, unit: Duration) -> Self {
        if unit.0 <= 0 {
            return self.clone();
        }
        let beyond = self.beyond(unit);
        let is_less_than_half = beyond.unsigned_abs() * 2 < unit.0.unsigned_abs();
        self.add(Duration(if is_less_than_half {
            -beyond
        } else {
            unit.0 - beyond
        }))
    }

    pub(crate) fn civil(&self) -> Civil {
        let offset = self.location.offset_at(self.unix);
        Civil::new(self.unix.wrapping_add(offset.into()))
    }

    fn beyond(&self, unit: Duration) -> i64 {
        let since_zero = self.nanoseconds() + i128::from(INTERNAL_SECONDS) * i128::from(NANOSECONDS);
        since_zero.rem_euclid(i128::from(unit.0)) as i64
    }

    fn nanoseconds(&self) -> i128 {
        i128::from(self.unix) * i128::from(NANOSECONDS) + i128::from(self.nanosecond)
    }

    fn unix_in(&self, per_second: i64) -> i64 {
        let fraction = i64::from(self.nanosecond) / (NANOSECONDS / per_second);
        self.unix.wrapping_mul(per_second).wrapping_add(fraction)
    }
}

/// The same instant at the same place.
impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq() && self.location == other.location
    }
}

impl Eq for Time {}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.format(b"2006-01-02 15:04:05.999999999 -0700 MST");
        f.write_str(&String::from_utf8_lossy(&text))
    }
}
