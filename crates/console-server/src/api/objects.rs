//! `/api/v1/objects`: lists.

use axum::Json;
use axum::extract::Query as Parsed;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use fleet::query::{Page, Parameters, Query};

use crate::caller::Signed;
use crate::problem::Problem;
use crate::sight::Sight;

/// The objects of Flux and Windlass that you may get, in pages.
///
/// Of rows that you may not get nothing is counted, in `total` and `facets` neither.
#[utoipa::path(
    get,
    path = "/api/v1/objects",
    tag = "objects",
    params(Parameters),
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

async fn page(sight: &Sight, query: Query) -> Result<Page, Problem> {
    let (change, mut rows) = sight.console.picture.rows();
    rows.retain(|(_, row)| query.may_match(row));
    let rows = sight.cut(rows).await?;
    let silent = sight.silent(|cluster| query.concerns_cluster(cluster)).await?;
    let closed = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the console is ending");
    let turn = sight
        .console
        .queries
        .clone()
        .acquire_owned()
        .await
        .map_err(closed)?;
    let asking = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        query.page(change, rows, silent)
    });
    let page = asking.await;
    let lost = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the query was lost");
    Ok(page.map_err(lost)??)
}
