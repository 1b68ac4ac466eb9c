//! Figures of one contestant.

use std::time::Duration;
use testkit::process::Usage;

/// One controller at rest.
pub(super) struct Measured {
    pub(super) name: &'static str,
    /// From its start until `/readyz` said yes.
    pub(super) start: Duration,
    pub(super) usage: Usage,
    /// What is resident, in which pages count by its share that others of its program have, too. In bytes.
    pub(super) share: u64,
    /// As Kubernetes counts it, in bytes; None where it cannot be counted.
    pub(super) working_set: Option<u64>,
    /// While nothing happened.
    pub(super) cpu: Duration,
}
