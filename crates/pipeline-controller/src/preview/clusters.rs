//! The clusters with which a pull request is compared, as the account of the Preview.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::delivery::{Preview, PreviewCluster};
use api::source::GitRepository;
use cluster_access::targets::Placement;
use delivery_diff::{Archives, Reader, Section, Subject, World};
use delivery_graph::{kind, object};
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use manifest::ObjectId;
use merge_preview::{ClusterFindings, Files, Merged};
use serde_json::Value;

use super::helpers::{OwnAccounts, TemporarySources};
use super::repositories::Group;
use crate::context::Context;
use crate::place::branch_of;

/// Objects of a kind that are listed at once.
const PAGE: u32 = 500;

/// The files that are compared.
pub(super) struct Content {
    pub(super) merged: Arc<Merged>,
    pub(super) place: String,
    /// Whether a stranger wrote some of them.
    pub(super) is_fork: bool,
}

/// Compares with each cluster; says which files change, too.
pub(super) async fn compare(
    object: &Preview,
    group: &Group,
    content: &Content,
    context: &Context,
) -> (Vec<ClusterFindings>, BTreeSet<String>) {
    let here = [PreviewCluster::default()];
    let clusters = match object.spec.clusters.as_slice() {
        [] => &here[..],
        clusters => clusters,
    };
    let (mut all, mut changed) = (Vec::new(), BTreeSet::new());
    for cluster in clusters {
        let looking = Looking {
            object,
            group,
            content,
            context,
        };
        let sections = looking.look(cluster, &mut changed).await;
        all.push(ClusterFindings {
            name: cluster.name.clone(),
            sections,
        });
    }
    (all, changed)
}

struct Looking<'a> {
    object: &'a Preview,
    group: &'a Group,
    content: &'a Content,
    context: &'a Context,
}

impl Looking<'_> {
    async fn look(
        &self,
        cluster: &PreviewCluster,
        changed: &mut BTreeSet<String>,
    ) -> Result<Vec<Section>, String> {
        let namespace = self.object.namespace().unwrap_or_default();
        let is_here = cluster.kube_config.is_none();
        let placement = Placement {
            namespace: &namespace,
            // In another cluster the kubeconfig says who asks.
            service_account: is_here.then_some(self.object.spec.service_account_name.as_str()),
            kube_config: cluster.kube_config.as_ref(),
        };
        let target = self.context.remotes.target(placement).await;
        let client = target.map_err(|error| error_chain::chain(&error))?.client.clone();
        let sources = self.sources(&client, is_here.then_some(&namespace)).await?;
        let temporary = Arc::new(TemporarySources::new(
            client.clone(),
            self.object.uid().unwrap_or_default(),
        ));
        let compared = self
            .compare(&client, is_here, (sources, &temporary), changed)
            .await;
        temporary.clear().await;
        compared
    }

    async fn compare(
        &self,
        client: &Client,
        is_here: bool,
        (sources, temporary): (Vec<GitRepository>, &Arc<TemporarySources>),
        changed: &mut BTreeSet<String>,
    ) -> Result<Vec<Section>, String> {
        let namespace = self.object.namespace().unwrap_or_default();
        let mut sections = Vec::new();
        for source in sources {
            let id = git_repository(&source)?;
            if let Some(why) = incomplete(&source) {
                let error = Some(why.to_owned());
                sections.push(Section {
                    error,
                    ..Section::new(id.to_string(), None)
                });
                continue;
            }
            let (merged, place) = (self.content.merged.clone(), self.content.place.clone());
            let (spec, of) = (source.spec.clone(), id.clone());
            let reading = tokio::task::spawn_blocking(move || {
                Files::new(merged, (spec.ignore.as_deref(), &spec.sparse_checkout), of, place)
            });
            let files = reading.await.map_err(|error| error.to_string())?;
            let files = files.map_err(|error| error_chain::chain(&error))?;
            if files.changed().is_empty() {
                continue;
            }
            changed.extend(files.changed().iter().cloned());
            let roots = roots(client, &id, &namespace).await?;
            let archives = match is_here {
                true => self.context.previews.archives.clone(),
                false => Archives::Services,
            };
            let mut world = World::new(Reader::new(client.clone()), Box::new(files));
            (world.archives, world.is_for_strangers) = (archives, true);
            if !self.content.is_fork {
                world.fetcher = Some(temporary.clone());
            }
            if is_here {
                world.accounts = Some(Box::new(OwnAccounts {
                    remotes: self.context.remotes.clone(),
                    namespace: namespace.clone(),
                    is_fork: self.content.is_fork,
                }));
            }
            // Builds and templates take their time; others must not wait for them.
            let runtime = tokio::runtime::Handle::current();
            // Who waits for it no more, since the time is over, has it end as well.
            let (_waiting, given_up) = tokio::sync::oneshot::channel::<()>();
            let comparing = tokio::task::spawn_blocking(move || {
                let compared = delivery_diff::compare(&mut world, roots, true, |_| {});
                runtime.block_on(async {
                    tokio::select! {
                        sections = compared => sections,
                        _ = given_up => Vec::new(),
                    }
                })
            });
            sections.extend(comparing.await.map_err(|error| error.to_string())?);
        }
        Ok(sections)
    }

    /// The GitRepositories of a cluster that have the files.
    async fn sources(&self, client: &Client, own: Option<&String>) -> Result<Vec<GitRepository>, String> {
        let resource = kind::exact("GitRepository").ok_or("it is a kind")?.resource();
        let (namespace, name) = (own.map(String::as_str), "GitRepositories");
        let found = list(client, &resource, namespace).await;
        let found =
            found.map_err(|error| format!("failed to list {name}: {}", error_chain::chain(&error)))?;
        let sources = found
            .into_iter()
            .filter_map(|value| serde_json::from_value(value).ok());
        let is_it = |source: &GitRepository| match own {
            Some(_) => self.group.names.contains(&source.name_any()),
            None => source.spec.url == self.group.url && branch_of(source) == Some(&*self.group.branch),
        };
        Ok(sources.filter(is_it).collect())
    }
}

fn git_repository(source: &GitRepository) -> Result<ObjectId, String> {
    let kind = kind::exact("GitRepository").ok_or("it is a kind")?;
    Ok(kind.id(&source.namespace().unwrap_or_default(), &source.name_any()))
}

/// Why the artifact of a source has more than the files of the repository.
fn incomplete(source: &GitRepository) -> Option<&'static str> {
    if source.spec.recurse_submodules {
        return Some("its submodules are not fetched for a preview");
    }
    let includes = !source.spec.include.is_empty();
    includes.then_some("the artifacts that it includes are not fetched for a preview")
}

/// What is built from a source: of all namespaces, or of that of the Preview if the account may not list the others.
async fn roots(client: &Client, source: &ObjectId, own: &str) -> Result<Vec<Subject>, String> {
    let mut roots = Vec::new();
    for name in ["Kustomization", "HelmRelease"] {
        let resource = kind::exact(name).ok_or("it is a kind")?.resource();
        let found = match list(client, &resource, None).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                list(client, &resource, Some(own)).await
            }
            found => found,
        };
        let found = match found {
            // A cluster may have no releases at all.
            Err(kube::Error::Api(status)) if status.is_not_found() => Vec::new(),
            Err(error) => {
                return Err(format!(
                    "failed to list {}: {}",
                    resource.plural,
                    error_chain::chain(&error)
                ));
            }
            Ok(found) => found,
        };
        let is_built = |object: &Value| delivery_diff::source_of(object).is_some_and(|of| of == *source);
        roots.extend(found.into_iter().filter(is_built));
    }
    roots.sort_by_key(|object| object::id(object).to_string());
    Ok(delivery_diff::parents_first(roots)
        .into_iter()
        .map(Subject::root)
        .collect())
}

async fn list(
    client: &Client,
    resource: &kube::core::ApiResource,
    namespace: Option<&str>,
) -> kube::Result<Vec<Value>> {
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let mut page = ListParams::default().limit(PAGE);
        page.continue_token = after.take();
        let found = api.list(&page).await?;
        for object in found.items {
            let mut value = serde_json::to_value(object).unwrap_or_default();
            value["apiVersion"] = resource.api_version.clone().into();
            value["kind"] = resource.kind.clone().into();
            all.push(value);
        }
        match found.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => after = Some(token),
            None => return Ok(all),
        }
    }
}
