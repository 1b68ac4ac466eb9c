//! A change that is taken back in Git: the two commits, and the files that become what they were.

use std::sync::Arc;

use api::delivery::Revert as Spec;
use api::kustomize::Kustomization;
use controller_kit::ObjectKey;
use flux_spec::build::path::{clamp, join};
use forge::markdown::code;
use git_client::pack::Pack;
use git_writer::branch;
use kube::Api;
use manifest_edit::is_open;
use merge_preview::{Scope, Tree};
use promotion::manifests::Edited;

use crate::edit::{self, Changed};
use crate::site::Site;

/// Why the commits are not there.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// It names no commit.
    #[error("revert: '{0}' is not the revision of a commit")]
    Revision(String),
    /// The path is not one that is written to.
    #[error(
        "revert: '{0}' must be relative to the repository, without '..', without hidden files or folders, and no file of a CI service"
    )]
    Path(String),
    /// The Kustomization cannot be read.
    #[error("failed to read the Kustomization {key}")]
    Read {
        /// The Kustomization.
        key: ObjectKey,
        /// The error.
        #[source]
        source: Box<kube::Error>,
    },
    /// The fetch.
    #[error("failed to fetch the revision {revision}")]
    Fetch {
        /// The revision.
        revision: String,
        /// The error.
        #[source]
        source: Box<branch::Error>,
    },
    /// Its files cannot be listed.
    #[error("failed to list the files of the revision {revision}: {problem}")]
    List {
        /// The revision.
        revision: String,
        /// The problem.
        problem: String,
    },
}

impl Error {
    /// Whether only people can help.
    pub(super) fn is_theirs(&self) -> bool {
        match self {
            Self::Revision(_) | Self::Path(_) => true,
            Self::Fetch { source, .. } => {
                use git_client::Error::NotOnBranch;
                matches!(&**source, branch::Error::Fetch(NotOnBranch { .. }))
            }
            Self::Read { .. } | Self::List { .. } => false,
        }
    }
}

/// Two commits, and which of their files matter.
pub(super) struct Revert {
    good: Arc<Tree>,
    bad: Arc<Tree>,
    scope: Scope,
    from: String,
    to: String,
}

/// Fetches the names of the files of both commits.
pub(super) async fn fetch(
    spec: &Spec,
    kustomization: &ObjectKey,
    folder: &str,
    site: &Site<'_>,
) -> Result<Revert, Error> {
    let scope = match &spec.path {
        Some(path) if is_open(path) => Scope::File(path.clone()),
        Some(path) => return Err(Error::Path(path.clone())),
        None => Scope::Built(folders(kustomization, folder, site).await?),
    };
    Ok(Revert {
        good: tree(&spec.to, site).await?,
        bad: tree(&spec.from, site).await?,
        scope,
        from: spec.from.clone(),
        to: spec.to.clone(),
    })
}

/// The folders that the Kustomization names.
async fn folders(key: &ObjectKey, folder: &str, site: &Site<'_>) -> Result<Vec<String>, Error> {
    let api: Api<Kustomization> = Api::namespaced(site.context.client.clone(), &key.namespace);
    let found = api.get(&key.name).await.map_err(|source| Error::Read {
        key: key.clone(),
        source: Box::new(source),
    })?;
    let components = found
        .spec
        .components
        .iter()
        .map(|path| clamp(&join(folder, path)));
    Ok([folder.to_owned()].into_iter().chain(components).collect())
}

async fn tree(revision: &str, site: &Site<'_>) -> Result<Arc<Tree>, Error> {
    let commit = revision.rsplit_once("sha1:").map(|(_, commit)| commit);
    let commit = commit.ok_or_else(|| Error::Revision(revision.to_owned()))?;
    let pack = site.fetch_commit(commit).await.map_err(|source| Error::Fetch {
        revision: revision.to_owned(),
        source: Box::new(source),
    })?;
    let failed = |problem| Error::List {
        revision: revision.to_owned(),
        problem,
    };
    let listing = tokio::task::spawn_blocking(move || Tree::read(pack)).await;
    let listed = listing.map_err(|error| failed(error.to_string()))?;
    listed
        .map(Arc::new)
        .map_err(|error| failed(error_chain::chain(&error)))
}

impl Revert {
    /// Takes it back in the files of a commit.
    pub(super) fn edit(&self, pack: &Pack) -> Result<Changed, edit::Error> {
        let now = Tree::read(pack.clone())?;
        let restored = merge_preview::revert(&now, (&self.good, &self.bad), &self.scope, is_open)?;
        Ok(Changed {
            edited: Edited::default(),
            restored,
        })
    }

    /// What the pull request says of it.
    pub(super) fn text(&self) -> String {
        format!(
            "It takes back what changed from {} to {}.\n\n",
            code(&self.to),
            code(&self.from)
        )
    }
}
