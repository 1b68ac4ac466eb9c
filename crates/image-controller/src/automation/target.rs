//! What an automation works on: the repository, what is checked out, and where commits go.

use std::time::Duration;

use api::image::{GitSpec, ImageUpdateAutomation};
use api::source::{GitRepository, GitRepositoryRef, Source as _};
use controller_kit::{ObjectKey, access_from};
use git_client::sparse::Sparse;
use remote_access::git::{self, Remotes, Ways};
use tokio::time::Instant;
use yaml_setters::is_yaml;

use super::kept::Place;
use crate::context::Context;

/// Why there is nothing to work on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The spec cannot be carried out as it is.
    #[error("{0}: invalid source configuration")]
    Invalid(String),
    /// References between namespaces are locked.
    #[error("can't access 'GitRepository/{0}', cross-namespace references have been blocked")]
    Blocked(ObjectKey),
    /// The owner of the source does not allow it.
    #[error(transparent)]
    Denied(#[from] access_from::Denied),
    /// The source is not there.
    #[error("gitrepositories.source.toolkit.fluxcd.io \"{0}\" not found")]
    NoSource(String),
    /// How it is reached.
    #[error(transparent)]
    Reach(#[from] git::Error),
}

/// What an automation works on.
pub(crate) struct Target {
    pub(crate) remotes: Remotes,
    /// Of one phase: fetch or push.
    pub(crate) timeout: Duration,
    pub(crate) checkout: GitRepositoryRef,
    /// Branch that commits are pushed to.
    pub(crate) branch: String,
    /// Reference of a second push.
    pub(crate) second: Option<String>,
    pub(crate) options: Vec<String>,
    /// Folders and files whose YAML is needed; none is the whole repository.
    pub(crate) part: Vec<String>,
}

impl Target {
    /// Where the commit is kept between two runs.
    pub(super) fn place(&self, object: &ImageUpdateAutomation) -> Option<Place> {
        Place::new(
            object.metadata.uid.as_deref(),
            self.remotes.url.as_str(),
            &self.branch,
            &self.part,
        )
    }

    /// What is fetched of a commit, if that is not all of it.
    pub(super) fn sparse(&self) -> Option<Sparse> {
        let is_part = !self.part.is_empty();
        is_part.then(|| Sparse::new(&self.part).files(is_yaml))
    }

    /// Returns whether commits go to another branch than what is checked out.
    pub(crate) fn switches(&self) -> bool {
        let GitRepositoryRef {
            branch,
            tag,
            semver,
            name,
            commit,
        } = &self.checkout;
        branch.as_deref() != Some(&*self.branch)
            || [tag, semver, name, commit].into_iter().any(Option::is_some)
    }
}

impl Target {
    /// Aims at the branch that is checked out, for pull requests to it.
    pub(crate) fn propose(&mut self, object: &ImageUpdateAutomation) -> Result<(), Error> {
        let push = object.spec.git.as_ref().and_then(|git| git.push.as_ref());
        let branch = self.checkout.branch.clone();
        let invalid = |problem: &str| Err(Error::Invalid(problem.to_owned()));
        if push.is_some_and(|push| push.refspec.is_some()) {
            return invalid(
                "spec.git.push.refspec cannot be used with a ChangePolicy that opens pull requests",
            );
        }
        if push.is_some_and(|push| push.branch.is_some() && push.branch != branch) {
            return invalid(
                "spec.git.push.branch cannot be used with a ChangePolicy that opens pull requests: set the branch in \
                 spec.pullRequest.branch there",
            );
        }
        let Some(branch) = branch else {
            return invalid(
                "pull requests need a branch in .spec.git.checkout.ref or in .spec.ref of the GitRepository",
            );
        };
        self.branch = branch;
        if self.switches() {
            return invalid(
                "pull requests go to a branch: .spec.git.checkout.ref or .spec.ref must name nothing else",
            );
        }
        Ok(())
    }
}

/// The key of the source.
pub(crate) fn source_of(object: &ImageUpdateAutomation) -> ObjectKey {
    let reference = &object.spec.source_ref;
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    ObjectKey::new(reference.namespace.as_deref().unwrap_or(own), &*reference.name)
}

/// Finds out what the automation works on, with the credentials of its source.
pub(crate) async fn find(object: &ImageUpdateAutomation, context: &Context) -> Result<Target, Error> {
    let key = source_of(object);
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let Some(spec) = &object.spec.git else {
        let problem = "source kind 'GitRepository' necessitates field .spec.git";
        return Err(Error::Invalid(problem.to_owned()));
    };
    if context.no_cross_namespace_refs && key.namespace != own {
        return Err(Error::Blocked(key));
    }
    let source = context.sources.get(&key.object_ref());
    let source = source.ok_or_else(|| Error::NoSource(key.name.clone()))?;
    let annotations = source.metadata.annotations.as_ref();
    let allowed = annotations.and_then(|annotations| annotations.get(access_from::ANNOTATION));
    access_from::check(allowed.map(String::as_str), own, &key.namespace)?;
    let (checkout, branch) = branches(spec, &source)?;
    let second = spec.push.as_ref().and_then(|push| push.refspec.as_deref());
    let second = second.map(|refspec| destination(refspec, &branch)).transpose()?;
    let options = spec.push.iter().flat_map(|push| &push.options);
    let options = options.map(|(key, value)| match value.as_str() {
        "" => key.clone(),
        value => format!("{key}={value}"),
    });
    let options = options.collect();
    if let Some(error) = git::refusal(&source) {
        return Err(error.into());
    }
    let reader = context.reader(&key.namespace);
    let references = git::read(&source, &reader).await?;
    let timeout = source.timeout().to_std();
    let ways = Ways {
        clients: &context.clients,
        identities: &context.identities,
        ssh_algorithms: &context.ssh_algorithms,
        deadline: Instant::now() + timeout,
    };
    Ok(Target {
        remotes: git::remotes(&source, &references, ways).await?,
        timeout,
        checkout,
        branch,
        second,
        options,
        part: Vec::new(),
    })
}

/// What is checked out, and the branch that commits are pushed to.
fn branches(spec: &GitSpec, source: &GitRepository) -> Result<(GitRepositoryRef, String), Error> {
    let own = spec.checkout.as_ref().map(|checkout| checkout.reference.clone());
    let checkout = own.or_else(|| source.spec.reference.clone());
    let pushed = spec.push.as_ref().and_then(|push| push.branch.clone());
    let branch = match (pushed, &checkout) {
        (Some(branch), _) => branch,
        (None, None) => {
            let problem = "push spec not provided, and cannot be inferred from .spec.git.checkout.ref or GitRepository .spec.ref";
            return Err(Error::Invalid(problem.to_owned()));
        }
        (None, Some(checkout)) => checkout.branch.clone().ok_or_else(|| {
            Error::Invalid(
                "push branch not provided, and cannot be inferred from the checkout reference".to_owned(),
            )
        })?,
    };
    Ok((checkout.unwrap_or_default(), branch))
}

/// Where a refspec pushes the branch.
fn destination(refspec: &str, branch: &str) -> Result<String, Error> {
    let refused = |problem: &str| Err(Error::Invalid(format!("push refspec {problem}: '{refspec}'")));
    if refspec.starts_with('+') {
        return refused("must not specify a force update");
    }
    let (from, to) = refspec.split_once(':').unwrap_or((refspec, refspec));
    if from.is_empty() {
        return refused("must not specify a deletion");
    }
    let is_branch = from == "HEAD" || from.strip_prefix("refs/heads/").unwrap_or(from) == branch;
    if !is_branch {
        return refused("must push the branch that the commit is made on");
    }
    Ok(if to.starts_with("refs/") {
        to.to_owned()
    } else {
        format!("refs/heads/{to}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn branch(git: Value, source: Value) -> Result<String, String> {
        let git = serde_json::from_value(git).unwrap();
        let source = serde_json::from_value(json!({"metadata": {}, "spec": source})).unwrap();
        branches(&git, &source)
            .map(|(_, branch)| branch)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_branch_is_the_first_that_is_named() {
        let commit = json!({"author": {"email": "a@b"}});
        let source = json!({"url": "https://h/r", "interval": "1m", "ref": {"branch": "main"}});
        let bare = json!({"url": "https://h/r", "interval": "1m"});
        let git = |more: Value| {
            let mut git = json!({"commit": commit});
            git.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            git
        };
        assert_eq!(branch(git(json!({})), source.clone()).unwrap(), "main");
        assert_eq!(
            branch(
                git(json!({"checkout": {"ref": {"branch": "dev"}}})),
                source.clone()
            )
            .unwrap(),
            "dev"
        );
        assert_eq!(
            branch(git(json!({"push": {"branch": "auto"}})), source.clone()).unwrap(),
            "auto"
        );
        assert!(
            branch(git(json!({})), bare)
                .unwrap_err()
                .contains("cannot be inferred from .spec.git.checkout.ref")
        );
        let tag = json!({"checkout": {"ref": {"tag": "v1"}}});
        assert!(
            branch(git(tag), source)
                .unwrap_err()
                .contains("push branch not provided")
        );
    }

    #[test]
    fn a_refspec_neither_forces_nor_deletes() {
        let to = |refspec| destination(refspec, "auto").map_err(|error| error.to_string());
        assert_eq!(to("refs/heads/auto:refs/for/main").unwrap(), "refs/for/main");
        assert_eq!(to("auto:other").unwrap(), "refs/heads/other");
        assert_eq!(to("HEAD:refs/heads/x").unwrap(), "refs/heads/x");
        for (refspec, problem) in [
            ("+auto:x", "force update"),
            (":x", "deletion"),
            ("main:x", "the branch that the commit is made on"),
        ] {
            assert!(to(refspec).unwrap_err().contains(problem), "{refspec}");
        }
    }
}
