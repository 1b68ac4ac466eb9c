//! The objects that a call wakes: found by name or labels, and annotated.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::image::{PUSHED_TAGS_ANNOTATION, PushedTags};
use api::meta::RECONCILE_REQUEST_ANNOTATION;
use api::notification::ReceiverResource;
use controller_kit::check_name;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::discovery::ApiResource;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use webhook::Evaluator;
use webhook::filter::{Called, Filter};

use super::compile::kind;
use crate::flags::NAME;
use crate::served::{self, Served};

/// Objects that are annotated at once for one call.
const AT_ONCE: usize = 8;
/// How long the expressions over the objects of a resource may take: others wait for theirs.
const MOST_TIME: Duration = Duration::from_secs(20);
/// Names of objects that are told of.
const MOST_NAMES: usize = 10;
/// Wildcard for all names.
const ALL: &str = "*";

/// Result of a filter.
#[derive(Debug, Default)]
struct Sifted {
    /// The names of those that pass.
    names: Vec<String>,
    /// Those of which it says nothing.
    failures: Vec<Failure>,
}

/// An object with which something went wrong.
#[derive(Debug)]
struct Failure {
    name: String,
    problem: String,
}

/// Where objects of a resource are.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    api: ApiResource,
    namespace: String,
    name: String,
    labels: String,
}

impl Place {
    /// Finds out where the objects of a resource are. Pure.
    pub fn new(
        resource: &ReceiverResource,
        receiver_namespace: &str,
        no_cross_namespace_refs: bool,
    ) -> Result<Self, String> {
        let namespace = resource.namespace.as_deref().unwrap_or(receiver_namespace);
        if no_cross_namespace_refs && namespace != receiver_namespace {
            return Err("cross-namespace references are not allowed".to_owned());
        }
        check_name(namespace)?;
        check_name(&resource.name)?;
        let kind = kind(resource);
        let api_version = match resource.api_version.as_deref() {
            Some(api_version) => api_version,
            None => default_version(&kind)
                .ok_or_else(|| format!("apiVersion must be specified for kind {kind:?}"))?,
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        check_name(group)?;
        check_name(version)?;
        if resource.name == ALL && resource.match_labels.is_empty() {
            return Err("matchLabels field not set when using wildcard '*' as name".to_owned());
        }
        Ok(Self {
            api: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: api_version.to_owned(),
                plural: plural(&kind),
                kind,
            },
            namespace: namespace.to_owned(),
            name: resource.name.clone(),
            labels: selector(&resource.match_labels)?,
        })
    }

    /// Says that the kind is not served, if so.
    pub fn unserved(&self, served: &Served) -> Option<String> {
        let ApiResource {
            plural, group, kind, ..
        } = &self.api;
        (!served.serves(plural, group)).then(|| served::missing(kind, group))
    }

    /// Annotates the objects that pass the filter. All are tried; an error has the names of those with which something
    /// went wrong, and the first thing that did. ImageRepositories are told which tags were pushed.
    pub async fn wake(
        &self,
        client: &Client,
        filter: &Filter,
        called: &Called,
        evaluator: &Evaluator,
        tags: &[String],
    ) -> Result<(), String> {
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), &self.namespace, &self.api);
        let Sifted { names, mut failures } = if self.name != ALL && filter.is_empty() {
            Sifted {
                names: vec![self.name.clone()],
                failures: Vec::new(),
            }
        } else {
            self.passing(&api, filter, called, evaluator).await?
        };
        let annotated = stream::iter(names)
            .map(|name| self.annotate(&api, name, tags))
            .buffer_unordered(AT_ONCE);
        let results: Vec<Result<(), Failure>> = annotated.collect().await;
        failures.extend(results.into_iter().filter_map(Result::err));
        summary(&failures).map_or(Ok(()), Err)
    }

    /// Those that the filter lets through.
    async fn passing(
        &self,
        api: &Api<DynamicObject>,
        filter: &Filter,
        called: &Called,
        evaluator: &Evaluator,
    ) -> Result<Sifted, String> {
        let found = self.find(api).await?;
        if filter.is_empty() {
            return Ok(Sifted {
                names: found.iter().map(ResourceExt::name_any).collect(),
                failures: Vec::new(),
            });
        }
        let (filter, called, shape) = (filter.clone(), called.clone(), self.clone());
        let sifted = evaluator.run(move || shape.sift(&found, &filter, &called));
        sifted
            .await
            .ok_or_else(|| "failed to filter the objects".to_owned())
    }

    /// Asks the filter about each object. One about which it says nothing does not keep the others asleep.
    fn sift(&self, found: &[PartialObjectMeta<DynamicObject>], filter: &Filter, called: &Called) -> Sifted {
        let started = Instant::now();
        let mut sifted = Sifted::default();
        for object in found {
            let name = object.name_any();
            let matches = if started.elapsed() < MOST_TIME {
                let matches = filter.matches(called, &self.described(object));
                matches.map_err(|error| error.to_string())
            } else {
                Err(format!("the expressions take more than {MOST_TIME:?}"))
            };
            match matches {
                Ok(true) => sifted.names.push(name),
                Ok(false) => tracing::debug!(
                    "resource '{}/{name}.{}' NOT annotated because CEL expression returned false",
                    self.api.kind,
                    self.namespace
                ),
                Err(problem) => sifted.failures.push(Failure { name, problem }),
            }
        }
        sifted
    }

    async fn find(&self, api: &Api<DynamicObject>) -> Result<Vec<PartialObjectMeta<DynamicObject>>, String> {
        if self.name != ALL {
            let found = api.get_metadata(&self.name).await;
            return found.map(|object| vec![object]).map_err(|error| {
                let Self {
                    api, namespace, name, ..
                } = self;
                format!(
                    "unable to read {} \"{namespace}/{name}\" error: {}",
                    api.kind,
                    api_message(&error)
                )
            });
        }
        let Self {
            api: shape,
            namespace,
            labels,
            ..
        } = self;
        let found = api
            .list_metadata(&ListParams::default().labels(labels))
            .await
            .map_err(|error| {
                format!(
                    "failed listing resources in namespace {namespace:?} by matching labels {labels:?}: {}",
                    api_message(&error)
                )
            })?;
        if found.items.is_empty() {
            tracing::error!(
                "no {:?} resources found with matching labels {labels:?} in {namespace:?} namespace",
                shape.kind
            );
        }
        Ok(found.items)
    }

    async fn annotate(&self, api: &Api<DynamicObject>, name: String, tags: &[String]) -> Result<(), Failure> {
        let Self {
            api: shape,
            namespace,
            ..
        } = self;
        let now = Timestamp::now().to_string();
        let mut annotations = json!({RECONCILE_REQUEST_ANNOTATION: now});
        if shape.kind == "ImageRepository" && !tags.is_empty() {
            let pushed = PushedTags {
                requested_at: now,
                tags: tags.to_vec(),
            };
            annotations[PUSHED_TAGS_ANNOTATION] = serde_json::to_string(&pushed).unwrap_or_default().into();
        }
        let patch = json!({"metadata": {"annotations": annotations}});
        let parameters = PatchParams {
            field_manager: Some(NAME.to_owned()),
            ..PatchParams::default()
        };
        match api.patch_metadata(&name, &parameters, &Patch::Merge(patch)).await {
            Ok(_) => {
                tracing::info!("resource '{}/{name}.{namespace}' annotated", shape.kind);
                Ok(())
            }
            Err(error) => {
                let (kind, told) = (&shape.kind, api_message(&error));
                let problem = format!("failed to annotate resource: '{kind}/{name}.{namespace}': {told}");
                Err(Failure { name, problem })
            }
        }
    }

    /// Returns the part of an object that expressions see: its metadata.
    fn described(&self, object: &PartialObjectMeta<DynamicObject>) -> Value {
        json!({"apiVersion": self.api.api_version, "kind": self.api.kind, "metadata": object.metadata})
    }
}

/// Tells what went wrong in a line; None if nothing did.
fn summary(failures: &[Failure]) -> Option<String> {
    let first = failures.first()?;
    let names = failures.iter().take(MOST_NAMES).map(|failure| &*failure.name);
    let names = names.collect::<Vec<_>>().join(", ");
    let more = match failures.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{names}{more}: {}", first.problem))
}

/// The version of a kind where none is named, as Flux has it.
fn default_version(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Bucket" | "HelmChart" | "HelmRepository" | "GitRepository" | "OCIRepository" => {
            "source.toolkit.fluxcd.io/v1"
        }
        "ImageRepository" => "image.toolkit.fluxcd.io/v1",
        "ArtifactGenerator" => "source.extensions.fluxcd.io/v1beta1",
        "ChangeRequest" | "EnvironmentPolicy" | "Pipeline" | "Preview" => "delivery.windlass.dev/v1alpha1",
        "ResourceSet" | "ResourceSetInputProvider" => "fluxcd.controlplane.io/v1",
        _ => return None,
    })
}

fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    match lower.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{lower}s"),
    }
}

/// A label selector of equalities.
fn selector(labels: &BTreeMap<String, String>) -> Result<String, String> {
    let is_part = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
    };
    let pairs = labels.iter().map(|(key, value)| {
        let is_label = !key.is_empty() && is_part(key) && is_part(value);
        is_label
            .then(|| format!("{key}={value}"))
            .ok_or_else(|| format!("matchLabels has no valid label at {key:?}"))
    });
    Ok(pairs.collect::<Result<Vec<_>, _>>()?.join(","))
}

fn api_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(resource: Value, lock: bool) -> Result<Place, String> {
        Place::new(&serde_json::from_value(resource).unwrap(), "apps", lock)
    }

    #[test]
    fn kinds_are_found_where_flux_finds_them() {
        for (kind, plural, api_version) in [
            ("GitRepository", "gitrepositories", "source.toolkit.fluxcd.io/v1"),
            ("HelmChart", "helmcharts", "source.toolkit.fluxcd.io/v1"),
            (
                "ImageRepository",
                "imagerepositories",
                "image.toolkit.fluxcd.io/v1",
            ),
            (
                "ArtifactGenerator",
                "artifactgenerators",
                "source.extensions.fluxcd.io/v1beta1",
            ),
            (
                "ChangeRequest",
                "changerequests",
                "delivery.windlass.dev/v1alpha1",
            ),
            ("Pipeline", "pipelines", "delivery.windlass.dev/v1alpha1"),
            ("Preview", "previews", "delivery.windlass.dev/v1alpha1"),
            (
                "EnvironmentPolicy",
                "environmentpolicies",
                "delivery.windlass.dev/v1alpha1",
            ),
            (
                "ResourceSetInputProvider",
                "resourcesetinputproviders",
                "fluxcd.controlplane.io/v1",
            ),
        ] {
            let place = place(json!({"kind": kind, "name": "a"}), true).unwrap();
            assert_eq!(
                (place.api.plural.as_str(), place.api.api_version.as_str()),
                (plural, api_version)
            );
            assert_eq!(place.namespace, "apps");
        }
        let named =
            json!({"kind": "ImagePolicy", "name": "a", "apiVersion": "image.toolkit.fluxcd.io/v1beta2"});
        let named = place(named, true).unwrap();
        assert_eq!(
            (named.api.plural.as_str(), named.api.version.as_str()),
            ("imagepolicies", "v1beta2")
        );
    }

    #[test]
    fn one_object_that_fails_does_not_keep_the_others_asleep() {
        let found = ["a", "b", "c", "d"].map(|name| {
            let labels = if name == "b" {
                json!({})
            } else {
                json!({"team": name})
            };
            let object = json!({"metadata": {"name": name, "labels": labels}});
            serde_json::from_value(object).unwrap()
        });
        let filter = Filter::parse("res.metadata.labels['team'] != 'c'", false).unwrap();
        let place = place(
            json!({"kind": "Bucket", "name": "*", "matchLabels": {"x": "y"}}),
            true,
        )
        .unwrap();
        let Sifted { names, failures } = place.sift(&found, &filter, &Called::default());
        assert_eq!(names, ["a", "d"]);
        let told = summary(&failures).unwrap();
        assert!(
            told.starts_with("b: failed to evaluate the CEL expression"),
            "{told}"
        );
    }

    #[test]
    fn failures_are_told_by_name_with_the_first_problem() {
        let failures = |count: u32| -> Vec<Failure> {
            let failure = |number: u32| Failure {
                name: format!("app-{number}"),
                problem: format!("problem {number}"),
            };
            (0..count).map(failure).collect()
        };
        assert_eq!(summary(&failures(0)), None);
        assert_eq!(summary(&failures(2)).unwrap(), "app-0, app-1: problem 0");
        let many = summary(&failures(15)).unwrap();
        assert!(many.ends_with("app-9 and 5 more: problem 0"), "{many}");
    }

    #[test]
    fn what_cannot_be_found_is_refused_in_the_words_of_flux() {
        for (resource, message) in [
            (
                json!({"kind": "Kustomization", "name": "a"}),
                "apiVersion must be specified for kind \"Kustomization\"",
            ),
            (
                json!({"kind": "Bucket", "name": "*"}),
                "matchLabels field not set when using wildcard '*' as name",
            ),
            (
                json!({"kind": "Bucket", "name": "a", "namespace": "other"}),
                "cross-namespace references are not allowed",
            ),
            (
                json!({"kind": "Bucket", "name": "*", "matchLabels": {"a": "b,c=d"}}),
                "matchLabels has no valid label at \"a\"",
            ),
            (
                json!({"kind": "Bucket", "name": "../a"}),
                "invalid resource name \"../a\": [may not contain '/']",
            ),
        ] {
            assert_eq!(place(resource, true), Err(message.to_owned()));
        }
        let other = json!({"kind": "Bucket", "name": "*", "namespace": "other", "matchLabels": {"a.b/c": "d", "e": ""}});
        let other = place(other, false).unwrap();
        assert_eq!(
            (other.namespace.as_str(), other.labels.as_str()),
            ("other", "a.b/c=d,e=")
        );
    }
}
