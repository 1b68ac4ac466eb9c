//! The home page, and lists.

use console_pages::list::List;
use console_pages::{Shown, Texts, View, home, list};
use fleet::query::{Parameters, Query};

use super::place::Asked;
use crate::api::objects::{page, wanted};
use crate::caller::Signed;
use crate::problem::Problem;

/// A list of certain kinds.
#[derive(Clone, Copy)]
pub struct Kinds {
    path: &'static str,
    /// What it shows unless other kinds are asked for.
    pub kinds: &'static str,
    title: fn(&Texts) -> &'static str,
}

pub const APPLICATIONS: Kinds = Kinds {
    path: "/apps",
    kinds: "Kustomization,HelmRelease",
    title: |texts| texts.applications,
};

pub const SOURCES: Kinds = Kinds {
    path: "/sources",
    kinds: "GitRepository,OCIRepository,HelmRepository,HelmChart,Bucket,ExternalArtifact",
    title: |texts| texts.sources,
};

pub const IMAGES: Kinds = Kinds {
    path: "/images",
    kinds: "ImageRepository,ImagePolicy,ImageUpdateAutomation",
    title: |texts| texts.images,
};

pub const NOTIFICATIONS: Kinds = Kinds {
    path: "/notifications",
    kinds: "Provider,Alert,Receiver",
    title: |texts| texts.notifications,
};

/// What needs a person: of what is well, nothing is asked.
pub async fn home(signed: &Signed, view: &View) -> Result<Shown, Problem> {
    let query = Query::read(&Parameters {
        status: "Failed,InProgress,Suspended".to_owned(),
        ..Parameters::default()
    })?;
    let (_, rows) = wanted(&signed.sight, &query).await?;
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    Ok(home::show(view, &rows, &signed.sight.console.picture.clusters()))
}

pub async fn list(signed: &Signed, view: &View, kinds: Kinds, asked: &Asked) -> Result<Shown, Problem> {
    let found = page(&signed.sight, query(kinds, asked)?).await?;
    Ok(list::show(
        view,
        &List {
            title: (kinds.title)(view.texts),
            path: kinds.path,
            search: &asked.search,
            given: &asked.given,
            page: &found,
        },
    ))
}

/// What a list asks for.
pub fn query(kinds: Kinds, asked: &Asked) -> Result<Query, Problem> {
    let mut parameters = asked.search.parameters.clone();
    if parameters.kind.is_empty() {
        kinds.kinds.clone_into(&mut parameters.kind);
    }
    Ok(Query::read(&parameters)?)
}
