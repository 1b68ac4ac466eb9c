//! `/api/v1/where`: which images run where.

use axum::Json;
use axum::extract::Query as Parsed;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use fleet::running::{Page, Parameters, Question};

use crate::caller::Signed;
use crate::problem::Problem;

/// Which clusters, namespaces and workloads run an image, a range of its versions or a digest, of Pods that you may get.
#[utoipa::path(
    get,
    path = "/api/v1/where",
    tag = "images",
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
    let Parsed(parameters) =
        parameters.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.body_text()))?;
    let question = Question::read(&parameters)?;
    let console = &signed.sight.console;
    let closed = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the console is ending");
    let turn = console.queries.clone().acquire_owned().await.map_err(closed)?;
    let running = console.running.clone();
    let lost = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the query was lost");
    let (places, question) = tokio::task::spawn_blocking(move || (running.places(&question), question))
        .await
        .map_err(lost)?;
    drop(turn);
    let seen = signed.sight.cut_places(places).await?;
    let silent = signed
        .sight
        .silent(|cluster| question.is_in_cluster(cluster))
        .await?;
    let all = console.picture.clusters().into_iter().map(|cluster| cluster.name);
    let mut unknown = console.running.unknown(&question, all);
    unknown.extend(silent.into_iter().map(|cluster| cluster.to_string()));
    let turn = console.queries.clone().acquire_owned().await.map_err(closed)?;
    let running = console.running.clone();
    let finding = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        Page {
            unknown,
            ..running.find(&question, &seen)
        }
    });
    finding.await.map(Json).map_err(lost)
}
