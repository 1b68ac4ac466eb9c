//! Where a commit, a digest or a version is.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use axum::http::StatusCode;
use console_pages::change::{self, Change, Place};
use console_pages::{Shown, View};
use delivery_graph::kind;
use delivery_graph::progress::{Delivery, Objects};
use delivery_graph::tree;
use fleet::picture::{Known, Picture};
use fleet::query::{Parameters, Query};
use fleet::row::{Key, Row, Status};
use manifest::ObjectId;

use super::rows::{APPLICATIONS, SOURCES};
use crate::api::deliveries::{Wanted, seen};
use crate::api::objects::wanted;
use crate::caller::Signed;
use crate::problem::Problem;

/// Steps from a source to what is made of what is made of it.
const MAX_STEPS: usize = 5;
/// Objects that are read.
const MAX_READ: usize = 5000;
/// Deliveries that are shown.
const MAX_PAST: usize = 50;

pub async fn show(signed: &Signed, view: &View, asked: &str) -> Result<Shown, Problem> {
    let sight = &signed.sight;
    if asked.is_empty() {
        return Ok(change::show(view, &Change::default()));
    }
    let all = Query::read(&Parameters {
        kind: format!("{},{}", APPLICATIONS.kinds, SOURCES.kinds),
        ..Parameters::default()
    })?;
    let of_change = Query::read(&Parameters {
        revision: asked.to_owned(),
        ..Parameters::default()
    })?;
    if Delivery::from_revision(asked).is_none() {
        let message = "it is too short to name a commit: give 7 of its characters at least";
        return Err(Problem::new(StatusCode::BAD_REQUEST, message));
    }
    let (_, rows, room) = wanted(sight, &all).await?;
    let (picture, revision) = (sight.console.picture.clone(), asked.to_owned());
    let mut change = sight
        .in_turn(move || found(&picture, &rows, &of_change, &revision))
        .await?;
    drop(room);
    let mut past = Vec::new();
    if let Some(ledger) = &sight.console.ledger {
        let (wanted, filter) = Wanted::change(asked, MAX_PAST);
        let scopes = seen(sight, ledger, &wanted).await?;
        past = ledger.deliveries(&scopes, &filter).await?;
    }
    change.wanted = asked;
    change.deliveries = &past;
    Ok(change::show(view, &change))
}

/// Looks where it is, in each cluster by itself.
fn found(picture: &Picture, rows: &[(Key, Arc<Row>)], of_change: &Query, revision: &str) -> Change<'static> {
    let mut change = Change::default();
    let Ok(having) = of_change.matching(rows.to_vec()) else {
        return change;
    };
    let having: HashSet<Key> = having.into_iter().map(|(key, _)| key).collect();
    let mut clusters: BTreeMap<&str, BTreeMap<ObjectId, &(Key, Arc<Row>)>> = BTreeMap::new();
    for entry in rows {
        let (key, _) = entry;
        let id = key.kind().id(&key.namespace, &key.name);
        clusters.entry(&key.cluster).or_default().insert(id, entry);
    }
    let repositories: HashSet<&str> = rows
        .iter()
        .filter(|(key, row)| having.contains(key) && !row.repository.is_empty())
        .map(|(_, row)| &*row.repository)
        .collect();
    for of_cluster in clusters.values() {
        let concerned = concerned(of_cluster, &having, &repositories);
        let mut objects = Objects::new();
        for id in concerned.iter().take(MAX_READ) {
            if let Some((key, _)) = of_cluster.get(id)
                && let Known::Whole(object) = picture.object(key)
            {
                objects.insert(id.clone(), object);
            }
        }
        let Some(mut delivery) = Delivery::from_revision(revision) else {
            continue;
        };
        let progress = delivery.progress(&objects, None);
        let place = |id: &ObjectId, why: String| {
            let (_, row) = of_cluster.get(id)?;
            let row = row.clone();
            Some(Place { row, why })
        };
        let told = progress.missing.iter().chain(&progress.failed).map(|(id, _)| id);
        let told: HashSet<&ObjectId> = progress.done.iter().chain(told).collect();
        for id in concerned.iter().filter(|id| !told.contains(id)) {
            let Some((key, row)) = of_cluster.get(id) else {
                continue;
            };
            let group = match (having.contains(key), tree::has_inventory(row.kind), row.status) {
                (true, false, _) => &mut change.sources,
                // Those that have it although their source has moved on, or is not seen.
                (true, true, Status::Ready) => &mut change.done,
                (true, true, Status::InProgress | Status::Unknown) => &mut change.missing,
                (true, true, _) | (false, true, Status::Suspended) => &mut change.failed,
                (false, ..) => continue,
            };
            group.extend(place(id, row.message.to_string()));
        }
        change
            .done
            .extend(progress.done.iter().filter_map(|id| place(id, String::new())));
        change.missing.extend(
            progress
                .missing
                .into_iter()
                .filter_map(|(id, why)| place(&id, why)),
        );
        change.failed.extend(
            progress
                .failed
                .into_iter()
                .filter_map(|(id, why)| place(&id, why)),
        );
    }
    change
}

/// Those that have it, sources of the same repositories, and what is made of them.
fn concerned(
    rows: &BTreeMap<ObjectId, &(Key, Arc<Row>)>,
    having: &HashSet<Key>,
    repositories: &HashSet<&str>,
) -> BTreeSet<ObjectId> {
    let mut users: HashMap<&str, Vec<&ObjectId>> = HashMap::new();
    for (id, (_, row)) in rows {
        users.entry(&row.source).or_default().push(id);
    }
    let mut concerned = BTreeSet::new();
    let is_first = |(key, row): &(Key, Arc<Row>)| {
        having.contains(key) || (!row.repository.is_empty() && repositories.contains(&*row.repository))
    };
    let mut level: Vec<ObjectId> = rows
        .iter()
        .filter(|(_, entry)| is_first(entry))
        .map(|(id, _)| id.clone())
        .collect();
    let sources = level
        .iter()
        .filter_map(|id| kind::parse_id(&rows.get(id)?.1.source));
    let sources: Vec<ObjectId> = sources.collect();
    level.extend(sources);
    for _ in 0..MAX_STEPS {
        let next: Vec<ObjectId> = level
            .iter()
            .flat_map(|id| users.get(id.to_string().as_str()).into_iter().flatten())
            .map(|id| (*id).clone())
            .collect();
        concerned.extend(std::mem::take(&mut level));
        level = next.into_iter().filter(|id| !concerned.contains(id)).collect();
        if level.is_empty() {
            break;
        }
    }
    concerned
}
