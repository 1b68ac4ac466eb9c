//! PersistentVolumeClaims: bound, or not yet.

use serde_json::Value;

use crate::fields;
use crate::verdict::Verdict;

pub(crate) fn verdict(object: &Value) -> Verdict {
    match fields::text_or(object, "status.phase", "") {
        "Bound" => Verdict::current("bound"),
        "" => Verdict::in_progress("not yet bound"),
        phase => Verdict::in_progress(format!("not bound, its phase is {phase}")),
    }
}
