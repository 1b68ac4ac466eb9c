//! Pipelines of Weave GitOps (ADR 21): the objects that are made of one, and what of their status it shows.
//!
//! In: a Pipeline of `pipelines.weave.works`, a tenant's text, and the clusters that it names. Out: the specs of a Pipeline of ours,
//! of ChangePolicies and of GitRepositories, by name.

use std::collections::BTreeMap;

use api::delivery::{
    self, AppKind, AppReference, Approvals, Carried, ChangeKind, ChangePolicySpec, Environment,
    ForgeProvider, ForgeSpec, PipelineSpec, PipelineStatus, PullRequestSpec, Target,
};
use api::meta::{Duration, KubeConfigReference, LocalObjectReference, SecretKeyReference};
use api::source::{GitRepositoryRef, GitRepositorySpec};
use api::weave::{
    ClusterApplicationReference, ClusterReference, EnvironmentStatus, GitProvider, GitopsCluster, Pipeline,
    PullRequestStrategy, TargetStatus, WaitingApproval,
};
use jiff::Timestamp;

use crate::board::{Need, board};
use crate::values::{Field, key};

/// Annotation of a Pipeline of Weave GitOps: `spec.serviceAccountName` of the one that is made of it.
pub const SERVICE_ACCOUNT: &str = "delivery.windlass.dev/service-account";
/// As many as a Pipeline of ours may have: objects are made for each.
const MAX_ENVIRONMENTS: usize = 50;
/// The GitRepositories are not fetched, so it is never used.
const INTERVAL: Duration = Duration::from_nanos(3_600_000_000_000);

/// What is made of a Pipeline.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Children {
    /// The Pipeline of ours, which has the same name.
    pub pipeline: PipelineSpec,
    /// ChangePolicies, by name.
    pub policies: BTreeMap<String, ChangePolicySpec>,
    /// GitRepositories, by name. They are suspended: only pushes are made with them.
    pub repositories: BTreeMap<String, GitRepositorySpec>,
}

/// Returns the Secret with the kubeconfig of a cluster.
#[must_use]
pub fn kubeconfig(cluster: &GitopsCluster) -> Option<String> {
    let spec = &cluster.spec;
    let own = spec.secret_ref.as_ref().map(|secret| secret.name.clone());
    let of_cluster_api = spec.capi_cluster_ref.as_ref();
    own.or_else(|| of_cluster_api.map(|cluster| format!("{}-kubeconfig", cluster.name)))
}

/// Returns the names of the clusters that a Pipeline names in its own namespace.
pub fn clusters(pipeline: &Pipeline) -> impl Iterator<Item = &str> {
    references(pipeline).map(|cluster| cluster.name.as_str())
}

fn references(pipeline: &Pipeline) -> impl Iterator<Item = &ClusterReference> {
    let environments = pipeline.spec.environments.iter();
    let targets = environments.flat_map(|environment| &environment.targets);
    targets.filter_map(|target| target.cluster_ref.as_ref())
}

/// Returns what is made of a Pipeline. `secret` gives the Secret with the kubeconfig of a cluster, None for one that is not there.
///
/// # Errors
/// Why nothing can be made of it.
pub fn children(pipeline: &Pipeline, secret: impl Fn(&str) -> Option<String>) -> Result<Children, String> {
    let own = pipeline.metadata.namespace.as_deref().unwrap_or_default();
    let name = pipeline.metadata.name.as_deref().unwrap_or_default();
    let spec = &pipeline.spec;
    if spec.environments.len() > MAX_ENVIRONMENTS {
        let count = spec.environments.len();
        return Err(format!(
            "it has {count} environments, and may have {MAX_ENVIRONMENTS}"
        ));
    }
    let app = app(pipeline).ok_or_else(|| {
        let (kind, version) = (&spec.app_ref.kind, &spec.app_ref.api_version);
        format!("spec.appRef: {kind} of {version} is not promoted; a HelmRelease or a Kustomization is")
    })?;
    let is_elsewhere = |cluster: &&ClusterReference| {
        let namespace = cluster.namespace.as_deref().unwrap_or_default();
        !namespace.is_empty() && namespace != own
    };
    if let Some(cluster) = references(pipeline).find(is_elsewhere) {
        return Err(format!(
            "the GitopsCluster '{}' must be in the namespace of the pipeline",
            cluster.name
        ));
    }
    let mut made = Children::default();
    let annotations = pipeline.metadata.annotations.as_ref();
    let mut environments = Vec::new();
    for (at, environment) in spec.environments.iter().enumerate() {
        let promotion = environment.promotion.as_ref();
        let (child, promotion) = match promotion {
            Some(own) => (format!("{name}.{}", environment.name), Some(own)),
            None => (name.to_owned(), spec.promotion.as_ref()),
        };
        let is_first = at == 0;
        let way = match promotion.and_then(|promotion| promotion.strategy.pull_request.as_ref()) {
            _ if is_first => None,
            Some(strategy) => {
                made.policies.insert(child.clone(), by_pull_request(strategy));
                made.repositories.insert(child.clone(), repository(strategy));
                Some((child.clone(), Some(child)))
            }
            // Without a strategy nothing changes files either.
            None => {
                made.policies.insert(child.clone(), by_event());
                Some((child, None))
            }
        };
        let (policy, repository) = way.unzip();
        let reference = |name: String| LocalObjectReference { name };
        environments.push(Environment {
            name: environment.name.clone(),
            targets: environment
                .targets
                .iter()
                .map(|target| Target {
                    name: None,
                    namespace: Some(target.namespace.clone()),
                    kube_config: target
                        .cluster_ref
                        .as_ref()
                        .map(|cluster| by_secret(cluster, &secret)),
                })
                .collect(),
            change_policy_ref: policy.map(reference),
            repository_ref: repository.flatten().map(reference),
            approvals: promotion
                .filter(|promotion| promotion.manual && !is_first)
                .map(|_| Approvals {
                    required: 1,
                    ..Approvals::default()
                }),
            ..Environment::default()
        });
    }
    made.pipeline = PipelineSpec {
        carry: match app.kind {
            AppKind::HelmRelease => vec![Carried::ChartVersion],
            _ => Vec::new(),
        },
        apps: vec![app],
        environments,
        service_account_name: annotations.and_then(|all| all.get(SERVICE_ACCOUNT)).cloned(),
        ..PipelineSpec::default()
    };
    Ok(made)
}

fn app(pipeline: &Pipeline) -> Option<AppReference> {
    let reference = &pipeline.spec.app_ref;
    let group = reference.api_version.split_once('/').map(|(group, _)| group);
    let kinds = [AppKind::HelmRelease, AppKind::Kustomization];
    let kind = kinds
        .into_iter()
        .find(|kind| kind.as_str() == reference.kind && group == Some(kind.group()))?;
    Some(AppReference {
        kind,
        name: reference.name.clone(),
        selector: None,
    })
}

/// A cluster that is not there is a target that cannot be read: what the others do does not depend on it.
fn by_secret(cluster: &ClusterReference, secret: &impl Fn(&str) -> Option<String>) -> KubeConfigReference {
    let missing = || format!("gitopscluster.{}", cluster.name);
    KubeConfigReference {
        config_map_ref: None,
        secret_ref: Some(SecretKeyReference {
            name: secret(&cluster.name).unwrap_or_else(missing),
            key: None,
        }),
    }
}

fn by_event() -> ChangePolicySpec {
    ChangePolicySpec {
        kind: ChangeKind::Event,
        ..ChangePolicySpec::default()
    }
}

fn by_pull_request(strategy: &PullRequestStrategy) -> ChangePolicySpec {
    ChangePolicySpec {
        kind: ChangeKind::PullRequest,
        pull_request: Some(PullRequestSpec {
            forge: ForgeSpec {
                provider: match strategy.provider {
                    GitProvider::GitHub => ForgeProvider::GitHub,
                    GitProvider::GitLab => ForgeProvider::GitLab,
                    GitProvider::Gitea => ForgeProvider::Gitea,
                    GitProvider::BitbucketServer => ForgeProvider::BitbucketServer,
                    GitProvider::AzureDevops => ForgeProvider::AzureDevOps,
                },
                url: Some(strategy.url.clone()),
                secret_ref: strategy.secret_ref.clone(),
                proxy_secret_ref: None,
            },
            ..PullRequestSpec::default()
        }),
        windows: Vec::new(),
    }
}

fn repository(strategy: &PullRequestStrategy) -> GitRepositorySpec {
    GitRepositorySpec {
        url: strategy.url.clone(),
        secret_ref: Some(strategy.secret_ref.clone()),
        interval: INTERVAL,
        reference: Some(GitRepositoryRef {
            branch: Some(strategy.base_branch.clone()),
            ..GitRepositoryRef::default()
        }),
        suspend: true,
        ..GitRepositorySpec::default()
    }
}

/// Returns the environments as Weave's clients show them, by the Pipeline that was made of it.
#[must_use]
pub fn environments(
    pipeline: &Pipeline,
    made: &delivery::Pipeline,
    now: Timestamp,
) -> BTreeMap<String, EnvironmentStatus> {
    let nothing = PipelineStatus::default();
    let status = made.status.as_ref().unwrap_or(&nothing);
    let columns = board(made, now).columns;
    let named = |name: &String, seen: &&delivery::EnvironmentStatus| seen.name == *name;
    let environments = pipeline.spec.environments.iter();
    let shown = environments.map(|environment| {
        let name = &environment.name;
        let seen = status.environments.iter().find(|seen| named(name, seen));
        let targets = environment.targets.iter().enumerate().map(|(at, target)| {
            let seen = seen.and_then(|seen| seen.targets.get(at));
            TargetStatus {
                cluster_app_ref: ClusterApplicationReference {
                    api_version: pipeline.spec.app_ref.api_version.clone(),
                    cluster_ref: target.cluster_ref.clone(),
                    kind: pipeline.spec.app_ref.kind.clone(),
                    name: pipeline.spec.app_ref.name.clone(),
                },
                error: seen.and_then(|seen| seen.message.clone()),
                ready: seen.is_some_and(|seen| seen.ready),
                revision: seen.and_then(|seen| revision(pipeline, status, seen.release?)),
            }
        });
        let column = columns.iter().find(|column| column.name == *name);
        let waiting = match column.and_then(|column| column.needs_people.as_ref()) {
            Some(Need::Approval { release, .. }) => revision(pipeline, status, *release),
            _ => None,
        };
        let shown = EnvironmentStatus {
            targets: targets.collect(),
            waiting_approval: waiting.map(|revision| WaitingApproval { revision }),
        };
        (name.clone(), shown)
    });
    shown.collect()
}

/// The revision of a release, as people name it: the version of the chart, or the number of the release.
#[must_use]
pub fn revision(pipeline: &Pipeline, status: &PipelineStatus, release: u64) -> Option<String> {
    let app = app(pipeline)?;
    let known = status.releases.iter().find(|known| known.number == release)?;
    let version = known.values.get(&key(&app, &Field::Chart)).cloned();
    Some(version.unwrap_or_else(|| format!("release {release}")))
}

/// Returns why nothing goes on from one of the environments, in Weave's words.
#[must_use]
pub fn pending(status: &PipelineStatus) -> Option<&'static str> {
    let (_, before_last) = status.environments.split_last()?;
    let unready = |environment: &delivery::EnvironmentStatus| {
        if environment.release.is_none() {
            return Some("Waiting for all targets to have the same revision");
        }
        let is_unready = environment.targets.iter().any(|target| !target.ready);
        is_unready.then_some("Waiting for all targets to be ready")
    };
    before_last.iter().find_map(unready)
}

#[cfg(test)]
mod tests;
