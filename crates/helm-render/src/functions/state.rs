//! State that functions keep for the length of one render.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use go_template::Str;
use serde_json::{Map, Value};

/// Where templates look things up outside of the chart: `lookup` asks the API server, for whom there is one, and
/// `getHostByName` the DNS, for whom that is allowed.
pub trait Lookup: fmt::Debug + Send + Sync {
    /// Finds an object, or all of a kind where the name is empty (as a `List` of theirs). None for what is not there; an
    /// error ends the render with that text.
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Map<String, Value>>, String>;

    /// Finds the addresses of a host; none where there is no such host. None if templates may not ask; an error ends the
    /// render with that text.
    fn addresses(&self, _host: &str) -> Result<Option<Vec<IpAddr>>, String> {
        Ok(None)
    }
}

/// The part of a render that belongs to functions.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Where objects are looked up.
    pub(crate) lookup: Option<Arc<dyn Lookup>>,
    /// True if missing values and `fail` are only warnings.
    pub(crate) lint: bool,
    /// Warnings.
    pub(crate) warnings: Vec<String>,
    /// How often each template is being included.
    pub(super) included: HashMap<Str, u32>,
}
