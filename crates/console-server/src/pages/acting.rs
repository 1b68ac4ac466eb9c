//! What a form asks to be done. It is done by the API's own action, and the browser is sent back to where it was.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use console_pages::View;
use console_pages::outcomes::{self, Outcome};
use serde_json::{Value, json};
use url::form_urlencoded::parse;

use super::{html, refuse, view};
use crate::api::actions::{Named, Wanted, code, perform};
use crate::caller::Signed;
use crate::problem::Problem;
use crate::serve::Console;

/// The type of what forms send.
const FORM: &str = "application/x-www-form-urlencoded";

pub async fn act(
    State(console): State<Console>,
    signed: Result<Signed, Problem>,
    headers: HeaderMap,
    address: Uri,
    body: Bytes,
) -> Response {
    let mut view = view(&console, &headers, &address);
    match done(signed, &headers, &body, &mut view).await {
        Ok(response) => response,
        Err(problem) => refuse(&console, &view, &problem),
    }
}

async fn done(
    signed: Result<Signed, Problem>,
    headers: &HeaderMap,
    body: &[u8],
    view: &mut View,
) -> Result<Response, Problem> {
    let signed = signed?;
    signed.name().clone_into(&mut view.user);
    check_form(headers)?;
    let (wanted, back) = read(body)?;
    let items = perform(&signed.sight, &wanted).await?;
    if items.iter().all(|item| item.code == StatusCode::OK.as_u16()) {
        return Ok(Redirect::to(&back).into_response());
    }
    let outcomes: Vec<Outcome<'_>> = items
        .iter()
        .map(|item| Outcome {
            cluster: &item.object.cluster,
            kind: &item.object.kind,
            namespace: &item.object.namespace,
            name: &item.object.name,
            failed: (item.code != StatusCode::OK.as_u16()).then_some(item.message.as_str()),
        })
        .collect();
    let shown = outcomes::show(view, &outcomes, &back);
    Ok((code(&items), html(view, &shown)).into_response())
}

/// Refuses what is no form: other types come from programs, which have the API.
pub(super) fn check_form(headers: &HeaderMap) -> Result<(), Problem> {
    let sent = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    match sent.is_some_and(|sent| sent.split(';').next() == Some(FORM)) {
        true => Ok(()),
        false => Err(wrong("this is no form")),
    }
}

/// Reads what is to be done, and where the form was.
fn read(body: &[u8]) -> Result<(Wanted, String), Problem> {
    let mut objects = Vec::new();
    let mut back = String::new();
    let mut fields = json!({"objects": []});
    for (name, value) in parse(body) {
        match &*name {
            "object" => objects.push(Named::read(&value).ok_or_else(|| wrong("object: it names none"))?),
            "back" => back = value.into_owned(),
            "verb" | "reason" | "environment" | "duration" => {
                fields[&*name] = Value::String(value.into_owned());
            }
            "number" if value.is_empty() => {}
            "number" => {
                let number: u64 = value.parse().map_err(|_| wrong("number: it is none"))?;
                fields["number"] = number.into();
            }
            "withSource" | "force" | "reset" => fields[&*name] = Value::Bool(value == "true"),
            name => return Err(wrong(&format!("{name:.50}: there is no such field"))),
        }
    }
    if objects.is_empty() {
        return Err(wrong("select what it is to be done to"));
    }
    // Of a verb that it means nothing for, a field is passed over: the form has one for all.
    if fields["verb"] != "hold" {
        fields["duration"] = "".into();
    }
    if fields["verb"] != "reconcile" {
        for name in ["withSource", "force", "reset"] {
            fields[name] = Value::Bool(false);
        }
    }
    let mut wanted: Wanted = serde_json::from_value(fields).map_err(|error| wrong(&error.to_string()))?;
    wanted.objects = objects;
    Ok((wanted, local(back)))
}

/// The address if it is a page of the console, else the home page: a form redirects to no other site.
fn local(place: String) -> String {
    let is_plain = place.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    match place.starts_with('/') && !place.starts_with("//") && is_plain {
        true => place,
        false => "/".to_owned(),
    }
}

fn wrong(message: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read() {
        let body = b"object=eu%2F1%2FKustomization%2Fshop%2Fweb&object=a%2Fks%2Fb%2Fc&verb=suspend&reason=a+b&withSource=true&back=%2Fapps%3Fq%3Da";
        let (wanted, back) = read(body).unwrap_or_else(|problem| panic!("{}", problem.message));
        assert_eq!(wanted.objects.len(), 2);
        assert_eq!(
            (&*wanted.objects[0].cluster, &*wanted.objects[0].name),
            ("eu/1", "web")
        );
        assert_eq!(
            (&*wanted.reason, wanted.with_source, &*back),
            ("a b", false, "/apps?q=a")
        );
        for (body, message) in [
            (&b"verb=suspend"[..], "select what"),
            (b"object=a%2Fb&verb=suspend", "names none"),
            (b"object=a%2Fks%2Fb%2Fc&verb=delete", "unknown variant"),
            (b"object=a%2Fks%2Fb%2Fc&verb=suspend&x=1", "no such field"),
        ] {
            let problem = read(body).err().unwrap_or_else(|| panic!("{message}"));
            assert!(problem.message.contains(message), "{}", problem.message);
        }
    }

    #[test]
    fn nobody_is_sent_elsewhere() {
        for place in [
            "//evil.example.com",
            "https://evil.example.com",
            "/\\evil.example.com",
            "/a\r\nb",
            "",
        ] {
            assert_eq!(local(place.to_owned()), "/", "{place}");
        }
        assert_eq!(local("/apps?q=a%20b".to_owned()), "/apps?q=a%20b");
    }
}
