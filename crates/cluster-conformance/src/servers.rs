//! What cases are fetched from: one Git server and one Helm repository, for all contestants.

use anyhow::{Context as _, Result};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use testkit::git::{Change, Repository};
use testkit::{GitServer, HelmRepository};

use crate::case::{Case, Content};

/// The tag at which overlays are as they were recorded.
pub(crate) const FIRST: &str = "v1";
/// The tag at which a file is added that no overlay reads.
pub(crate) const SECOND: &str = "v2";

/// Servers with the content of cases. Contestants that are asked one after the other see the same addresses and commits.
#[derive(Debug)]
pub struct Servers {
    repository: Repository,
    charts: HelmRepository,
    _git: GitServer,
}

impl Servers {
    /// Starts them, with the content of all cases.
    pub async fn start(cases: &[Case]) -> Result<Self> {
        let git = GitServer::start().await?;
        let repository = git.create_repository("overlays")?;
        let charts = HelmRepository::start().await?;
        let mut changes = vec![Change::write("README.md", "Recorded overlays.\n")];
        for case in cases {
            match &case.content {
                Content::Overlay(overlay) => {
                    let files = overlay.files.iter();
                    changes.extend(files.map(|(path, content)| {
                        Change::write(&format!("{}/{path}", case.id), content.clone())
                    }));
                }
                Content::Chart(chart) => {
                    let index = json!({"apiVersion": "v1", "entries": {(&chart.name): [{
                        "apiVersion": "v2", "name": chart.name, "version": chart.version, "urls": ["chart.tgz"],
                        "digest": hex::encode(Sha256::digest(&chart.archive)), "created": "2026-01-01T00:00:00Z",
                    }]}});
                    charts.set_file(
                        &format!("{}/index.yaml", case.id),
                        Some(index.to_string().into_bytes()),
                    );
                    charts.set_file(&format!("{}/chart.tgz", case.id), Some(chart.archive.clone()));
                }
            }
        }
        let first = repository.commit("main", "the overlays", &changes)?;
        repository.tag(FIRST, &first)?;
        let change = Change::write("README.md", "Recorded overlays, again.\n");
        let second = repository.commit("main", "a file that no overlay reads", &[change])?;
        repository.tag(SECOND, &second).context("failed to tag")?;
        Ok(Self {
            repository,
            charts,
            _git: git,
        })
    }

    /// The address of the repository of overlays.
    pub(crate) fn overlays(&self) -> &str {
        self.repository.url()
    }

    /// The address of the Helm repository with the chart of the case.
    pub(crate) fn charts(&self, case: &Case) -> String {
        format!("{}/{}", self.charts.url(), case.id)
    }
}
