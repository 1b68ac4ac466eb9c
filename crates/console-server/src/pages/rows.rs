//! The home page, and lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use console_pages::list::List;
use console_pages::search::Search;
use console_pages::{Shown, Texts, View, home, list, wall};
use fleet::picture::Known;
use fleet::query::{Parameters, Query};
use fleet::row::Row;
use futures::future::try_join_all;

use super::place::Asked;
use crate::actions::{Acted, Mode, Subject, Verb};
use crate::api::objects::{page, wanted};
use crate::caller::Signed;
use crate::problem::Problem;
use crate::sight::Place;

/// Objects that a few letters find.
const MAX_NAMED: usize = 10;
/// Pipelines that the home page looks into.
const MAX_PIPELINES: usize = 200;
/// Places that the cluster is asked about.
const MAX_PLACES: usize = 50;

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

pub const PIPELINES: Kinds = Kinds {
    path: "/pipelines",
    kinds: "Pipeline",
    title: |texts| texts.pipelines,
};

pub const CHANGES: Kinds = Kinds {
    path: "/changes",
    kinds: "ChangeRequest",
    title: |texts| texts.change_requests,
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

/// Sources, and what is made of them.
pub const DELIVERY: Kinds = Kinds {
    path: "/graph",
    kinds: "GitRepository,OCIRepository,HelmRepository,HelmChart,Bucket,ExternalArtifact,Kustomization,HelmRelease",
    title: |texts| texts.graph,
};

/// What needs a person: of what is well, nothing is asked.
pub async fn home(signed: &Signed, view: &View) -> Result<Shown, Problem> {
    let query = Query::read(&Parameters {
        status: "Failed,InProgress,Suspended".to_owned(),
        ..Parameters::default()
    })?;
    let (_, rows, room) = wanted(&signed.sight, &query).await?;
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    // What is left waits for clusters.
    drop(room);
    let mine = mine(signed, &rows).await?;
    let waiting = match view.has_pipelines {
        true => waiting(signed, view).await?,
        false => Vec::new(),
    };
    Ok(home::show(
        view,
        &rows,
        &home::Needs {
            clusters: &signed.sight.console.picture.clusters(),
            waiting: &waiting,
            mine: &mine,
        },
    ))
}

/// Pipelines that wait for people.
async fn waiting(signed: &Signed, view: &View) -> Result<Vec<home::Waiting>, Problem> {
    let query = Query::read(&Parameters {
        kind: PIPELINES.kinds.to_owned(),
        ..Parameters::default()
    })?;
    let (_, rows, _room) = wanted(&signed.sight, &query).await?;
    let (console, now) = (signed.sight.console.clone(), view.now);
    let reading = move || {
        let rows = rows.into_iter().take(MAX_PIPELINES);
        let waiting = rows.filter_map(|(key, row)| match console.picture.object(&key) {
            Known::Whole(object) => home::Waiting::of(row, object, now),
            _ => None,
        });
        waiting.collect()
    };
    signed.sight.in_turn(reading).await
}

/// The places of these rows where the reader may act.
async fn mine(signed: &Signed, rows: &[Arc<Row>]) -> Result<home::Places, Problem> {
    let sight = &signed.sight;
    let Some(kind) = Acted::named("Kustomization").filter(|_| sight.console.actions != Mode::None) else {
        return Ok(home::Places::new());
    };
    let places: BTreeSet<Place> = rows
        .iter()
        .map(|row| (row.cluster.clone(), row.namespace.clone()))
        .collect();
    // All at once: a cluster that answers slowly is waited for once.
    let asking = places.into_iter().take(MAX_PLACES).map(async |place| {
        let subject = Subject {
            cluster: place.0.clone(),
            kind,
            namespace: place.1.to_string(),
            name: String::new(),
        };
        let may = sight.has_verb(&subject, Verb::Reconcile).await?;
        Ok::<_, Problem>(may.then_some(place))
    });
    Ok(try_join_all(asking).await?.into_iter().flatten().collect())
}

/// How each cluster is.
pub async fn wall(signed: &Signed, view: &View) -> Result<Shown, Problem> {
    let query = Query::read(&Parameters {
        kind: APPLICATIONS.kinds.to_owned(),
        ..Parameters::default()
    })?;
    let (_, rows, _room) = wanted(&signed.sight, &query).await?;
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    Ok(wall::show(view, &rows, &signed.sight.console.picture.clusters()))
}

/// Objects that a few letters find; none if there are none.
pub async fn named(signed: &Signed, typed: &str) -> Result<Vec<Arc<Row>>, Problem> {
    let parameters = Search::read(typed, Parameters::default()).parameters;
    if parameters == Parameters::default() {
        return Ok(Vec::new());
    }
    let query = Query::read(&Parameters {
        limit: Some(MAX_NAMED),
        ..parameters
    })?;
    Ok(page(&signed.sight, query).await?.items)
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
