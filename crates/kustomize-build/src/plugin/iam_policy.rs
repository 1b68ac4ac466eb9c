//! `IAMPolicyGenerator`: a service account that GKE knows as an account of the cloud.

use manifest::yaml::{Node, Tag};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::kustomization::decode::{Decode, Fields, Place};
use crate::nodes::Nodes;
use crate::resource::Resource;

/// Identity of the service account.
#[derive(Clone, Debug, Default)]
pub(crate) struct IamPolicy {
    cloud: String,
    /// Its name and namespace in the cluster.
    account: Account,
    /// Its name and project in the cloud.
    cloud_account: Account,
}

#[derive(Clone, Debug, Default)]
struct Account {
    name: String,
    namespace: String,
    project: String,
}

impl Decode for IamPolicy {
    fn go_type() -> String {
        "builtins.IAMPolicyGeneratorPlugin".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut policy = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take_named("cloud", "types.Cloud", &mut policy.cloud);
        fields.take_named(
            "kubernetesService",
            "types.KubernetesService",
            &mut policy.account,
        );
        fields.take("serviceAccount", &mut policy.cloud_account);
        fields.finish_loosely()?;
        Ok(policy)
    }
}

impl Decode for Account {
    fn go_type() -> String {
        "types.ServiceAccount".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut account = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("name", &mut account.name);
        fields.take("namespace", &mut account.namespace);
        fields.take("projectId", &mut account.project);
        fields.finish_loosely()?;
        Ok(account)
    }
}

impl IamPolicy {
    /// Makes the service account.
    pub(crate) fn generate(&self, nodes: &mut Nodes) -> Result<Resource> {
        if self.cloud != "gke" {
            return Err(Error::invalid(format!(
                "cloud provider {} not supported yet",
                self.cloud
            )));
        }
        let (name, project) = (&self.cloud_account.name, &self.cloud_account.project);
        let mut text = format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  annotations:\n    \
             iam.gke.io/gcp-service-account: {name}@{project}.iam.gserviceaccount.com\n  name: {}\n",
            self.account.name
        );
        if !self.account.namespace.is_empty() {
            text += &format!("\n  namespace: {}", self.account.namespace);
        }
        // As kustomize does, so that a name like `1` is a number.
        let root = manifest::yaml::compose_first(&text, nodes, manifest::yaml::Dialect::Kyaml)
            .map_err(|problem| Error::invalid(problem.to_string()))?;
        let root = root.unwrap_or_else(|| nodes.add(Node::tagged_scalar("null", Tag::Null)));
        Ok(Resource::new(root, None))
    }
}
