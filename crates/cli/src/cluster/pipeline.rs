//! A Pipeline, read for a command.

use api::delivery::Pipeline;
use clap::Args;
use delivery_graph::kind;
use manifest::ObjectId;

use super::select::{self, Selection};
use super::{Cluster, ClusterFlags, Failure};

/// The pipeline that a command is about.
#[derive(Debug, Args)]
pub(crate) struct PipelineFlags {
    /// pipeline/NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

impl PipelineFlags {
    /// Its name.
    pub(crate) fn name(&self) -> Result<String, Failure> {
        let usage = || Failure::Usage("name one Pipeline: pipeline/NAME".to_owned());
        match select::select(&self.words)? {
            Selection::Targets(targets) => match targets.as_slice() {
                [target] if target.kind.kind == "Pipeline" => Ok(target.name.clone()),
                _ => Err(usage()),
            },
            Selection::Kinds(_) => Err(usage()),
        }
    }
}

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
