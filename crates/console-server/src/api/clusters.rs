//! `/api/v1/clusters`.

use axum::Json;
use fleet::picture::Cluster;

use crate::caller::Signed;
use crate::problem::Problem;

/// The clusters, and whether what is shown of them is up to date.
#[utoipa::path(
    get,
    path = "/api/v1/clusters",
    tag = "clusters",
    responses(
        (status = 200, description = "All clusters", body = Vec<Cluster>),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
    ),
)]
pub async fn list(signed: Signed) -> Json<Vec<Cluster>> {
    Json(signed.sight.console.picture.clusters())
}
