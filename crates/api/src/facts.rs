//! Labels of `gotk_resource_info`, read from an object. They follow the kube-state-metrics configuration of
//! fluxcd/flux2-monitoring-example, so dashboards made for it keep working.

use kube::Resource;

use crate::delivery::{ChangeRequest, EnvironmentPolicy, Pipeline, Preview};
use crate::flux_operator::{ResourceSet, ResourceSetInputProvider};
use crate::helm::HelmRelease;
use crate::image::{ImagePolicy, ImageRepository, ImageUpdateAutomation};
use crate::kustomize::Kustomization;
use crate::meta::{StatusObject, condition_types};
use crate::notification::{Alert, Provider, Receiver};
use crate::source::{
    Bucket, ExternalArtifact, GitRepository, HelmChart, HelmRepository, OCIRepository, Source,
};
use crate::source_extensions::ArtifactGenerator;

/// Facts about one object. Details that an object does not have are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The status of its condition Ready: True, False or Unknown; empty if there is none.
    pub ready: String,
    /// True if it is suspended.
    pub suspended: bool,
    /// Details particular to its kind, by label.
    pub details: Vec<(&'static str, String)>,
}

/// An object whose state metrics tell.
pub trait HasFacts: Resource<DynamicType = ()> {
    /// Its state.
    fn facts(&self) -> Facts;
}

impl Facts {
    fn from_object<K: StatusObject>(object: &K) -> Self {
        let ready = object.condition(condition_types::READY);
        Self {
            ready: ready.map(|ready| ready.status.clone()).unwrap_or_default(),
            suspended: object.suspended(),
            details: Vec::new(),
        }
    }

    /// Those of a source.
    fn produced<K: Source>(object: &K) -> Self {
        let revision = object.artifact().map(|artifact| artifact.revision.as_str());
        Self::from_object(object).with("revision", revision)
    }

    fn with(mut self, label: &'static str, value: Option<&str>) -> Self {
        self.details.push((label, value.unwrap_or_default().to_owned()));
        self
    }
}

/// An address without what it may carry: name and password, and a query that may be signed.
fn plain(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + 3));
    let end = rest.find('/').unwrap_or(rest.len());
    let begin = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}{}", &rest[begin..])
}

impl HasFacts for GitRepository {
    fn facts(&self) -> Facts {
        Facts::produced(self).with("url", Some(&plain(&self.spec.url)))
    }
}

impl HasFacts for OCIRepository {
    fn facts(&self) -> Facts {
        Facts::produced(self).with("url", Some(&plain(&self.spec.url)))
    }
}

impl HasFacts for HelmRepository {
    fn facts(&self) -> Facts {
        Facts::produced(self).with("url", Some(&plain(&self.spec.url)))
    }
}

impl HasFacts for Bucket {
    fn facts(&self) -> Facts {
        Facts::produced(self)
            .with("endpoint", Some(&plain(&self.spec.endpoint)))
            .with("bucket_name", Some(&self.spec.bucket_name))
    }
}

impl HasFacts for HelmChart {
    fn facts(&self) -> Facts {
        Facts::produced(self)
            .with("chart_name", Some(&self.spec.chart))
            .with("chart_version", self.spec.version.as_deref())
    }
}

impl HasFacts for ExternalArtifact {
    fn facts(&self) -> Facts {
        let source = self.spec.source_ref.as_ref();
        Facts::produced(self).with("source_name", source.map(|source| source.name.as_str()))
    }
}

impl HasFacts for ImageRepository {
    fn facts(&self) -> Facts {
        Facts::from_object(self).with("image", Some(&self.spec.image))
    }
}

impl HasFacts for Pipeline {
    fn facts(&self) -> Facts {
        Facts::from_object(self)
    }
}

impl HasFacts for ChangeRequest {
    fn facts(&self) -> Facts {
        Facts::from_object(self)
    }
}

impl HasFacts for Preview {
    fn facts(&self) -> Facts {
        Facts::from_object(self)
    }
}

impl HasFacts for EnvironmentPolicy {
    fn facts(&self) -> Facts {
        Facts::from_object(self)
    }
}

impl HasFacts for ResourceSet {
    fn facts(&self) -> Facts {
        Facts::from_object(self)
    }
}

impl HasFacts for ResourceSetInputProvider {
    fn facts(&self) -> Facts {
        Facts::from_object(self).with("url", Some(&plain(&self.spec.url)))
    }
}

impl HasFacts for ImagePolicy {
    fn facts(&self) -> Facts {
        Facts::from_object(self).with("source_name", Some(&self.spec.image_repository_ref.name))
    }
}

impl HasFacts for ImageUpdateAutomation {
    fn facts(&self) -> Facts {
        Facts::from_object(self).with("source_name", Some(&self.spec.source_ref.name))
    }
}

impl HasFacts for ArtifactGenerator {
    fn facts(&self) -> Facts {
        Facts::from_object(self)
    }
}

impl HasFacts for Kustomization {
    fn facts(&self) -> Facts {
        let applied = self
            .status
            .as_ref()
            .and_then(|status| status.last_applied_revision.as_deref());
        Facts::from_object(self)
            .with("revision", applied)
            .with("source_name", Some(&self.spec.source_ref.name))
    }
}

impl HasFacts for HelmRelease {
    fn facts(&self) -> Facts {
        let newest = self.status.as_ref().and_then(|status| status.history.first());
        let template = self.spec.chart.as_ref().map(|chart| &chart.spec);
        let chart = newest.map(|newest| newest.chart_name.as_str());
        Facts::from_object(self)
            .with("revision", newest.map(|newest| newest.chart_version.as_str()))
            .with(
                "chart_name",
                chart.or(template.map(|template| template.chart.as_str())),
            )
            .with(
                "chart_app_version",
                newest.and_then(|newest| newest.app_version.as_deref()),
            )
            .with(
                "chart_ref_name",
                self.spec.chart_ref.as_ref().map(|chart| chart.name.as_str()),
            )
            .with(
                "chart_source_name",
                template.map(|template| template.source_ref.name.as_str()),
            )
    }
}

impl HasFacts for Alert {
    fn facts(&self) -> Facts {
        Facts {
            suspended: self.spec.suspend,
            ..Facts::default()
        }
    }
}

impl HasFacts for Provider {
    fn facts(&self) -> Facts {
        Facts {
            suspended: self.spec.suspend,
            ..Facts::default()
        }
    }
}

// The path of a Receiver is never reported: anyone who knows it may call.
impl HasFacts for Receiver {
    fn facts(&self) -> Facts {
        Facts::from_object(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kustomization_tells_its_revision_and_source() {
        let object: Kustomization = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"interval": "1m", "prune": true, "suspend": true, "sourceRef": {"kind": "GitRepository", "name": "app"}},
            "status": {"lastAppliedRevision": "main@sha1:1", "conditions": [{
                "type": "Ready", "status": "False", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        }))
        .unwrap();
        let facts = object.facts();
        assert_eq!((facts.ready.as_str(), facts.suspended), ("False", true));
        assert_eq!(
            facts.details,
            [
                ("revision", "main@sha1:1".to_owned()),
                ("source_name", "app".to_owned())
            ]
        );
    }

    #[test]
    fn addresses_are_told_without_what_they_carry() {
        for (url, told) in [
            (
                "https://me:secret@git.example.com/a@b",
                "https://git.example.com/a@b",
            ),
            ("https://git.example.com/a@b", "https://git.example.com/a@b"),
            ("ssh://git@host", "ssh://host"),
            (
                "https://store.example.com/charts?sig=secret",
                "https://store.example.com/charts",
            ),
            ("me:secret@minio.example.com:9000", "minio.example.com:9000"),
            ("host/path", "host/path"),
        ] {
            assert_eq!(plain(url), told);
        }
    }
}
