//! The repositories whose pull requests are compared: GitRepositories with the same URL and branch are one of them.

use std::collections::BTreeMap;
use std::time::Duration;

use api::delivery::Preview;
use api::source::GitRepository;
use controller_kit::ObjectKey;
use kube::ResourceExt as _;
use remote_access::git::Remotes;

use super::Error;
use crate::context::Context;
use crate::place::{self, branch_of};

/// A repository.
pub(super) struct Group {
    /// The first of its GitRepositories, by whose credentials it is fetched.
    pub(super) name: String,
    /// The names of all.
    pub(super) names: Vec<String>,
    pub(super) url: String,
    pub(super) branch: String,
    pub(super) remotes: Remotes,
    pub(super) timeout: Duration,
}

/// Finds those of a Preview.
pub(super) async fn groups(object: &Preview, context: &Context) -> Result<Vec<Group>, Error> {
    let namespace = object.namespace().unwrap_or_default();
    let reader = context.reader(&namespace);
    let mut sources = Vec::new();
    match object.spec.repositories.as_slice() {
        [] => {
            sources = reader.objects::<GitRepository>().await?;
            sources.retain(|source| branch_of(source).is_some());
        }
        named => {
            for reference in named {
                let source: GitRepository = reader.object(&reference.name).await?;
                if branch_of(&source).is_none() {
                    return Err(Error::NoBranch(reference.name.clone()));
                }
                sources.push(source);
            }
        }
    }
    let mut grouped: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for source in &sources {
        let branch = branch_of(source).unwrap_or_default().to_owned();
        let names = grouped.entry((source.spec.url.clone(), branch)).or_default();
        names.push(source.name_any());
    }
    if grouped.is_empty() {
        return Err(Error::NoRepositories);
    }
    let mut groups = Vec::new();
    for ((url, branch), mut names) in grouped {
        names.sort();
        names.dedup();
        let name = names[0].clone();
        let opened = place::open(&ObjectKey::new(&*namespace, &*name), &namespace, context).await;
        let opened = opened.map_err(Box::new)?;
        groups.push(Group {
            name,
            names,
            url,
            branch,
            remotes: opened.remotes,
            timeout: opened.timeout,
        });
    }
    Ok(groups)
}
