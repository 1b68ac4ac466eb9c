//! For which sources of the cluster the checkout stands.
//!
//! Who names them knows best. Else it is the source of what was named, and all of the same address; or, where nothing was
//! named, those with an address that the checkout has as a remote.

use std::collections::BTreeSet;

use delivery_diff::source_of;
use delivery_graph::kind;
use delivery_graph::object::{self, text};
use manifest::ObjectId;
use serde_json::Value;

use crate::cluster::{Cluster, Failure};

/// The sources that the checkout stands for.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    ids: BTreeSet<ObjectId>,
    /// The `spec.ignore` of the source.
    pub(crate) ignore: Option<String>,
    /// True if submodules are a part of them.
    pub(crate) submodules: bool,
}

impl Sources {
    pub(crate) fn contains(&self, id: &ObjectId) -> bool {
        self.ids.contains(id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Those that were named.
    pub(crate) async fn named(cluster: &Cluster, words: &[String]) -> Result<Self, Failure> {
        let mut sources = Self::default();
        for word in words {
            let id = parse(word, &cluster.namespace)?;
            let found = cluster.need(&id).await?;
            sources.add(id, Some(&found));
        }
        Ok(sources)
    }

    /// The sources of objects, and all of the same address.
    pub(crate) async fn new(cluster: &Cluster, objects: &[Value]) -> Result<Self, Failure> {
        let mut sources = Self::default();
        let mut addresses = BTreeSet::new();
        for id in objects.iter().filter_map(source_of) {
            // Who may not look at it knows at least which it is.
            let found = cluster.get(&id).await.ok().flatten();
            addresses.extend(found.as_ref().and_then(|found| address(text(found, "/spec/url"))));
            sources.add(id, found.as_ref());
        }
        sources
            .extend(cluster, |address| addresses.contains(address))
            .await;
        Ok(sources)
    }

    /// Those that have one of these addresses.
    pub(crate) async fn with_addresses(cluster: &Cluster, remotes: &[String]) -> Self {
        let mut sources = Self::default();
        let remotes: BTreeSet<_> = remotes.iter().filter_map(|remote| address(remote)).collect();
        sources.extend(cluster, |address| remotes.contains(address)).await;
        sources
    }

    /// Adds what else is there; who may not look has what he named.
    async fn extend(&mut self, cluster: &Cluster, is_meant: impl Fn(&str) -> bool) {
        let Some(kind) = kind::exact("GitRepository") else {
            return;
        };
        let namespace = Some(cluster.namespace.as_str());
        let found = match cluster.list(kind, None, None).await {
            Err(Failure::Forbidden { .. }) => cluster.list(kind, namespace, None).await,
            found => found,
        };
        for found in found.ok().flatten().unwrap_or_default() {
            if address(text(&found, "/spec/url")).is_some_and(|address| is_meant(&address)) {
                self.add(object::id(&found), Some(&found));
            }
        }
    }

    fn add(&mut self, id: ObjectId, found: Option<&Value>) {
        let ignore = found.map(|found| text(found, "/spec/ignore"));
        self.ignore = self
            .ignore
            .take()
            .or(ignore.filter(|text| !text.is_empty()).map(str::to_owned));
        self.submodules |=
            found.is_some_and(|found| found.pointer("/spec/recurseSubmodules") == Some(&true.into()));
        self.ids.insert(id);
    }
}

/// Reads `KIND/NAME` and `KIND/NAMESPACE/NAME`.
fn parse(word: &str, namespace: &str) -> Result<ObjectId, Failure> {
    let parts: Vec<_> = word.split('/').collect();
    let (kind, namespace, name) = match parts[..] {
        [kind, name] => (kind, namespace, name),
        [kind, namespace, name] => (kind, namespace, name),
        _ => {
            return Err(Failure::Usage(format!(
                "--source {word:?}: write KIND/NAME or KIND/NAMESPACE/NAME"
            )));
        }
    };
    match kind::named(kind).filter(|kind| kind.is_source()) {
        Some(kind) => Ok(kind.id(namespace, name)),
        None => Err(Failure::Usage(format!("--source: {kind:?} is no kind of source"))),
    }
}

/// Host and path of a repository: the common part of the many ways to write its address.
fn address(url: &str) -> Option<String> {
    let rest = url.split_once("://").map(|(_, rest)| rest);
    let (host, path) = match rest {
        Some(rest) => rest.split_once('/')?,
        // git@host:path
        None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
    };
    let host = host.rsplit('@').next()?;
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    // Ports of ssh and of https differ for one and the same repository.
    let host = match rest {
        Some(_) if !url.starts_with("http") => host.split(':').next()?,
        _ => host,
    };
    (!path.is_empty()).then(|| format!("{}/{path}", host.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_many_addresses() {
        let plain = address("https://Example.com/team/app").unwrap();
        for same in [
            "https://user:word@example.com/team/app.git",
            "ssh://git@example.com:2222/team/app.git",
            "git@example.com:team/app.git",
            "https://example.com/team/app/",
        ] {
            assert_eq!(address(same).as_deref(), Some(plain.as_str()), "{same}");
        }
        for other in [
            "https://example.com/team/app2",
            "/srv/git/app",
            "https://example.com",
        ] {
            assert_ne!(address(other), Some(plain.clone()), "{other}");
        }
    }

    #[test]
    fn a_source_is_named_with_or_without_its_namespace() {
        assert_eq!(parse("git/app", "a").unwrap().to_string(), "GitRepository/a/app");
        assert_eq!(
            parse("git/b/app", "a").unwrap().to_string(),
            "GitRepository/b/app"
        );
        assert!(parse("app", "a").is_err() && parse("ks/app", "a").is_err());
    }
}
