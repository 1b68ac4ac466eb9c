//! `/api/v1/charts`: which charts are released where.

use axum::Json;
use axum::extract::Query as Parsed;
use axum::extract::rejection::QueryRejection;
use fleet::charts::{Charts, charts};
use fleet::query::Parameters;

use super::objects::{read, wanted};
use super::shape::Form;
use crate::caller::Signed;
use crate::problem::Problem;

/// Which versions of which charts are released in which clusters, by HelmReleases that you may get.
#[utoipa::path(
    get,
    path = "/api/v1/charts",
    tag = "charts",
    params(Parameters, Form),
    responses(
        (status = 200, description = "All of them, without pages", body = Charts),
        (status = 400, description = "A parameter that cannot be used", body = Problem),
        (status = 401, description = "No token or session, or one that is not accepted", body = Problem),
        (status = 503, description = "The API server does not say what you may see", body = Problem),
    ),
)]
pub async fn list(
    signed: Signed,
    parameters: Result<Parsed<Parameters>, QueryRejection>,
) -> Result<Json<Charts>, Problem> {
    let query = read(parameters)?;
    let silent = signed
        .sight
        .silent(|cluster| query.concerns_cluster(cluster))
        .await?;
    let (_, rows, _room) = wanted(&signed.sight, &query).await?;
    let counting = signed
        .sight
        .in_turn(move || query.matching(rows).map(|rows| charts(&rows, silent)));
    Ok(Json(counting.await??))
}
