//! A Pipeline, read for a command.

use api::delivery::Pipeline;
use delivery_graph::kind;
use manifest::ObjectId;

use super::{Cluster, Failure};

/// Reads a pipeline of the command's namespace.
pub(crate) async fn read(cluster: &Cluster, name: &str) -> Result<(ObjectId, Pipeline), Failure> {
    let kind = kind::exact("Pipeline");
    let kind = kind.ok_or_else(|| Failure::Usage("Pipeline is no known kind".to_owned()))?;
    let id = kind.id(&cluster.namespace, name);
    let object = cluster.need(&id).await?;
    let pipeline = serde_json::from_value(object)
        .map_err(|error| Failure::NotReady(format!("{id} cannot be read: {error}")))?;
    Ok((id, pipeline))
}
