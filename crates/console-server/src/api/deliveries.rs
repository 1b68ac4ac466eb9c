//! `/api/v1/deliveries` and `/api/v1/dora`: what the ledger tells.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query as Parsed, State};
use axum::http::StatusCode;
use delivery_graph::kind;
use jiff::{SignedDuration, Timestamp};
use ledger::delivery::{Delivery, Outcome};
use ledger::dora::{self, By, Figures};
use ledger::store::{Filter, Ledger, MAX_ROWS, Scope};
use ledger::window;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::shape::Form;
use crate::caller::Signed;
use crate::problem::Problem;
use crate::serve::Console;
use crate::sight::Sight;

/// Rows of a page if nothing else is asked for, and at most.
const USUAL_LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;
/// Bytes of any one parameter.
const MAX_PARAMETER: usize = 512;
/// What figures are of if nothing else is asked for.
const HALF_A_YEAR: SignedDuration = SignedDuration::from_hours(183 * 24);
const USUAL_WINDOW: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What of the ledger is asked for. All that is given must hold.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Parameters {
    /// Clusters, separated by commas.
    cluster: String,
    /// Kustomization, HelmRelease or Pipeline, also as `ks` or `hr`.
    kind: String,
    /// Namespaces, separated by commas.
    namespace: String,
    /// Name of the object.
    name: String,
    /// `Succeeded`, `Failed` or `Gap`.
    outcome: String,
    /// Beginning of the revision, or of its commit, digest or version.
    revision: String,
    /// What ended then or later: a time, or how long ago, such as `7d`, `12h` or `30m`.
    since: String,
    /// What ended before: the same.
    until: String,
    /// Rows of the page: 50 by default, 500 at most.
    limit: Option<usize>,
    /// `next` of the page before.
    after: String,
    /// Of figures: what there is a group for: `cluster`, `namespace`, `app`, or `label:KEY`; all together by default.
    by: String,
    /// Of actions: who did it.
    username: String,
}

/// A page of deliveries, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct Deliveries {
    /// The rows.
    items: Vec<Delivery>,
    /// `after` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The figures of DORA.
#[derive(Debug, Serialize, ToSchema)]
pub struct Told {
    /// Beginning of the window.
    #[schema(value_type = String, format = DateTime)]
    since: Timestamp,
    /// Its end.
    #[schema(value_type = String, format = DateTime)]
    until: Timestamp,
    /// Figures by the name of the group; of one group, its name is empty.
    groups: BTreeMap<String, Figures>,
}

/// What was delivered, newest first, of objects that you may get, also of such that are gone.
#[utoipa::path(
    get,
    path = "/api/v1/deliveries",
    tag = "ledger",
    params(Parameters, Form),
    responses(
        (status = 200, description = "A page", body = Deliveries),
        (status = 400, description = "A parameter that cannot be used", body = Problem),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 404, description = "The console keeps no ledger", body = Problem),
        (status = 503, description = "The ledger or the API server does not answer", body = Problem),
    ),
)]
pub async fn list(
    signed: Signed,
    State(console): State<Console>,
    parameters: Result<Parsed<Parameters>, QueryRejection>,
) -> Result<Json<Deliveries>, Problem> {
    let ledger = ledger(&console)?;
    let now = Timestamp::now();
    let parameters = read(parameters)?;
    let (wanted, filter) = parameters.filter(now)?;
    let scopes = seen(&signed.sight, ledger, &wanted).await?;
    let items = ledger.deliveries(&scopes, &filter).await?;
    let last = items.last().filter(|_| items.len() == filter.limit);
    let next = last.map(|row| format!("{}/{}", row.ended, row.id));
    Ok(Json(Deliveries { items, next }))
}

/// Deployment frequency, lead time, change failure rate and time to recover, of the last 30 days by default.
#[utoipa::path(
    get,
    path = "/api/v1/dora",
    tag = "ledger",
    params(Parameters),
    responses(
        (status = 200, description = "The figures", body = Told),
        (status = 400, description = "A parameter that cannot be used", body = Problem),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 404, description = "The console keeps no ledger", body = Problem),
        (status = 503, description = "The ledger or the API server does not answer", body = Problem),
    ),
)]
pub async fn dora(
    signed: Signed,
    State(console): State<Console>,
    parameters: Result<Parsed<Parameters>, QueryRejection>,
) -> Result<Json<Told>, Problem> {
    let ledger = ledger(&console)?;
    let now = Timestamp::now();
    let parameters = read(parameters)?;
    let by = parameters.by()?;
    let figures = of_window(&signed.sight, ledger, &parameters, now, move |rows, window| {
        Told {
            since: window.0,
            until: window.1,
            groups: dora::figures(rows, window, &by),
        }
    });
    figures.await.map(Json)
}

/// Computes something of the deliveries of a window, which is the last 30 days by default, when it is its turn: there may be many.
pub async fn of_window<T: Send + 'static>(
    sight: &Sight,
    ledger: &Ledger,
    parameters: &Parameters,
    now: Timestamp,
    compute: impl FnOnce(&[Delivery], (Timestamp, Timestamp)) -> T + Send + 'static,
) -> Result<T, Problem> {
    let (wanted, mut filter) = parameters.filter(now)?;
    let until = filter.until.unwrap_or(now);
    let since = filter.since.unwrap_or(until - USUAL_WINDOW);
    (filter.since, filter.until) = (Some(since), Some(until));
    let scopes = seen(sight, ledger, &wanted).await?;
    let closed = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the console is ending");
    let queries = sight.console.queries.clone();
    let turn = queries.acquire_owned().await.map_err(closed)?;
    let rows = ledger.all(&scopes, &filter).await?;
    if rows.len() == MAX_ROWS {
        return Err(wrong(
            "since",
            &format!("there are more than {MAX_ROWS} deliveries: ask for less"),
        ));
    }
    let computing = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        compute(&rows, (since, until))
    });
    let lost = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the figures were lost");
    computing.await.map_err(lost)
}

pub fn ledger(console: &Console) -> Result<&Ledger, Problem> {
    let missing = || {
        let message = "this console keeps no ledger; its administrator may start it with --ledger-url";
        Problem::new(StatusCode::NOT_FOUND, message)
    };
    console.ledger.as_ref().ok_or_else(missing)
}

/// The scopes that are asked for and that the caller may see.
pub async fn seen(sight: &Sight, ledger: &Ledger, wanted: &Wanted) -> Result<Vec<Scope>, Problem> {
    let scopes = ledger.scopes().await?.into_iter();
    sight
        .cut_scopes(scopes.filter(|scope| wanted.has(scope)).collect())
        .await
}

pub fn read(parameters: Result<Parsed<Parameters>, QueryRejection>) -> Result<Parameters, Problem> {
    let Parsed(parameters) =
        parameters.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.body_text()))?;
    Ok(parameters)
}

/// The scopes that are asked for; what is empty may be anything.
pub struct Wanted {
    clusters: Vec<String>,
    kinds: Vec<&'static str>,
    namespaces: Vec<String>,
}

impl Wanted {
    /// What is recorded of a change.
    pub fn change(revision: &str, limit: usize) -> (Self, Filter) {
        let wanted = Self {
            clusters: Vec::new(),
            kinds: Vec::new(),
            namespaces: Vec::new(),
        };
        let filter = Filter {
            revision: Some(revision.to_owned()),
            limit,
            ..Filter::default()
        };
        (wanted, filter)
    }

    fn has(&self, scope: &Scope) -> bool {
        let any = |list: &[String], value: &String| list.is_empty() || list.contains(value);
        any(&self.clusters, &scope.cluster)
            && any(&self.namespaces, &scope.namespace)
            && (self.kinds.is_empty() || self.kinds.contains(&scope.kind.as_str()))
    }
}

impl Parameters {
    pub fn filter(&self, now: Timestamp) -> Result<(Wanted, Filter), Problem> {
        for (name, value) in [
            ("cluster", &self.cluster),
            ("kind", &self.kind),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("revision", &self.revision),
            ("after", &self.after),
            ("by", &self.by),
            ("username", &self.username),
        ] {
            if value.len() > MAX_PARAMETER || value.contains('\0') {
                return Err(wrong(
                    name,
                    &format!("it is longer than {MAX_PARAMETER} bytes, or no text"),
                ));
            }
        }
        let kinds = words(&self.kind).map(|word| {
            let known = kind::named(word).map(|kind| kind.kind);
            known.ok_or_else(|| wrong("kind", "it is none of Flux or Windlass"))
        });
        let wanted = Wanted {
            clusters: words(&self.cluster).map(str::to_owned).collect(),
            kinds: kinds.collect::<Result<_, _>>()?,
            namespaces: words(&self.namespace).map(str::to_owned).collect(),
        };
        let outcome = match self.outcome.as_str() {
            "" => None,
            word => Some(
                Outcome::parse(word).ok_or_else(|| wrong("outcome", "it is not Succeeded, Failed or Gap"))?,
            ),
        };
        let limit = self.limit.unwrap_or(USUAL_LIMIT);
        if limit == 0 || limit > MAX_LIMIT {
            return Err(wrong("limit", &format!("it must be from 1 to {MAX_LIMIT}")));
        }
        let after = match self.after.split_once('/') {
            None if self.after.is_empty() => None,
            found => {
                let parsed = found.and_then(|(ended, id)| Some((ended.parse().ok()?, id.to_owned())));
                Some(parsed.ok_or_else(|| wrong("after", "it is not the `next` of a page"))?)
            }
        };
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let filter = Filter {
            name: given(&self.name),
            outcome,
            revision: given(&self.revision),
            since: time("since", &self.since, now)?,
            until: time("until", &self.until, now)?,
            after,
            limit,
        };
        Ok((wanted, filter))
    }

    /// Who did it, if that was asked.
    pub fn username(&self) -> Option<&str> {
        Some(self.username.as_str()).filter(|name| !name.is_empty())
    }

    /// What ended in the half year before a time.
    pub fn before(at: Timestamp) -> Self {
        let since = at.checked_sub(HALF_A_YEAR).unwrap_or(Timestamp::MIN);
        Self {
            since: since.to_string(),
            until: at.to_string(),
            ..Self::default()
        }
    }

    /// Those that a page lets one give, as they were given.
    pub fn given(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("cluster", &self.cluster),
            ("kind", &self.kind),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("outcome", &self.outcome),
            ("revision", &self.revision),
            ("since", &self.since),
            ("until", &self.until),
        ];
        all.map(|(name, value)| (name, value.clone())).into()
    }

    fn by(&self) -> Result<By, Problem> {
        match self.by.split_once(':') {
            Some(("label", key)) if !key.is_empty() => Ok(By::Label(key.to_owned())),
            _ => match self.by.as_str() {
                "" => Ok(By::All),
                "cluster" => Ok(By::Cluster),
                "namespace" => Ok(By::Namespace),
                "app" => Ok(By::App),
                _ => Err(wrong("by", "it is not cluster, namespace, app or label:KEY")),
            },
        }
    }
}

pub fn time(name: &str, text: &str, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    let read = window::time(text, now);
    read.map(Some).map_err(|error| wrong(name, &error.to_string()))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn wrong(parameter: &str, problem: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, format!("{parameter}: {problem}"))
}
