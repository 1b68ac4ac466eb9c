//! Formats of strings that schemas before draft 2019-09 assert, with the words of santhosh-tekuri/jsonschema for what is
//! wrong.

pub(super) mod address;
mod identifier;
mod problem;
mod resource;
mod time;

use go_text::json::Json;

use super::pattern::Pattern;
use problem::Problem;

/// A format by its name.
#[derive(Clone, Copy)]
pub(super) struct Format {
    name: &'static str,
    check: fn(&str) -> Result<(), Problem>,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const FORMATS: [Format; 19] = [
    Format::new("regex", |text| Pattern::new(text).map(|_| ())),
    Format::new("json-pointer", identifier::json_pointer),
    Format::new("relative-json-pointer", identifier::relative_json_pointer),
    Format::new("uuid", identifier::uuid),
    Format::new("duration", time::duration),
    Format::new("period", time::period),
    Format::new("ipv4", address::ipv4),
    Format::new("ipv6", address::ipv6),
    Format::new("hostname", address::host_name),
    Format::new("email", address::email),
    Format::new("date", time::date),
    Format::new("time", time::time),
    Format::new("date-time", time::date_time),
    Format::new("uri", resource::uri),
    Format::new("iri", resource::uri),
    Format::new("uri-reference", resource::uri_reference),
    Format::new("iri-reference", resource::uri_reference),
    Format::new("uri-template", resource::uri_template),
    Format::new("semver", identifier::semver),
];

impl Format {
    const fn new(name: &'static str, check: fn(&str) -> Result<(), Problem>) -> Self {
        Self { name, check }
    }

    /// The format of a name; a name that is not known asserts nothing.
    pub(super) fn named(name: &str) -> Option<Self> {
        FORMATS.iter().find(|format| format.name == name).copied()
    }

    pub(super) fn name(self) -> &'static str {
        self.name
    }

    /// Checks a string; other values fit every format.
    pub(super) fn check(self, value: &Json<'_>) -> Result<(), Problem> {
        match value {
            Json::Text(text) => (self.check)(text),
            _ => Ok(()),
        }
    }
}
