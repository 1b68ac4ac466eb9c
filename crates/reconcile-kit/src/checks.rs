//! The health checks that a spec gives as expressions.

use api::meta::{CustomHealthCheck, Delivers};
use kube_health::{Check, CheckError, Checks};

/// Compiles `spec.healthCheckExprs`.
pub fn checks<K: Delivers>(object: &K) -> Result<Checks, CheckError> {
    fn check(check: &CustomHealthCheck) -> Check<'_> {
        Check {
            api_version: &check.api_version,
            kind: check.kind.as_deref(),
            in_progress: check.in_progress.as_deref(),
            failed: check.failed.as_deref(),
            current: &check.current,
        }
    }
    Checks::new(object.health_check_exprs().iter().map(check))
}
