//! The form of lists: `fields` leaves out what is not wanted, `format=csv` makes a table of all pages.
//!
//! It stands before the lists, which know nothing of it: each page that it asks for is cut to what the caller may see like any other.

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, LINK};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use fleet::charts::Released;
use fleet::csv;
use fleet::row::Row;
use fleet::running::Found;
use ledger::action::Action;
use ledger::delivery::Delivery;
use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, parse};
use utoipa::IntoParams;

use crate::problem::Problem;

/// Fields of one request, and bytes of a name.
const MAX_FIELDS: usize = 64;
const MAX_FIELD: usize = 320;
/// Rows of a table; a header says where to go on.
const MAX_ROWS: usize = 20_000;
/// Bytes of a page; they are rows of ours.
const MAX_PAGE: usize = 64 << 20;

/// The form of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(
    dead_code,
    reason = "for the description; what is sent is read from the address"
)]
pub struct Form {
    /// Fields of each row, separated by commas; `labels/KEY` is one label. All by default.
    fields: String,
    /// `json`, or `csv`: a table of all pages, or of one if there is a `limit`; if there are more, the header `Link` has the next one.
    format: String,
}

/// A list: the columns of its table, and the most rows of a page.
fn list(path: &str) -> Option<(&'static [&'static str], usize)> {
    Some(match path.strip_prefix("/api/v1/")? {
        "actions" => (Action::COLUMNS, 500),
        "charts" => (Released::COLUMNS, 0),
        "deliveries" => (Delivery::COLUMNS, 500),
        "objects" => (Row::COLUMNS, 500),
        "where" => (Found::COLUMNS, 1000),
        _ => return None,
    })
}

/// What is wanted of a list, and the parameters that are the list's own.
struct Wanted {
    fields: Vec<String>,
    is_csv: bool,
    rest: Vec<(String, String)>,
}

impl Wanted {
    /// None if the list is wanted as it is.
    fn read(query: &str) -> Result<Option<Self>, Problem> {
        let wrong = |message: &str| Problem::new(StatusCode::BAD_REQUEST, message);
        let (mut fields, mut format, mut rest) = (None, None, Vec::new());
        for (name, value) in parse(query.as_bytes()).into_owned() {
            match name.as_str() {
                "fields" => fields = Some(value),
                "format" => format = Some(value),
                _ => rest.push((name, value)),
            }
        }
        if fields.is_none() && format.is_none() {
            return Ok(None);
        }
        let is_csv = match format.as_deref() {
            None | Some("json") => false,
            Some("csv") => true,
            Some(_) => return Err(wrong("format: it is json or csv")),
        };
        let fields: Vec<String> = fields
            .iter()
            .flat_map(|fields| fields.split(','))
            .map(|field| field.trim().to_owned())
            .filter(|field| !field.is_empty())
            .collect();
        if fields.len() > MAX_FIELDS || fields.iter().any(|field| field.len() > MAX_FIELD) {
            return Err(wrong(
                "fields: there are more than 64, or one of more than 320 bytes",
            ));
        }
        Ok(Some(Self { fields, is_csv, rest }))
    }

    fn has(&self, name: &str) -> bool {
        self.rest.iter().any(|(other, _)| other == name)
    }
}

/// Gives a list the form that is wanted.
pub async fn shape(request: Request, next: Next) -> Response {
    let of_list = list(request.uri().path()).filter(|_| *request.method() == Method::GET);
    let Some((columns, most)) = of_list else {
        return next.run(request).await;
    };
    let wanted = match Wanted::read(request.uri().query().unwrap_or_default()) {
        Ok(Some(wanted)) => wanted,
        Ok(None) => return next.run(request).await,
        Err(problem) => return problem.into_response(),
    };
    let (parts, _) = request.into_parts();
    let formed = match wanted.is_csv {
        true => table(&parts, &next, wanted, columns, most).await,
        false => page(&parts, &next, &wanted).await,
    };
    formed.unwrap_or_else(|answer| answer)
}

/// A page with these fields of its rows.
async fn page(parts: &Parts, next: &Next, wanted: &Wanted) -> Result<Response, Response> {
    let mut page = ask(parts, next, &wanted.rest).await?;
    if let Some(items) = page.get_mut("items").and_then(Value::as_array_mut)
        && !wanted.fields.is_empty()
    {
        for item in items {
            let kept = wanted.fields.iter().filter_map(|name| {
                let value = csv::field(item, name);
                (!value.is_null()).then(|| (name.clone(), value.clone()))
            });
            *item = Value::Object(kept.collect::<Map<_, _>>());
        }
    }
    Ok(Json(page).into_response())
}

/// All pages as a table.
async fn table(
    parts: &Parts,
    next: &Next,
    mut wanted: Wanted,
    columns: &'static [&'static str],
    most: usize,
) -> Result<Response, Response> {
    let is_one_page = wanted.has("limit");
    if !is_one_page && most > 0 {
        wanted.rest.push(("limit".to_owned(), most.to_string()));
    }
    let mut rows = Vec::new();
    let after = loop {
        let mut page = ask(parts, next, &wanted.rest).await?;
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            rows.extend(items);
        }
        let after = page["next"].as_str().map(str::to_owned);
        wanted.rest.retain(|(name, _)| name != "after");
        match after {
            Some(after) if !is_one_page && rows.len() < MAX_ROWS => {
                wanted.rest.push(("after".to_owned(), after));
            }
            after => break after,
        }
    };
    let text = match wanted.fields.as_slice() {
        [] => csv::csv(columns, &rows),
        some => csv::csv(some, &rows),
    };
    let mut answer = text.into_response();
    let headers = answer.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/csv; charset=utf-8; header=present"),
    );
    if let Some(after) = after {
        let mut pairs = wanted.rest;
        pairs.retain(|(name, _)| is_one_page || name != "limit");
        pairs.push(("after".to_owned(), after));
        pairs.push(("format".to_owned(), "csv".to_owned()));
        pairs.push(("fields".to_owned(), wanted.fields.join(",")));
        let link = format!("<{}?{}>; rel=\"next\"", parts.uri.path(), encoded(&pairs));
        if let Ok(link) = HeaderValue::from_str(&link) {
            headers.insert(LINK, link);
        }
    }
    Ok(answer)
}

fn encoded(pairs: &[(String, String)]) -> String {
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Asks for a page. An answer that is none is the caller's.
async fn ask(parts: &Parts, next: &Next, pairs: &[(String, String)]) -> Result<Value, Response> {
    let lost = |_| {
        let message = "the answer cannot be formed: ask for less";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, message).into_response()
    };
    let uri = format!("{}?{}", parts.uri.path(), encoded(pairs)).parse::<Uri>();
    let wrong = |_| Problem::new(StatusCode::BAD_REQUEST, "the address is too long").into_response();
    let mut parts = parts.clone();
    parts.uri = uri.map_err(wrong)?;
    let answer = next.clone().run(Request::from_parts(parts, Body::empty())).await;
    if answer.status() != StatusCode::OK {
        return Err(answer);
    }
    let bytes = to_bytes(answer.into_body(), MAX_PAGE).await.map_err(lost)?;
    let lost = |_| {
        let message = "the answer cannot be formed";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, message).into_response()
    };
    serde_json::from_slice(&bytes).map_err(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_of_a_list_is_taken_out_of_its_parameters() {
        assert!(Wanted::read("kind=ks&limit=3").unwrap().is_none());
        let wanted = Wanted::read("filter=row.a+%26%26+b&format=csv&fields=name,%20labels/team,").unwrap();
        let wanted = wanted.unwrap();
        assert!(wanted.is_csv && !wanted.has("limit"));
        assert_eq!(wanted.fields, ["name", "labels/team"]);
        assert_eq!(wanted.rest, [("filter".to_owned(), "row.a && b".to_owned())]);
        assert!(Wanted::read("format=xml").is_err());
        assert!(Wanted::read(&format!("fields={}", "a,".repeat(65))).is_err());
        assert!(list("/api/v1/objects/a/ks/b/c").is_none() && list("/metrics").is_none());
    }
}
