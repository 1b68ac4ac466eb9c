//! When the inputs of a provider may change: windows that begin by cron. Pure.

use std::time::Duration;

use api::flux_operator::InputSchedule;
use cronexpr::Crontab;
use jiff::{SignedDuration, Timestamp};

/// Longest window.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 366);

/// Why a schedule cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// When it begins.
    #[error("spec.schedule[{index}]: '{cron}' in the time zone '{zone}' is no schedule: {problem}")]
    Cron {
        /// Its place.
        index: usize,
        /// The text.
        cron: String,
        /// The time zone.
        zone: String,
        /// What is wrong.
        problem: String,
    },
    /// How long it lasts.
    #[error("spec.schedule[{index}]: the window must be 0s, or at least twice the timeout of {timeout:?}")]
    Window {
        /// Its place.
        index: usize,
        /// Of a reconcile.
        timeout: Duration,
    },
}

/// Schedules that were read.
#[derive(Debug)]
pub struct Schedules(Vec<(Crontab, SignedDuration)>);

/// What schedules say at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Whether inputs may change.
    pub is_open: bool,
    /// Which schedule begins next, and when.
    pub next: Option<(usize, Timestamp)>,
}

impl Schedules {
    /// Reads them. `timeout` is the longest time of a reconcile.
    ///
    /// # Errors
    /// When one cannot be read, or its window is too short.
    pub fn new(schedules: &[InputSchedule], timeout: Duration) -> Result<Self, Error> {
        let read = |(index, schedule): (usize, &InputSchedule)| {
            let zone = match schedule.time_zone.as_str() {
                "" => "UTC",
                zone => zone,
            };
            let refused = |problem: String| Error::Cron {
                index,
                cron: schedule.cron.clone(),
                zone: zone.to_owned(),
                problem,
            };
            // Five fields, or the time zone would be read out of the text.
            if schedule.cron.split_whitespace().count() != 5 || zone.contains(char::is_whitespace) {
                return Err(refused("it must have five fields".to_owned()));
            }
            let crontab = cronexpr::parse_crontab(&format!("{} {zone}", schedule.cron));
            let crontab = crontab.map_err(|error| refused(error.to_string().replace('\n', " ")))?;
            let window = schedule
                .window
                .map_or(Duration::ZERO, api::meta::Duration::to_std);
            if !window.is_zero() && window < timeout.saturating_mul(2) {
                return Err(Error::Window { index, timeout });
            }
            let window = SignedDuration::try_from(window).unwrap_or(LONGEST).min(LONGEST);
            Ok((crontab, window))
        };
        let read: Result<Vec<_>, _> = schedules.iter().enumerate().map(read).collect();
        read.map(Self)
    }

    /// Returns whether inputs may change now, and when it changes. `planned` is the beginning that was announced last.
    #[must_use]
    pub fn at(&self, now: Timestamp, planned: Option<Timestamp>) -> Now {
        if self.0.is_empty() {
            return Now {
                is_open: true,
                next: None,
            };
        }
        let is_due = planned.is_some_and(|planned| planned <= now);
        let is_within = |(crontab, window): &(Crontab, SignedDuration)| {
            // The first beginning after the window's length ago.
            let before = now.checked_sub(*window).ok();
            let begins = before.and_then(|before| crontab.find_next(cronexpr::MakeTimestamp(before)).ok());
            !window.is_zero() && begins.is_some_and(|begins| begins.timestamp() <= now)
        };
        let next = self.0.iter().enumerate().filter_map(|(index, (crontab, _))| {
            let begins = crontab.find_next(cronexpr::MakeTimestamp(now)).ok()?;
            Some((index, begins.timestamp()))
        });
        Now {
            is_open: is_due || self.0.iter().any(is_within),
            next: next.min_by_key(|(_, begins)| *begins),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedules(all: &[(&str, &str, u64)]) -> Result<Schedules, Error> {
        let all = all.iter().map(|(cron, zone, minutes)| InputSchedule {
            cron: (*cron).to_owned(),
            time_zone: (*zone).to_owned(),
            window: (*minutes > 0)
                .then(|| api::meta::Duration::from_secs(u32::try_from(*minutes).unwrap() * 60)),
        });
        Schedules::new(&all.collect::<Vec<_>>(), Duration::from_secs(120))
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_window_is_open_from_its_beginning_in_its_time_zone() {
        let nights = schedules(&[("0 22 * * mon-fri", "Europe/Berlin", 60)]).unwrap();
        let said = |time: &str| nights.at(at(time), None);
        assert!(!said("2026-11-26T20:59:59Z").is_open);
        assert!(said("2026-11-26T21:00:00Z").is_open);
        assert!(said("2026-11-26T21:59:59Z").is_open);
        assert!(!said("2026-11-26T22:00:01Z").is_open);
        // Friday, then Monday.
        assert_eq!(
            said("2026-11-27T21:30:00Z").next,
            Some((0, at("2026-11-30T21:00:00Z")))
        );
    }

    #[test]
    fn without_a_window_the_planned_time_is_the_one() {
        let daily = schedules(&[("0 6 * * *", "", 0), ("0 5 * * *", "", 0)]).unwrap();
        let now = at("2026-11-27T05:30:00Z");
        assert_eq!(
            daily.at(now, None),
            Now {
                is_open: false,
                next: Some((0, at("2026-11-27T06:00:00Z")))
            }
        );
        assert!(daily.at(now, Some(at("2026-11-27T05:00:00Z"))).is_open);
        assert!(!daily.at(now, Some(at("2026-11-27T06:00:00Z"))).is_open);
    }

    #[test]
    fn a_day_that_never_comes_ends_the_search() {
        let Ok(never) = schedules(&[("0 0 30 2 *", "", 0)]) else {
            return; // refused at once is as good
        };
        assert_eq!(never.at(at("2026-11-27T05:30:00Z"), None).next, None);
    }

    #[test]
    fn no_schedule_is_any_time() {
        assert!(
            schedules(&[])
                .unwrap()
                .at(at("2026-11-27T05:30:00Z"), None)
                .is_open
        );
    }

    #[test]
    fn what_cannot_be_followed_is_an_error() {
        for (cron, zone, minutes) in [
            ("* * * *", "", 0),
            ("* * * * * UTC", "", 0),
            ("61 * * * *", "", 0),
            ("* * * * *", "Nowhere/City", 0),
            ("* * * * *", "UTC UTC", 0),
            ("* * * * *", "", 3),
        ] {
            assert!(
                schedules(&[(cron, zone, minutes)]).is_err(),
                "{cron} {zone} {minutes}"
            );
        }
    }
}
