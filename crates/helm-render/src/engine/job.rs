//! Input and output of a rendering.

use std::sync::Arc;

use go_template::{Limits, Map};
use helm_chart::{Chart, Helm};

use super::parsed::Parsed;
use crate::capabilities::Capabilities;
use crate::functions::Lookup;
use crate::release::Release;

/// Input of a rendering.
pub(crate) struct Job<'a> {
    pub(crate) helm: Helm,
    pub(crate) chart: &'a Chart,
    pub(crate) parsed: &'a Parsed,
    pub(crate) values: Map,
    pub(crate) release: &'a Release,
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) lookup: Option<Arc<dyn Lookup>>,
    pub(crate) strict: bool,
    pub(crate) lint: bool,
    pub(crate) limits: Limits,
}
