//! Repositories at Azure DevOps.

use serde::Deserialize;
use serde_json::json;

use super::Hosted;
use crate::azure_devops::{AzureDevOps, VERSION};
use crate::error::Error;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    ssh_url: Option<String>,
    /// Missing while there is no commit.
    default_branch: Option<String>,
}

impl From<Found> for Hosted {
    fn from(found: Found) -> Self {
        let branch = found.default_branch.unwrap_or_default();
        Self {
            ssh: found.ssh_url.unwrap_or_default(),
            default_branch: branch.strip_prefix("refs/heads/").unwrap_or(&branch).to_owned(),
        }
    }
}

impl AzureDevOps<'_> {
    pub(super) async fn hosted(&self) -> Result<Option<Hosted>, Error> {
        let found: Option<Found> = self.api.find(&self.path(&[]), &[VERSION]).await?;
        Ok(found.map(Hosted::from))
    }

    /// Who may read it is what the project says.
    pub(super) async fn make(&self) -> Result<Hosted, Error> {
        let path = [self.address.project.as_str(), "_apis", "git", "repositories"];
        let body = json!({"name": self.address.name});
        let made: Found = self.api.create(&path, &[VERSION], &body).await?;
        Ok(made.into())
    }
}
