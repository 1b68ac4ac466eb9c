//! The pages: the same answers as the API's, as HTML for a person at a browser.
//!
//! An address is read into a [`Place`], and shown by [`show`]. A tab that is open has one stream, which shows its place again when
//! something changes that concerns it, and sends the parts that are different ([`live`]).

mod acting;
mod change;
mod changes;
mod fleet;
mod graph;
mod history;
mod live;
mod object;
mod place;
mod rows;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use console_pages::assets::{Asset, FOLDER};
use console_pages::profile::Profile;
use console_pages::{Shown, View, design, layout, link, profile, texts};
use delivery_graph::kind;
use jiff::Timestamp;
use serde::Deserialize;
use tower_http::compression::CompressionLayer;

use self::place::Place;
use crate::actions::Mode;
use crate::caller::Signed;
use crate::metrics;
use crate::problem::Problem;
use crate::serve::Console;

/// Bytes of a form.
const MAX_FORM: usize = 64 << 10;
/// Scripts and styles come from the console alone, and nothing is shown within another page.
const POLICY: &str =
    "default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'; object-src 'none'";

/// Adds the pages to the API.
pub fn beside(api: Router, console: Console) -> Router {
    let pages = Router::new()
        .route("/", get(page))
        .route("/apps", get(page))
        .route("/sources", get(page))
        .route("/pipelines", get(page))
        .route("/images", get(page))
        .route("/notifications", get(page))
        .route("/fleet", get(page))
        .route("/change", get(page))
        .route("/history", get(page))
        .route("/state", get(page))
        .route("/wall", get(page))
        .route("/compare", get(page))
        .route("/graph", get(page))
        .route("/new", get(page))
        .route("/new/{kind}", get(page))
        .route(
            "/changes",
            get(page)
                .post(changes::sent)
                .layer(DefaultBodyLimit::max(changes::MAX_FORM)),
        )
        .route("/me", get(page))
        .route("/find", get(find))
        .route("/design", get(page))
        .route("/objects/{cluster}/{kind}/{namespace}/{name}", get(page))
        .route("/objects/{cluster}/{kind}/{namespace}/{name}/diff", get(page))
        .route("/objects/{cluster}/{kind}/{namespace}/{name}/events", get(page))
        .route("/objects/{cluster}/{kind}/{namespace}/{name}/values", get(page))
        .route("/objects/{cluster}/{kind}/{namespace}/{name}/logs", get(page))
        .route("/objects/{cluster}/{kind}/{namespace}/{name}/edit", get(page))
        .route("/live", get(live::live))
        .route("/actions", post(acting::act))
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .layer(middleware::from_fn(private))
        // Not streams: they are sent as they come.
        .layer(CompressionLayer::new().gzip(true))
        .route(&format!("{FOLDER}{{name}}"), get(asset))
        .layer(middleware::from_fn_with_state(
            console.meters.clone(),
            metrics::observe,
        ))
        .with_state(console);
    api.merge(pages)
}

/// Any page.
async fn page(
    State(console): State<Console>,
    signed: Result<Signed, Problem>,
    headers: HeaderMap,
    address: Uri,
) -> Response {
    let mut view = view(&console, &headers, &address);
    let shown = match signed {
        Ok(signed) => {
            signed.name().clone_into(&mut view.user);
            show(&signed, &view, Asked::Page).await
        }
        Err(problem) => Err(problem),
    };
    match shown {
        Ok(shown) => html(&view, &shown),
        Err(problem) => refuse(&console, &view, &problem),
    }
}

fn html(view: &View, shown: &Shown) -> Response {
    Html(layout::document(view, shown).into_string()).into_response()
}

/// What someone types.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Typed {
    q: String,
}

/// Pages and objects whose name has what was typed: a part of a page.
async fn find(
    State(console): State<Console>,
    signed: Result<Signed, Problem>,
    headers: HeaderMap,
    address: Uri,
    typed: Query<Typed>,
) -> Response {
    let view = view(&console, &headers, &address);
    let found = match signed {
        Ok(signed) => rows::named(&signed, &typed.q).await,
        Err(problem) => Err(problem),
    };
    match found {
        Ok(rows) => Html(layout::found(&view, &typed.q, &rows).into_string()).into_response(),
        Err(problem) => refuse(&console, &view, &problem),
    }
}

/// Who asks for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Someone who opens it.
    Page,
    /// Its stream: of what does not change, nothing is asked.
    Stream,
}

/// What is at the view's address, as far as someone may see it.
async fn show(signed: &Signed, view: &View, asked: Asked) -> Result<Shown, Problem> {
    let place = Place::read(&view.address)?;
    match place {
        Place::Home => rows::home(signed, view).await,
        Place::List(kinds, asked) => rows::list(signed, view, kinds, &asked).await,
        Place::Object(named) => object::show(signed, view, named, asked).await,
        Place::Compared(named) => object::compared(signed, view, named).await,
        Place::Between(sides) => object::between(signed, view, &sides).await,
        Place::Events(named) => object::events(signed, view, named).await,
        Place::Values(named) => object::values(signed, view, named).await,
        Place::Logs(named) => object::logs(signed, view, named).await,
        Place::Edit(named) => changes::edit(signed, view, named).await,
        Place::New(None) => changes::kinds(view),
        Place::New(Some((kind, cluster, chart))) => {
            changes::form(signed, view, &kind, (&cluster, &chart)).await
        }
        Place::Fleet { asked, skip } => fleet::show(signed, view, &asked, skip).await,
        Place::Change(wanted) => change::show(signed, view, &wanted).await,
        Place::History(parameters) => history::show(signed, view, parameters).await,
        Place::State(at) => history::state(signed, view, &at).await,
        Place::Graph(asked) => graph::show(signed, view, asked).await,
        Place::Wall => rows::wall(signed, view).await,
        Place::Profile => Ok(you(signed, view)),
        Place::Design => Ok(design::show(view)),
    }
}

fn view(console: &Console, headers: &HeaderMap, address: &Uri) -> View {
    let language = headers
        .get(header::ACCEPT_LANGUAGE)
        .and_then(|value| value.to_str().ok());
    let now = Timestamp::now();
    // What someone adds to the address of an object is in no page with what the object holds: its compressed size would tell.
    let shown = match address.path().starts_with("/objects/") {
        true => address.path().to_owned(),
        false => address
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default(),
    };
    View {
        texts: texts::preferred(language.unwrap_or_default()),
        now,
        loaded: now,
        user: String::new(),
        address: shown,
        change: console.picture.number(),
        has_ledger: console.ledger.is_some(),
        has_pipelines: kind::exact("Pipeline").is_some_and(|kind| console.picture.is_served(kind)),
        has_actions: console.actions != Mode::None,
        has_changes: matches!(console.actions, Mode::Own | Mode::Impersonated)
            && console.picture.is_served(crate::changes::change_request()),
    }
}

fn you(signed: &Signed, view: &View) -> Shown {
    let (signed_in_by, until) = signed.way();
    let caller = signed.caller();
    let profile = Profile {
        username: &caller.username,
        groups: caller.groups(),
        signed_in_by,
        until,
    };
    profile::show(view, &profile)
}

/// A page for what is not shown. Who is not signed in is shown the way to it.
fn refuse(console: &Console, view: &View, problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let signs_in = console
        .access
        .as_ref()
        .is_some_and(|access| access.sign_in().is_some());
    let sign_in = (status == StatusCode::UNAUTHORIZED && signs_in)
        .then(|| link::with("/oauth2/sign-in", &[("to", &view.address)]));
    let title = match status {
        StatusCode::NOT_FOUND => view.texts.not_found,
        StatusCode::UNAUTHORIZED => view.texts.sign_in,
        _ => view.texts.problem,
    };
    let shown = layout::problem(view, title, &problem.message, sign_in.as_deref());
    (status, html(view, &shown)).into_response()
}

/// A page for an address that nothing is at; None for a program, which gets an answer as from the API.
pub fn missing(console: &Console, headers: &HeaderMap, address: &Uri) -> Option<Response> {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let is_browser = accepted.is_some_and(|accepted| accepted.contains("text/html"));
    is_browser.then(|| {
        let problem = Problem::new(StatusCode::NOT_FOUND, address.path());
        let mut response = refuse(console, &view(console, headers, address), &problem);
        guard(&mut response);
        response
    })
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = Asset::named(&name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let accepted = headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok());
    let takes_brotli = accepted.is_some_and(|list| list.split(',').any(|one| one.trim() == "br"));
    let common = [
        (header::CONTENT_TYPE, asset.content_type()),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::VARY, "accept-encoding"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    match takes_brotli {
        true => (common, [(header::CONTENT_ENCODING, "br")], asset.compressed).into_response(),
        false => (common, asset.content).into_response(),
    }
}

/// Marks pages as private to the reader, and as complete without anything from elsewhere.
async fn private(request: axum::extract::Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    guard(&mut response);
    response
}

fn guard(response: &mut Response) {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "same-origin"),
        (
            header::HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
