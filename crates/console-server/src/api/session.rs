//! `/oauth2/…`: to the identity provider and back, and out again; `/api/v1/me`.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde::{Deserialize, Serialize};
use sign_in::provider::{Callback, Error};
use utoipa::ToSchema;

use crate::access::SignIn;
use crate::caller::{self, Signed};
use crate::problem::Problem;
use crate::serve::Console;

/// Where whoever comes by a link begins.
const BEGIN: &str = "/";

/// Who you are.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    /// The name that clusters know you by.
    username: String,
    /// The groups that clusters know you in.
    groups: Vec<String>,
    /// How a page may call you.
    name: String,
    /// `token`, `session` or `anonymous`.
    signed_in_by: &'static str,
    /// When the session ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, value_type = Option<String>)]
    until: Option<jiff::Timestamp>,
}

/// Who you are, as the cluster knows you.
#[utoipa::path(
    get,
    path = "/api/v1/me",
    tag = "you",
    responses(
        (status = 200, description = "You", body = Me),
        (status = 401, description = "No token or session, or one that is not accepted", body = Problem),
    ),
)]
pub async fn me(signed: Signed) -> Json<Me> {
    let caller = signed.caller();
    let (signed_in_by, until) = signed.way();
    Json(Me {
        username: caller.username.clone(),
        groups: caller.groups().to_vec(),
        name: signed.name().to_owned(),
        signed_in_by,
        until,
    })
}

/// What someone wanted to see.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    to: String,
}

/// Sends someone to the provider.
pub async fn begin(
    State(console): State<Console>,
    query: Query<Wanted>,
    request: Request,
) -> Result<Response, Problem> {
    let sign_in = sign_in(&console)?;
    let (parts, _) = request.into_parts();
    let _turn = caller::begin(&parts, &console)?;
    let (url, pending) = sign_in.provider.begin(&query.to).await?;
    let cookie = sign_in.sessions.begin_sign_in(&pending);
    to(url.as_str(), [cookie])
}

/// Takes someone back from it, and begins a session.
pub async fn end(
    State(console): State<Console>,
    callback: Result<Query<Callback>, QueryRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let sign_in = sign_in(&console)?;
    let (parts, _) = request.into_parts();
    let _turn = caller::begin(&parts, &console)?;
    let pending = sign_in.sessions.pending(&parts.headers).ok_or(Error::NotBegun)?;
    let Query(callback) = callback.map_err(|_| Error::NotBegun)?;
    let user = sign_in.provider.end(&pending, callback).await?;
    tracing::info!(user = user.username, "signed in");
    let session = sign_in.sessions.begin(user);
    let session = session.map_err(|error| Problem::new(StatusCode::FORBIDDEN, error.to_string()))?;
    to(&pending.to, [session, sign_in.sessions.end_sign_in()])
}

/// What a link tells.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Link {
    once: String,
}

/// Begins a session for whoever has the link that works.
pub async fn link(State(console): State<Console>, query: Query<Link>) -> Result<Response, Problem> {
    let access = console.access.as_ref().ok_or_else(nobody)?;
    let failed = |error: sign_in::sessions::Error| Problem::new(StatusCode::FORBIDDEN, error.to_string());
    match access.by_link(&query.once).map_err(failed)? {
        Some(cookie) => to(BEGIN, [cookie]),
        None => {
            let message = "this link does not work, or not any more: open the one that was printed last";
            Err(Problem::new(StatusCode::FORBIDDEN, message))
        }
    }
}

/// Ends the session.
pub async fn sign_out(State(console): State<Console>, request: Request) -> Result<Response, Problem> {
    let access = console.access.as_ref().ok_or_else(nobody)?;
    let sessions = access.sessions().ok_or_else(nobody)?;
    let (parts, _) = request.into_parts();
    access.check(&parts.method, &parts.headers)?;
    match sessions.of(&parts.headers) {
        Some(session) => to("/", [sessions.end(&session)]),
        None => to("/", []),
    }
}

fn sign_in(console: &Console) -> Result<&SignIn, Problem> {
    let sign_in = console.access.as_ref().and_then(|access| access.sign_in());
    sign_in.ok_or_else(nobody)
}

fn nobody() -> Problem {
    let message = "nobody signs in here: there is no identity provider in --sign-in-config";
    Problem::new(StatusCode::NOT_FOUND, message)
}

/// Sends a browser on, with these cookies.
fn to<const N: usize>(place: &str, cookies: [String; N]) -> Result<Response, Problem> {
    let lost = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written");
    let place = HeaderValue::from_str(place).map_err(|_| lost())?;
    let mut headers = Vec::new();
    for cookie in cookies {
        headers.push((SET_COOKIE, HeaderValue::from_str(&cookie).map_err(|_| lost())?));
    }
    headers.push((LOCATION, place));
    Ok((StatusCode::SEE_OTHER, AppendHeaders(headers)).into_response())
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Provider { .. } => StatusCode::BAD_GATEWAY,
            Error::NotBegun => StatusCode::BAD_REQUEST,
            Error::Refused(_) | Error::Token(_) | Error::Identity(_) => StatusCode::FORBIDDEN,
        };
        tracing::info!(%error, "someone was not signed in");
        Self::new(code, error.to_string())
    }
}

impl From<sign_in::origin::Error> for Problem {
    fn from(error: sign_in::origin::Error) -> Self {
        Self::new(StatusCode::FORBIDDEN, error.to_string())
    }
}
