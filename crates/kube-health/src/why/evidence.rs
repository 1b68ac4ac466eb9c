//! Evidence for a cause.

use serde_json::Value;

/// A workload and what belongs to it. All values are whole objects; what was not looked up is empty.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The object that is not healthy.
    pub workload: Value,
    /// Creator of the Pods: the newest ReplicaSet of a Deployment, the newest Job of a CronJob.
    pub child: Option<Value>,
    /// Its Pods.
    pub pods: Vec<Value>,
    /// The PersistentVolumeClaims of the Pod that is worst off.
    pub claims: Vec<Value>,
    /// Events on any of these.
    pub events: Vec<Value>,
    /// The API server's words, when something could not be read for want of a permission.
    pub denied: Option<String>,
}
