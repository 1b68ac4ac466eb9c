//! Branches and tags of a repository. GitHub, GitLab and Gitea list them alike, with other names for the commit.

use serde::Deserialize;

use crate::api::Api;
use crate::error::Error;

/// Pages that are looked through.
const MAX_PAGES: usize = 20;

/// A branch or tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Its name, without `refs/`.
    pub name: String,
    /// The commit that it points to.
    pub commit: String,
}

#[derive(Deserialize)]
struct Found {
    name: String,
    commit: Commit,
}

/// GitHub and tags of Gitea say `sha`, GitLab and branches of Gitea `id`.
#[derive(Deserialize)]
struct Commit {
    #[serde(alias = "sha")]
    id: String,
}

/// Lists all pages.
pub(crate) async fn pages(
    api: &Api<'_>,
    path: &[&str],
    query: &[(&str, &str)],
    size: usize,
) -> Result<Vec<Reference>, Error> {
    let mut all = Vec::new();
    for number in 1..=MAX_PAGES {
        let number = number.to_string();
        let query: Vec<_> = query.iter().copied().chain([("page", number.as_str())]).collect();
        let found: Vec<Found> = api.get(path, &query).await?;
        let is_last = found.len() < size;
        all.extend(found.into_iter().map(|found| Reference {
            name: found.name,
            commit: found.commit.id,
        }));
        if is_last {
            break;
        }
    }
    Ok(all)
}
