//! `/api/v1/objects`: lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::Query as Parsed;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use fleet::query::{Page, Parameters, Query};
use fleet::row::{Key, Row};
use tokio::sync::OwnedSemaphorePermit;

use super::shape::Form;
use crate::caller::Signed;
use crate::problem::Problem;
use crate::sight::{KindOfPlace, Sight};

/// The objects of Flux and Windlass that you may get, in pages.
///
/// Of rows that you may not get nothing is counted, in `total` and `facets` neither.
#[utoipa::path(
    get,
    path = "/api/v1/objects",
    tag = "objects",
    params(Parameters, Form),
    responses(
        (status = 200, description = "A page", body = Page),
        (status = 400, description = "A parameter that cannot be used", body = Problem),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 503, description = "The API server does not say what you may see", body = Problem),
    ),
)]
pub async fn list(
    signed: Signed,
    parameters: Result<Parsed<Parameters>, QueryRejection>,
) -> Result<Json<Page>, Problem> {
    let query = read(parameters)?;
    page(&signed.sight, query).await.map(Json)
}

pub(super) fn read(parameters: Result<Parsed<Parameters>, QueryRejection>) -> Result<Query, Problem> {
    let Parsed(parameters) =
        parameters.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.body_text()))?;
    Ok(Query::read(&parameters)?)
}

/// The page that a query asks for.
pub async fn page(sight: &Sight, query: Query) -> Result<Page, Problem> {
    let silent = sight.silent(|cluster| query.concerns_cluster(cluster)).await?;
    let (change, rows, _room) = wanted(sight, &query).await?;
    let paging = sight.in_turn(move || query.page(change, rows, silent));
    Ok(paging.await??)
}

/// The rows that may be an answer and that the caller may get, the number of the last change that they have, and the room that they
/// take: hold it as long as they are kept, and wait for no cluster meanwhile. A request without room holds no rows.
pub async fn wanted(
    sight: &Sight,
    query: &Query,
) -> Result<(u64, Vec<(Key, Arc<Row>)>, OwnedSemaphorePermit), Problem> {
    let joined = sight.joined(query).await?;
    let matching = || {
        let (change, mut rows) = sight.console.picture.rows_of(|key| query.concerns(key));
        let is_joined = |key: &Key| joined.as_ref().is_none_or(|joined| joined.contains(key));
        rows.retain(|(key, row)| query.may_match(row) && is_joined(key));
        (change, rows)
    };
    // Rights first: otherwise a cluster that answers slowly would keep the room from those who do not ask about it.
    let places: BTreeSet<KindOfPlace> = matching()
        .1
        .into_iter()
        .map(|(key, row)| (key.cluster, row.kind, key.namespace))
        .collect();
    sight.ask_ahead(&places).await?;
    let closed = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the console is ending");
    let rooms = sight.console.lists.clone();
    let room = rooms.acquire_owned().await.map_err(closed)?;
    let (change, rows) = matching();
    Ok((change, sight.cut(rows).await?, room))
}
