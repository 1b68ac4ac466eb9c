//! Environment of the process: variables and files that pods get from their cloud, and the time.

use std::collections::BTreeMap;
use std::io::Read as _;

use jiff::Timestamp;

use crate::exchange::Error;

/// Token files and credential files are small.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// The variables of a process. Files that they name are read when they are needed: tokens in them are rotated.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    fixed_time: Option<Timestamp>,
}

impl Environment {
    /// That of this process, as it is now.
    #[must_use]
    pub fn of_process() -> Self {
        // Variables that are no text cannot be meant for us.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            variables: std::env::vars_os().filter_map(text).collect(),
            fixed_time: None,
        }
    }

    /// Made up, for tests.
    #[must_use]
    pub fn from_variables(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            variables: variables.iter().map(owned).collect(),
            fixed_time: None,
        }
    }

    /// The same at a time that stands still, for tests.
    #[must_use]
    pub fn at(mut self, time: Timestamp) -> Self {
        self.fixed_time = Some(time);
        self
    }

    /// A variable that is set and not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// A variable, or what it is when no one set it.
    pub(crate) fn get_or<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.get(name).unwrap_or(default)
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.fixed_time.unwrap_or_else(Timestamp::now)
    }

    /// The text of a file that a variable names.
    pub(crate) fn read(&self, path: &str) -> Result<String, Error> {
        let failed = |error: std::io::Error| Error::ReadFile {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        let mut text = String::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text))
            .map_err(failed)?;
        Ok(text.trim().to_owned())
    }
}
