//! The page of an object, and what an apply of it would change.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::Asked;
use super::place::Named;
use crate::actions::{Acted, Mode, Subject, Verb};
use crate::api::actions::verbs_on;
use crate::api::diff::{self, Sides};
use crate::api::object::find;
use crate::caller::Signed;
use crate::logs::{self, Wanted};
use crate::problem::Problem;
use axum::extract::Path;
use axum::http::StatusCode;
use console_pages::compared::{self, Between, Compared};
use console_pages::events::{self as shown_events, Event};
use console_pages::logs::{self as shown_logs, Tail};
use console_pages::object::{self as shown, Object};
use console_pages::values as shown_values;
use console_pages::{Shown, View};
use delivery_graph::climb::climb;
use delivery_graph::tree::Node;
use delivery_graph::walk::walk_over;
use delivery_graph::{object, tree};
use fleet::row::{Key, Row};
use fleet::running::Found;
use k8s_openapi::api::core::v1 as core;
use kube::api::{Api, ListParams};
use ledger::store::{Filter, Scope};
use manifest::ObjectId;

/// Deliveries and actions that the page shows.
const MAX_PAST: usize = 10;
/// Clusters that are offered for a comparison.
const MAX_OTHERS: usize = 20;
/// Events that are read, and how long the API server may take.
const MAX_EVENTS: u32 = 200;
const PATIENCE: Duration = Duration::from_secs(10);

pub async fn show(signed: &Signed, view: &View, named: Named, asked: Asked) -> Result<Shown, Problem> {
    let sight = &signed.sight;
    let (key, object) = find(signed, Path(named)).await?;
    let row = row(signed, &key)?;
    let inside = sight.of_cluster(&key.cluster);
    let id = object::id(&object);
    let (why, trace) = (walk_over(&inside, &id).await, climb(&inside, &object).await);
    let nodes = match tree::has_followers(&id.kind) {
        true => tree::follow(&inside, &object).await,
        false => tree::grow(&inside, &object, false).await,
    };
    let running = running(signed, &key, &nodes).await?;
    let others = match (asked, tree::has_inventory(&id.kind)) {
        (Asked::Page, true) => others(signed, &key).await?,
        _ => Vec::new(),
    };
    let verbs = match asked {
        Asked::Page => {
            let subject = Subject {
                cluster: key.cluster.clone(),
                kind: Acted::Flux(key.kind()),
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
            };
            let verbs = verbs_on(sight, &subject).await?;
            verbs.into_iter().map(Verb::word).collect()
        }
        Asked::Stream => Vec::new(),
    };
    let mut past = None;
    let mut actions = Vec::new();
    if let Some(ledger) = &sight.console.ledger {
        // They may get the object: that is enough for what is recorded of it.
        let is_its = |scope: &Scope| {
            (&*scope.cluster, &*scope.kind, &*scope.namespace)
                == (&*key.cluster, key.kind().kind, &*key.namespace)
        };
        let scopes: Vec<Scope> = ledger.scopes().await?.into_iter().filter(is_its).collect();
        let filter = Filter {
            name: Some(key.name.to_string()),
            limit: MAX_PAST,
            ..Filter::default()
        };
        past = Some(ledger.deliveries(&scopes, &filter).await?);
        actions = ledger.actions(&scopes, &filter, None).await?;
    }
    let is_recorded = tree::has_inventory(&id.kind) || id.kind == "Pipeline";
    Ok(shown::show(
        view,
        &Object {
            row: &row,
            object: &object,
            why: &why,
            trace: &trace,
            tree: &nodes,
            others: &others,
            running: &running,
            // Only these are recorded.
            deliveries: past.as_deref().filter(|_| is_recorded),
            actions: &actions,
            verbs: &verbs,
            is_asked_as_reader: matches!(sight.console.actions, Mode::Own | Mode::Impersonated),
        },
    ))
}

pub async fn compared(signed: &Signed, view: &View, named: Named) -> Result<Shown, Problem> {
    let (key, object) = find(signed, Path(named)).await?;
    let difference = diff::difference(signed, &key, object, false).await?;
    let row = row(signed, &key)?;
    Ok(compared::show(
        view,
        &row,
        &Compared {
            desired: &difference.desired,
            applied: &difference.applied,
            reason: &difference.reason,
            objects: &difference.objects,
            notes: &difference.notes,
        },
    ))
}

/// What an object is built with.
pub async fn values(signed: &Signed, view: &View, named: Named) -> Result<Shown, Problem> {
    let (key, object) = find(signed, Path(named)).await?;
    let found = diff::values_of(signed, &key, object).await?;
    let row = row(signed, &key)?;
    let values = found.values.iter();
    let values: Vec<_> = values
        .map(|one| (one.path.as_str(), one.value.as_str(), one.origin.as_str()))
        .collect();
    Ok(shown_values::show(view, &row, &values, &found.notes))
}

/// What two objects, or one in two revisions, want to have applied.
pub async fn between(signed: &Signed, view: &View, sides: &Sides) -> Result<Shown, Problem> {
    let found = match sides.from.is_empty() && sides.to.is_empty() {
        true => None,
        false => Some(diff::compared(signed, sides).await?),
    };
    let asked = Between {
        from: &sides.from,
        to: &sides.to,
        found: found
            .as_ref()
            .map(|found| (&*found.from, &*found.to, &*found.objects, &*found.notes)),
    };
    Ok(compared::between(view, &asked))
}

/// The same object in other clusters where comparisons reach.
async fn others(signed: &Signed, key: &Key) -> Result<Vec<Arc<Row>>, Problem> {
    let sight = &signed.sight;
    let is_same = |other: &Key| {
        other.cluster != key.cluster
            && (other.kind(), &other.namespace, &other.name) == (key.kind(), &key.namespace, &key.name)
    };
    let (_, mut rows) = sight.console.picture.rows_of(is_same);
    rows.retain(|(other, _)| sight.archives(&other.cluster).is_ok() && sight.archives(&key.cluster).is_ok());
    rows.truncate(MAX_OTHERS);
    Ok(sight.cut(rows).await?.into_iter().map(|(_, row)| row).collect())
}

/// What the workloads of a tree run, in namespaces whose Pods the reader may get.
async fn running(signed: &Signed, key: &Key, nodes: &[Node]) -> Result<Vec<Found>, Problem> {
    let workloads: HashSet<ObjectId> = nodes
        .iter()
        .filter(|node| matches!(node.id.group.as_str(), "apps" | "batch"))
        .map(|node| node.id.clone())
        .collect();
    if workloads.is_empty() {
        return Ok(Vec::new());
    }
    let places = workloads
        .iter()
        .map(|id| (key.cluster.clone(), id.namespace.as_str().into()));
    let seen = signed.sight.cut_places(places.collect()).await?;
    let namespaces: BTreeSet<Box<str>> = seen.into_iter().map(|(_, namespace)| namespace).collect();
    let (running, cluster) = (signed.sight.console.running.clone(), key.cluster.clone());
    let looking = move || running.of_workloads(&cluster, &namespaces, &workloads);
    signed.sight.in_turn(looking).await
}

/// Asked as the reader: Events are of their own rights.
pub async fn events(signed: &Signed, view: &View, named: Named) -> Result<Shown, Problem> {
    let (key, object) = find(signed, Path(named)).await?;
    let row = row(signed, &key)?;
    let client = signed.sight.client_of_the_caller(&key.cluster)?;
    let api: Api<core::Event> = Api::namespaced(client, &key.namespace);
    let uid = object::text(&object, "/metadata/uid");
    let wanted = ListParams::default()
        .fields(&format!("involvedObject.uid={uid}"))
        .limit(MAX_EVENTS);
    let late = |_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the cluster does not answer; try again",
        )
    };
    let listing = tokio::time::timeout(PATIENCE, api.list(&wanted))
        .await
        .map_err(late)?;
    let mut events: Vec<Event> = listing
        .map_err(|error| refused(&error))?
        .items
        .into_iter()
        .map(told)
        .collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.last));
    Ok(shown_events::show(view, &row, &events))
}

/// Lines of the log that is shown beside the list of containers.
const TAIL: i64 = 100;

/// The Pods of what an object has applied, and the end of the log of the first: those that are not well come first.
pub async fn logs(signed: &Signed, view: &View, named: Named) -> Result<Shown, Problem> {
    let (key, object) = find(signed, Path(named)).await?;
    let row = row(signed, &key)?;
    let client = signed.sight.client_of_the_caller(&key.cluster)?;
    let nodes = tree::grow(&signed.sight.of_cluster(&key.cluster), &object, false).await;
    let pods = logs::pods(&client, &nodes).await?;
    let first = logs::choose(&pods, "");
    let tail = match first {
        None => None,
        Some((pod, container)) => {
            let wanted = Wanted {
                pod: (pod.namespace.clone(), pod.name.clone()),
                container: container.name.clone(),
                lines: TAIL,
                ..Wanted::default()
            };
            let lines = tokio::time::timeout(PATIENCE, logs::tail(&client, &wanted)).await;
            let lines = lines.unwrap_or_else(|_| Err("it took too long".to_owned()));
            Some((pod.address(container), lines))
        }
    };
    let tail = tail.as_ref().map(|(container, lines)| Tail {
        container,
        lines: lines.clone(),
    });
    Ok(shown_logs::show(view, &row, &pods, tail.as_ref()))
}

fn refused(error: &kube::Error) -> Problem {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            Problem::new(StatusCode::FORBIDDEN, "you may not list Events in this namespace")
        }
        error => {
            tracing::debug!(%error, "Events are not listed");
            Problem::new(StatusCode::BAD_GATEWAY, "the API server does not list Events")
        }
    }
}

fn told(event: core::Event) -> Event {
    let reporter = event.reporting_component.filter(|name| !name.is_empty());
    let source = event.source.and_then(|source| source.component);
    let last = event.last_timestamp.map(|time| time.0);
    Event {
        last: last
            .or(event.event_time.map(|time| time.0))
            .or(event.first_timestamp.map(|time| time.0)),
        count: event.count.unwrap_or(1),
        kind: event.type_.unwrap_or_default(),
        reason: event.reason.unwrap_or_default(),
        message: event.message.unwrap_or_default(),
        reporter: reporter.or(source).unwrap_or_default(),
    }
}

fn row(signed: &Signed, key: &Key) -> Result<Arc<Row>, Problem> {
    let (_, row) = signed.sight.console.picture.row(key);
    row.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "it was deleted a moment ago"))
}
