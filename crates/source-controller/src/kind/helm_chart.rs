//! `HelmChart`: a chart of a repository, or one that is packaged from the artifact of another source.
//!
//! What is fetched is the packaged chart, in a temporary file; where it comes from and what was done to it is in
//! [`references`] and [`build`]. The archive itself is the artifact; its files are in the store as well.

mod build;
mod content;
mod dependencies;
mod references;
mod repository;

use std::io::Seek as _;

use api::delivery::PolicySourceKind;
use api::meta::condition_types::ARTIFACT_IN_STORAGE;
use api::meta::{Artifact, StatusObject as _, reasons};
use api::source::{HelmChart, HelmChartStatus};
use artifact::store::{self, Ingest};
use kube::ResourceExt as _;
use verification_policy::sources::{Origin, Trust};

use content::{Content, kind_name, unpack};

use self::references::References;
use super::{Build, Failure, Fetch, Fetched, Kind, Verified};
use crate::error::Error;
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;

impl Kind for HelmChart {
    const NAME: &'static str = "HelmChart";
    const HAS_LATEST_URL: bool = true;
    const HAS_INPUTS: bool = true;
    const HAS_TIMEOUT: bool = false;
    const OUTDATED_REASON: &'static str = "NewChart";
    const POLICY_KIND: PolicySourceKind = PolicySourceKind::HelmChart;
    type References = References;
    type Content = Content;

    fn refusal(&self) -> Option<Error> {
        None
    }

    fn inputs(&self) -> Vec<store::ObjectKey> {
        let namespace = self.namespace().unwrap_or_default();
        let source = &self.spec.source_ref;
        vec![store::ObjectKey::new(
            kind_name(source.kind),
            &namespace,
            &source.name,
        )]
    }

    fn wants_verification(&self) -> bool {
        self.spec.verification.is_some()
    }

    async fn read_references(&self, reader: &Reader) -> Result<References, Error> {
        references::read(self, reader).await
    }

    /// As in Flux, each change of the spec builds the chart anew.
    fn settings_changed(&self) -> bool {
        let status = self.status.as_ref();
        let observed = status.and_then(|status| status.observed_generation);
        observed != self.metadata.generation || self.condition(ARTIFACT_IN_STORAGE).is_none()
    }

    async fn fetch(
        &self,
        references: &References,
        unless_revision: Option<String>,
        fetcher: &Fetcher,
    ) -> Result<Fetch<Content>, Failure> {
        let fetched = build::fetch(self, references, unless_revision, fetcher).await;
        fetched.map_err(|failure| *failure)
    }

    async fn verify(
        &self,
        references: &References,
        fetched: &mut Fetched<Content>,
        fetcher: &Fetcher,
    ) -> Result<Verified, Error> {
        references::verify(self, references, fetched, fetcher).await
    }

    fn origin(&self, references: &References) -> Option<Origin> {
        references.origin(&self.spec.chart)
    }

    /// The charts that it needs.
    fn brings_others(&self) -> bool {
        true
    }

    async fn meets(
        &self,
        trust: &Trust,
        _references: &References,
        fetched: &mut Fetched<Content>,
        fetcher: &Fetcher,
    ) -> Result<(), String> {
        match &fetched.content.origin {
            Some((repository, digest)) => trust.verify(repository, *digest, &fetcher.sigstore).await,
            None => {
                Err("charts of a repository with an index have no signature that can be verified".to_owned())
            }
        }
    }

    fn fill(mut content: Content, ingest: &mut Ingest) -> Result<(), Error> {
        unpack(&content.archive, ingest)?;
        content.archive.rewind().map_err(Error::MakeDirectory)?;
        Ok(ingest.set_archive(content.archive)?)
    }

    fn build(content: &Content) -> Option<Build> {
        Some(content.build.clone())
    }

    fn in_storage_message(revision: &str) -> String {
        format!("stored chart with version '{revision}'")
    }

    fn in_storage(&self, revision: &str, build: Option<&Build>) -> (String, String) {
        match (build, self.condition(ARTIFACT_IN_STORAGE)) {
            (Some(build), _) => (build.reason.to_owned(), build.summary.clone()),
            (None, Some(before)) => (before.reason.clone(), before.message.clone()),
            (None, None) => (reasons::SUCCEEDED.to_owned(), Self::in_storage_message(revision)),
        }
    }

    fn announcement(&self, artifact: &Artifact, headline: Option<&str>) -> String {
        match headline {
            Some(summary) => summary.to_owned(),
            None => self.in_storage(&artifact.revision, None).1,
        }
    }

    fn set_artifact(status: &mut HelmChartStatus, artifact: Option<Artifact>, latest_url: Option<String>) {
        status.artifact = artifact;
        status.url = latest_url;
    }

    fn note_settings(&self, _status: &mut HelmChartStatus) {}

    fn note_build(&self, build: &Build, status: &mut HelmChartStatus) {
        status.observed_chart_name = Some(build.name.clone());
        status.observed_values_files = match self.spec.ignore_missing_values_files {
            true => build.values_files.clone(),
            false => Vec::new(),
        };
    }

    fn note_inputs(revisions: &[(store::ObjectKey, String)], status: &mut HelmChartStatus) {
        if let Some((_, revision)) = revisions.first() {
            status.observed_source_artifact_revision = Some(revision.clone());
        }
    }
}

#[cfg(test)]
mod tests;
