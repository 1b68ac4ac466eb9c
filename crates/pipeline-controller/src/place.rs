//! Where the manifest of an application is: from the application to the Kustomization that applied it, its repository and path.
//!
//! The labels of an application are its owner's: they are taken only if the Kustomization's inventory has the application.

use std::sync::Arc;

use api::delivery::{AppReference, Pipeline};
use api::kustomize::Kustomization;
use api::source::{GitRepository, OCIRepository, Source as _};
use controller_kit::{ObjectKey, access_from, check_name};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, ResourceExt as _};
use remote_access::error::ReadError;
use remote_access::git::{self, Remotes, Ways};
use tokio::time::Instant;

use crate::app::App;
use crate::context::Context;
use crate::edit::Task;
use crate::observe::Looked;

/// Why the manifest cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No Kustomization has applied it.
    #[error("{0} was not applied by a Kustomization: there is no file to change")]
    NotApplied(String),
    /// Its labels name one that has not.
    #[error("the labels of {app} name the Kustomization {owner}, which has not applied it")]
    NotTheOwner {
        /// The application.
        app: String,
        /// The Kustomization.
        owner: ObjectKey,
    },
    /// The repository of another cluster is not known here.
    #[error("{0} is in another cluster: set .spec.repositoryRef to the GitRepository that has its manifests")]
    NoRepositoryRef(String),
    /// The other cluster.
    #[error("failed to read the Kustomization {owner}: {problem}")]
    Cluster {
        /// The Kustomization.
        owner: ObjectKey,
        /// Why.
        problem: String,
    },
    /// The source is no repository.
    #[error(
        "the Kustomization {owner} is built from {kind}/{name}: changes can be made in a GitRepository only"
    )]
    NoRepository {
        /// The Kustomization.
        owner: ObjectKey,
        /// Kind of its source.
        kind: String,
        /// Name of its source.
        name: String,
    },
    /// The owner of the repository does not allow it.
    #[error(
        "the GitRepository {repository} is in another namespace: set .spec.repositoryRef, or have its owner list the namespace \
         '{namespace}' in the annotation {}",
        access_from::ANNOTATION
    )]
    NotAllowed {
        /// The repository.
        repository: ObjectKey,
        /// The namespace of the pipeline.
        namespace: String,
    },
    /// No namespace is called so.
    #[error("{0}")]
    Name(String),
    /// The repository cannot be read.
    #[error("GitRepository {0}")]
    Read(ObjectKey, #[source] Box<ReadError>),
    /// There is no branch to push to.
    #[error("the GitRepository {0} must follow a branch, and nothing else, in .spec.ref")]
    NoBranch(ObjectKey),
    /// The way to the repository.
    #[error(transparent)]
    Reach(#[from] Box<git::Error>),
}

impl From<git::Error> for Error {
    fn from(error: git::Error) -> Self {
        Self::Reach(Box::new(error))
    }
}

/// Where manifests are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The GitRepository by which changes are pushed.
    pub(crate) repository: ObjectKey,
    /// The folder from which the Kustomization is built.
    pub(crate) path: String,
}

/// A repository, to be changed.
pub(crate) struct Repository {
    pub(crate) remotes: Remotes,
    pub(crate) branch: String,
    pub(crate) timeout: std::time::Duration,
}

/// An application in the inventory of a Kustomization.
fn inventory_id(app: &AppReference, namespace: &str) -> String {
    let (kind, group) = (app.kind.as_str(), app.kind.group());
    format!("{namespace}_{}_{group}_{kind}", app.name)
}

/// The revision by which the first of the applications of a target in this cluster was applied that a Kustomization has applied. None while
/// the Kustomization has not applied the newest artifact of its source: then it is not known which of the two the application is of.
pub(crate) async fn revision(apps: &[AppReference], target: &Looked, context: &Context) -> Option<String> {
    for (app, facts) in apps.iter().zip(&target.apps) {
        let Some(owner) = facts.as_ref().and_then(|facts| facts.owner.as_ref()) else {
            continue;
        };
        // What is watched may lag behind the application.
        let Some(built) = live::<Kustomization>(owner, context).await else {
            continue;
        };
        if !built.has_applied(&inventory_id(app, &target.namespace)) {
            continue;
        }
        let facts = built.facts();
        let (kind, key) = facts.source()?;
        let source = match kind.as_str() {
            "GitRepository" => live::<GitRepository>(key, context).await?.facts(),
            "OCIRepository" => live::<OCIRepository>(key, context).await?.facts(),
            _ => return None,
        };
        let revision = built.applied_revision();
        let is_known = !revision.is_empty() && revision == source.artifact();
        return is_known.then(|| revision.to_owned());
    }
    None
}

/// An object as it is now, as far as pipelines care.
async fn live<K>(key: &ObjectKey, context: &Context) -> Option<App<K>>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + 'static,
{
    // Labels and references are a tenant's text, and become a part of a path.
    if check_name(&key.namespace).is_err() || check_name(&key.name).is_err() {
        return None;
    }
    let api: Api<App<K>> = Api::namespaced(context.client.clone(), &key.namespace);
    match api.get_opt(&key.name).await {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!(%error, object = %key, "it is not known which revision a release comes from");
            None
        }
    }
}

/// Finds the folder that has the manifest of an application.
pub(crate) async fn find(
    pipeline: &Pipeline,
    (task, at): (&Task, usize),
    app: &AppReference,
    context: &Context,
) -> Result<Place, Error> {
    let namespace = &task.wanted.namespace;
    let name = || format!("{}/{} in namespace {namespace}", app.kind.as_str(), app.name);
    let owner = task.owners.get(at).cloned().flatten();
    let owner = owner.ok_or_else(|| Error::NotApplied(name()))?;
    let id = inventory_id(app, namespace);
    let named = pipeline.spec.repository_ref(&task.wanted.environment);
    let built = match &task.cluster {
        Some(_) if named.is_none() => {
            return Err(Error::NoRepositoryRef(task.target.clone()));
        }
        Some(cluster) => {
            let found = context.remotes.kustomization(cluster, &owner).await;
            let found = found.map_err(|problem| Error::Cluster {
                owner: owner.clone(),
                problem,
            })?;
            found.map(Arc::new)
        }
        None => context.kustomizations.get(&owner.object_ref()),
    };
    let built = built.filter(|built| built.has_applied(&id));
    let Some(built) = built.map(|built| built.spec()) else {
        return Err(Error::NotTheOwner { app: name(), owner });
    };
    let (kind, of, source) = built.source.clone().unwrap_or_default();
    let own = pipeline.metadata.namespace.as_deref().unwrap_or_default();
    let repository = match (named, kind.as_str()) {
        (Some(named), _) => ObjectKey::new(own, &*named.name),
        (None, "GitRepository") if of.is_empty() => ObjectKey::new(&*owner.namespace, source),
        (None, "GitRepository") => ObjectKey::new(of, source),
        (None, _) => {
            let name = source;
            return Err(Error::NoRepository { owner, kind, name });
        }
    };
    Ok(Place {
        repository,
        path: git_writer::files::cleaned(&built.path),
    })
}

/// The branch that a GitRepository follows; None if it follows something else, or names no branch.
pub(crate) fn branch_of(source: &GitRepository) -> Option<&str> {
    let reference = source.spec.reference.as_ref()?;
    let others = [
        &reference.tag,
        &reference.semver,
        &reference.name,
        &reference.commit,
    ];
    let follows = others.iter().all(|other| other.is_none());
    reference.branch.as_deref().filter(|_| follows)
}

/// Reads a repository that a pipeline of a namespace changes, with the credentials of its GitRepository.
pub(crate) async fn open(key: &ObjectKey, namespace: &str, context: &Context) -> Result<Repository, Error> {
    // Namespaces in references are a tenant's text, and become a part of a path.
    check_name(&key.namespace).map_err(Error::Name)?;
    let reader = context.reader(&key.namespace);
    let source = reader.object::<GitRepository>(&key.name).await;
    let not_allowed = || Error::NotAllowed {
        repository: key.clone(),
        namespace: namespace.to_owned(),
    };
    // Only those who may use it learn whether it exists.
    let source = match source {
        Err(error) if key.namespace == namespace => return Err(Error::Read(key.clone(), Box::new(error))),
        Err(_) => return Err(not_allowed()),
        Ok(source) => source,
    };
    if key.namespace != namespace {
        let list = source
            .annotations()
            .get(access_from::ANNOTATION)
            .map(String::as_str);
        if list.is_none() || access_from::check(list, namespace, &key.namespace).is_err() {
            return Err(not_allowed());
        }
    }
    let branch = branch_of(&source).ok_or_else(|| Error::NoBranch(key.clone()))?;
    let branch = branch.to_owned();
    if let Some(error) = git::refusal(&source) {
        return Err(error.into());
    }
    let references = git::read(&source, &reader).await?;
    let timeout = source.timeout().to_std();
    let ways = Ways {
        clients: &context.clients,
        identities: &context.identities,
        ssh_algorithms: &context.ssh_algorithms,
        deadline: Instant::now() + timeout,
    };
    Ok(Repository {
        remotes: git::remotes(&source, &references, ways).await?,
        branch,
        timeout,
    })
}
