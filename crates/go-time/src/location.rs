//! Places with their time zones.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A place with its time zones (time.Location).
#[derive(Debug, Clone)]
pub struct Location(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Utc,
    Fixed { name: Arc<str>, offset: i32 },
    Zone { name: Arc<str>, zone: TimeZone },
}

/// The zone that is in effect at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) abbreviation: String,
    /// Seconds east of UTC.
    pub(crate) offset: i32,
    pub(crate) is_dst: bool,
}

impl Location {
    /// Universal time.
    pub const UTC: Self = Self(Kind::Utc);

    /// Finds a place by its name in the database of the world's zones, which is part of the program; its names are told
    /// apart by case. `UTC` and nothing are universal time, `Local` is [`Location::local`] (time.LoadLocation).
    #[must_use]
    pub fn load(name: &str) -> Option<Self> {
        match name {
            "" | "UTC" => Some(Self::UTC),
            "Local" => Some(Self::local()),
            _ => from_database(name),
        }
    }

    /// The place where the process runs: what `TZ` says, else /etc/localtime, else universal time. Read once.
    #[must_use]
    pub fn local() -> Self {
        static LOCAL: OnceLock<Location> = OnceLock::new();
        LOCAL.get_or_init(|| read_local().unwrap_or(Self::UTC)).clone()
    }

    /// A place that always has the same zone, so many seconds east of UTC.
    #[must_use]
    pub fn fixed(name: &str, offset: i32) -> Self {
        let name = name.into();
        Self(Kind::Fixed { name, offset })
    }

    /// The name: `UTC`, `Local`, that of a fixed zone, or that of the database.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::Utc => "UTC",
            Kind::Fixed { name, .. } | Kind::Zone { name, .. } => name,
        }
    }

    /// The zone in effect at a Unix time.
    pub(crate) fn zone_at(&self, unix: i64) -> Zone {
        match &self.0 {
            Kind::Utc => Zone {
                abbreviation: "UTC".to_owned(),
                offset: 0,
                is_dst: false,
            },
            Kind::Fixed { name, offset } => Zone {
                abbreviation: name.as_ref().to_owned(),
                offset: *offset,
                is_dst: false,
            },
            Kind::Zone { zone, .. } => {
                let info = zone.to_offset_info(timestamp(unix));
                Zone {
                    abbreviation: info.abbreviation().to_owned(),
                    offset: info.offset().seconds(),
                    is_dst: info.dst().is_dst(),
                }
            }
        }
    }

    /// Seconds east of UTC at a Unix time.
    pub(crate) fn offset_at(&self, unix: i64) -> i32 {
        match &self.0 {
            Kind::Utc => 0,
            Kind::Fixed { offset, .. } => *offset,
            Kind::Zone { zone, .. } => zone.to_offset(timestamp(unix)).seconds(),
        }
    }

    /// The offset of a zone of this name: the one in effect at the time, which is given as if it were UTC, else any that
    /// the place ever had.
    pub(crate) fn offset_of_name(&self, name: &str, unix: i64) -> Option<i32> {
        let named: Vec<Zone> = self
            .zones()
            .into_iter()
            .filter(|zone| zone.abbreviation == name)
            .collect();
        let in_effect = named.iter().find_map(|zone| {
            let found = self.zone_at(unix.wrapping_sub(zone.offset.into()));
            (found.abbreviation == name).then_some(found.offset)
        });
        in_effect.or_else(|| Some(named.first()?.offset))
    }

    /// All zones that the place ever had.
    fn zones(&self) -> Vec<Zone> {
        let Kind::Zone { zone, .. } = &self.0 else {
            return vec![self.zone_at(0)];
        };
        let mut zones = vec![self.zone_at(i64::MIN)];
        // Rules for the future repeat what was known before this year.
        let transitions = zone
            .following(Timestamp::MIN)
            .take_while(|transition| transition.timestamp().as_second() < 2_147_483_648);
        for transition in transitions {
            let zone = self.zone_at(transition.timestamp().as_second());
            if !zones.contains(&zone) {
                zones.push(zone);
            }
        }
        zones
    }
}

/// Places are the same when their names and rules are.
impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Utc, Kind::Utc) => true,
            (Kind::Fixed { name: a, offset: x }, Kind::Fixed { name: b, offset: y }) => (a, x) == (b, y),
            (Kind::Zone { name: a, zone: x }, Kind::Zone { name: b, zone: y }) => (a, x) == (b, y),
            _ => false,
        }
    }
}

impl Eq for Location {}

fn from_database(name: &str) -> Option<Location> {
    static DATABASE: OnceLock<TimeZoneDatabase> = OnceLock::new();
    let zone = DATABASE.get_or_init(TimeZoneDatabase::bundled).get(name).ok()?;
    // The database does not tell cases apart, Go's files do.
    if zone.iana_name() != Some(name) {
        return None;
    }
    let name = name.into();
    Some(Location(Kind::Zone { name, zone }))
}

fn read_local() -> Option<Location> {
    let Some(variable) = std::env::var_os("TZ") else {
        return from_file(Path::new("/etc/localtime"), "Local");
    };
    let name = variable.as_bytes();
    let name = name.strip_prefix(b":").unwrap_or(name);
    if name.starts_with(b"/") {
        let path = Path::new(OsStr::from_bytes(name));
        return from_file(path, &path.to_string_lossy());
    }
    from_database(str::from_utf8(name).ok()?)
}

fn from_file(path: &Path, name: &str) -> Option<Location> {
    let data = std::fs::read(path).ok()?;
    let zone = TimeZone::tzif(name, &data).ok()?;
    let name = name.into();
    Some(Location(Kind::Zone { name, zone }))
}

/// The time, brought within what the database knows: rules are the same every 400 years, and before the first zone there
/// was none other.
fn timestamp(unix: i64) -> Timestamp {
    const CALENDAR_CYCLE: i64 = 146_097 * 86_400;
    let latest = Timestamp::MAX.as_second();
    let unix = match unix {
        unix if unix > latest => latest - CALENDAR_CYCLE + (unix - latest) % CALENDAR_CYCLE,
        unix => unix.max(Timestamp::MIN.as_second()),
    };
    Timestamp::from_second(unix).expect("it was brought within the bounds")
}
