//! The OpenAPI description, made from the types.

use std::io::Write as _;
use std::process::ExitCode;

use axum::Json;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use super::{
    actions, changes, charts, clusters, deliveries, diff, download, logs, object, objects, running, session,
    stream,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Windlass console",
        description = "What is delivered where, since when, from which revision, and why not. Answers are cut to what you could `get` in the cluster.",
        version = "v1",
    ),
    paths(
        clusters::list,
        objects::list,
        stream::watch,
        object::get,
        object::tree,
        object::why,
        object::trace,
        diff::diff,
        diff::between,
        diff::values,
        running::list,
        charts::list,
        deliveries::list,
        deliveries::dora,
        session::me,
        actions::act,
        actions::list,
        actions::verbs,
        changes::manifest,
        changes::change,
        download::get,
        logs::get,
    ),
    components(schemas(fleet::row::Row, fleet::row::Status)),
    security(("token" = [])),
)]
struct Description;

fn document() -> Document {
    let mut document = Description::openapi();
    document.info.license = None;
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", token);
    document
}

/// Returns the description. No token is required.
pub async fn get() -> Json<Document> {
    Json(document())
}

/// Prints it.
pub fn print() -> ExitCode {
    let printed = document().to_pretty_json().map_err(std::io::Error::other);
    let printed = printed.and_then(|text| writeln!(std::io::stdout(), "{text}"));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::document;

    #[test]
    fn the_description_that_is_checked_in_is_of_these_types() {
        let made = document().to_pretty_json().unwrap() + "\n";
        let kept = include_str!("../../openapi.json");
        assert!(
            made == kept,
            "run: cargo run -p console -- --openapi > crates/console-server/openapi.json"
        );
    }
}
