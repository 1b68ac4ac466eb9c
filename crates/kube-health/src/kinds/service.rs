//! Services: a load balancer needs its cluster IP; all others are there once they are stored.

use serde_json::Value;

use crate::fields;
use crate::verdict::Verdict;

/// kstatus does not wait for a load balancer's external address, so that clusters without a provider are not stuck.
pub(crate) fn verdict(object: &Value) -> Verdict {
    let load_balancer = fields::text_or(object, "spec.type", "ClusterIP") == "LoadBalancer";
    if load_balancer && fields::text_or(object, "spec.clusterIP", "").is_empty() {
        return Verdict::in_progress("the load balancer has no cluster IP yet");
    }
    Verdict::current("is stored")
}
