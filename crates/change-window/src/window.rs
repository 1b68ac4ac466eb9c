//! Windows: the times of the week at which changes go in.

use api::delivery::{Day, Window};
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};

/// Windows that follow each other without a gap.
const MAX_IN_A_ROW: usize = 30;

/// A window that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No such time of the day.
    #[error("'{0}' is not a time such as 08:00")]
    Time(String),
    /// No such time zone.
    #[error("there is no time zone '{0}'")]
    Zone(String),
}

/// Whether changes go in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Now.
    Open,
    /// From then on.
    Opens(Timestamp),
}

/// Returns whether changes go in at this time. Without windows they always do.
pub fn gate(windows: &[Window], now: Timestamp) -> Result<Gate, Error> {
    let mut next: Option<Timestamp> = None;
    for window in windows {
        let hours = Hours::new(window)?;
        // Yesterday's may reach into today, and next week's is the first if today's is over.
        for day in -1..=7 {
            let Some((begin, end)) = hours.on(now, day) else {
                continue;
            };
            if begin <= now && now < end {
                return Ok(Gate::Open);
            }
            if begin > now {
                next = Some(next.map_or(begin, |next| next.min(begin)));
            }
        }
    }
    Ok(next.map_or(Gate::Open, Gate::Opens))
}

/// Returns when windows that are open now close, taken together. None if they never do, or are closed.
///
/// # Errors
/// When a window cannot be understood.
pub fn closes(windows: &[Window], now: Timestamp) -> Result<Option<Timestamp>, Error> {
    let hours: Vec<_> = windows.iter().map(Hours::new).collect::<Result<_, _>>()?;
    let mut close = now;
    // What is open for longer than this is always open.
    for _ in 0..MAX_IN_A_ROW {
        let ends = hours.iter().flat_map(|hours| {
            let days = (-1..=0).filter_map(move |day| hours.on(close, day));
            days.filter_map(move |(begin, end)| (begin <= close && close < end).then_some(end))
        });
        match ends.max() {
            Some(end) => close = end,
            None => return Ok((close > now).then_some(close)),
        }
    }
    Ok(None)
}

struct Hours<'a> {
    days: &'a [Day],
    from: Time,
    to: Time,
    zone: TimeZone,
}

impl<'a> Hours<'a> {
    fn new(window: &'a Window) -> Result<Self, Error> {
        let zone = window.time_zone.as_deref().unwrap_or("UTC");
        Ok(Self {
            days: &window.days,
            from: time(&window.from)?,
            to: time(&window.to)?,
            zone: TimeZone::get(zone).map_err(|_| Error::Zone(zone.to_owned()))?,
        })
    }

    /// Begin and end of the window that begins so many days after today.
    fn on(&self, now: Timestamp, days: i32) -> Option<(Timestamp, Timestamp)> {
        let today = now.to_zoned(self.zone.clone()).date();
        let date = today.checked_add(days.days()).ok()?;
        if !self.days.is_empty() && !self.days.iter().any(|day| weekday(*day) == date.weekday()) {
            return None;
        }
        let last = if self.to > self.from {
            date
        } else {
            date.tomorrow().ok()?
        };
        let at = |zoned: Result<Zoned, jiff::Error>| zoned.ok().map(|zoned| zoned.timestamp());
        let begin = at(date.to_datetime(self.from).to_zoned(self.zone.clone()))?;
        let end = at(last.to_datetime(self.to).to_zoned(self.zone.clone()))?;
        Some((begin, end))
    }
}

fn time(text: &str) -> Result<Time, Error> {
    let wrong = || Error::Time(text.chars().take(20).collect());
    Time::strptime("%H:%M", text).map_err(|_| wrong())
}

fn weekday(day: Day) -> Weekday {
    match day {
        Day::Mon => Weekday::Monday,
        Day::Tue => Weekday::Tuesday,
        Day::Wed => Weekday::Wednesday,
        Day::Thu => Weekday::Thursday,
        Day::Fri => Weekday::Friday,
        Day::Sat => Weekday::Saturday,
        Day::Sun => Weekday::Sunday,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(days: &[Day], from: &str, to: &str, zone: &str) -> Window {
        Window {
            days: days.to_vec(),
            from: from.to_owned(),
            to: to.to_owned(),
            time_zone: Some(zone.to_owned()),
        }
    }

    fn at(windows: &[Window], now: &str) -> String {
        match gate(windows, now.parse().unwrap()) {
            Ok(Gate::Open) => "open".to_owned(),
            Ok(Gate::Opens(time)) => time.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn office_hours_are_those_of_the_place() {
        use Day::{Fri, Mon, Thu, Tue, Wed};
        let hours = [window(
            &[Mon, Tue, Wed, Thu, Fri],
            "08:00",
            "16:00",
            "Europe/Berlin",
        )];
        for (now, expected) in [
            ("2026-11-23T06:59:59Z", "2026-11-23T07:00:00Z"),
            ("2026-11-23T07:00:00Z", "open"),
            ("2026-11-23T14:59:59Z", "open"),
            ("2026-11-23T15:00:00Z", "2026-11-24T07:00:00Z"),
            // Friday evening; summer time is an hour earlier in UTC.
            ("2026-11-27T16:00:00Z", "2026-11-30T07:00:00Z"),
            ("2026-07-24T16:00:00Z", "2026-07-27T06:00:00Z"),
        ] {
            assert_eq!(at(&hours, now), expected, "{now}");
        }
    }

    #[test]
    fn a_night_reaches_into_the_next_day() {
        let night = [window(&[Day::Sat], "22:00", "04:00", "UTC")];
        for (now, expected) in [
            ("2026-11-28T21:00:00Z", "2026-11-28T22:00:00Z"),
            ("2026-11-28T23:00:00Z", "open"),
            ("2026-11-29T03:59:00Z", "open"),
            ("2026-11-29T04:00:00Z", "2026-12-05T22:00:00Z"),
        ] {
            assert_eq!(at(&night, now), expected, "{now}");
        }
        let always = [window(&[], "00:00", "00:00", "UTC")];
        assert_eq!(at(&always, "2026-11-28T21:00:00Z"), "open");
        assert_eq!(at(&[], "2026-11-28T21:00:00Z"), "open");
    }

    #[test]
    fn an_hour_that_the_clock_leaves_out_is_no_trap() {
        // On 2026-03-29 the clock in Berlin goes from 02:00 to 03:00.
        let window = [window(&[], "02:15", "02:45", "Europe/Berlin")];
        assert_eq!(at(&window, "2026-03-29T00:00:00Z"), "2026-03-29T01:15:00Z");
        assert_eq!(at(&window, "2026-03-29T01:20:00Z"), "open");
    }

    #[test]
    fn windows_that_touch_close_together() {
        let until = |windows: &[Window], now: &str| {
            let closes = closes(windows, now.parse().unwrap()).unwrap();
            closes.map(|time| time.to_string()).unwrap_or_default()
        };
        let saturday = window(&[Day::Sat], "08:00", "00:00", "UTC");
        let sunday = window(&[Day::Sun], "00:00", "12:00", "UTC");
        let both = [saturday.clone(), sunday];
        assert_eq!(until(&both, "2026-11-28T09:00:00Z"), "2026-11-29T12:00:00Z");
        assert_eq!(until(&[saturday], "2026-11-28T09:00:00Z"), "2026-11-29T00:00:00Z");
        assert_eq!(until(&both, "2026-11-30T09:00:00Z"), "");
        let always = [window(&[], "00:00", "00:00", "UTC")];
        assert_eq!(until(&always, "2026-11-28T09:00:00Z"), "");
        let night = [window(&[Day::Sat], "22:00", "04:00", "UTC")];
        assert_eq!(until(&night, "2026-11-29T01:00:00Z"), "2026-11-29T04:00:00Z");
    }

    #[test]
    fn what_is_no_time_is_named() {
        let now = "2026-11-28T21:00:00Z";
        assert_eq!(
            at(&[window(&[], "8", "10:00", "UTC")], now),
            "'8' is not a time such as 08:00"
        );
        assert_eq!(
            at(&[window(&[], "08:00", "10:00", "Mars/Base")], now),
            "there is no time zone 'Mars/Base'"
        );
    }
}
