//! `/api/v1/where`: which images run where.

use axum::Json;
use axum::extract::Query as Parsed;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use fleet::running::{Page, Parameters, Question};

use super::shape::Form;
use crate::caller::Signed;
use crate::problem::Problem;

/// Which clusters, namespaces and workloads run an image, a range of its versions or a digest, of Pods that you may get.
#[utoipa::path(
    get,
    path = "/api/v1/where",
    tag = "images",
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
    let Parsed(parameters) =
        parameters.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.body_text()))?;
    let question = Question::read(&parameters)?;
    let sight = &signed.sight;
    let console = &sight.console;
    let running = console.running.clone();
    let looking = sight.in_turn(move || (running.places(&question), question));
    let (places, question) = looking.await?;
    let seen = sight.cut_places(places).await?;
    let silent = sight.silent(|cluster| question.is_in_cluster(cluster)).await?;
    let all = console.picture.clusters().into_iter().map(|cluster| cluster.name);
    let mut unknown = console.running.unknown(&question, all);
    unknown.extend(silent.into_iter().map(|cluster| cluster.to_string()));
    let running = console.running.clone();
    let finding = sight.in_turn(move || Page {
        unknown,
        ..running.find(&question, &seen)
    });
    finding.await.map(Json)
}
