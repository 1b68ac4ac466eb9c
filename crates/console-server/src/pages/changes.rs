//! Pages that change manifests through Git: forms for new objects, the manifest of an object, what another text would change, and the pull
//! request for it.

use std::collections::BTreeMap;
use std::time::Duration;

use api::delivery::FileChange;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use console_pages::changes::{self as shown, Around, Draft, Offered, Preview};
use console_pages::chart_values;
use console_pages::forms::Form;
use console_pages::{Shown, View, link};
use fleet::row::Key;
use url::form_urlencoded::parse;

use super::acting::check_form;
use super::place::Named;
use super::{html, refuse, view};
use crate::api::changes::{Changed, preview};
use crate::api::object::find;
use crate::caller::Signed;
use crate::changes::{self, Place, Wanted, Words};
use crate::problem::Problem;
use crate::serve::Console;

/// Bytes of a form: a manifest, with three bytes for each that is encoded.
pub const MAX_FORM: usize = 256 << 10;
/// How long a new object is waited for: it is there when its watch says so.
const PATIENCE: Duration = Duration::from_secs(2);

/// Which kinds there are forms for.
pub fn kinds(view: &View) -> Result<Shown, Problem> {
    enabled(view)?;
    Ok(shown::kinds(view))
}

/// A form for a new object.
pub async fn form(
    signed: &Signed,
    view: &View,
    kind: &str,
    (cluster, chart): (&str, &str),
) -> Result<Shown, Problem> {
    enabled(view)?;
    let form = Form::of(kind).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            format!("there is no form for a {kind:.50}"),
        )
    })?;
    let sight = &signed.sight;
    let all = sight.console.picture.clusters().into_iter();
    let clusters: Vec<String> = all
        .map(|cluster| cluster.name.to_string())
        .filter(|cluster| {
            changes::are_possible(sight, cluster)
                && sight.console.clusters.judge(cluster, &sight.caller).is_some()
        })
        .collect();
    let chosen = clusters.iter().find(|one| *one == cluster).or(clusters.first());
    let Some(chosen) = chosen else {
        let message = "changes cannot be proposed in any cluster from here";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message));
    };
    let kustomizations = named(&changes::kustomizations(sight, chosen).await?);
    let (mut charts, mut values, mut problem) = (Vec::new(), Vec::new(), None);
    if form.kind == "HelmRelease" {
        let all = changes::charts(sight, chosen).await?;
        if let Some(named) = all.iter().find(|one| one.to_string() == chart) {
            match changes::chart(sight, chosen, named).await {
                Ok(facts) => values = chart_values::fields(facts.schema.as_ref(), &facts.defaults),
                Err(error) => problem = Some(error.message),
            }
        }
        charts = all.iter().map(ToString::to_string).collect();
    }
    let offered = Offered {
        clusters: &clusters,
        cluster: chosen,
        kustomizations: &kustomizations,
        chart: charts.iter().find(|one| *one == chart).map_or("", String::as_str),
        charts: &charts,
        values: &values,
        problem: problem.as_deref(),
    };
    Ok(shown::form(view, form, &offered))
}

/// The manifest of an object, to be changed.
pub async fn edit(signed: &Signed, view: &View, of: Named) -> Result<Shown, Problem> {
    enabled(view)?;
    let (key, object) = find(signed, Path(of)).await?;
    let found = changes::manifest_of(&signed.sight, &key, object).await?;
    let policies = named(&changes::policies(&signed.sight, &key.cluster, &found.repository).await?);
    let draft = Draft {
        cluster: key.cluster.to_string(),
        kustomization: format!("{}/{}", found.kustomization.namespace, found.kustomization.name),
        path: found.file,
        object: serde_json::to_string(&found.object).unwrap_or_default(),
        digest: manifest_edit::digest(&found.text),
        content: found.text,
        title: format!("Change {}/{}", key.kind().kind, key.name),
        ..Draft::default()
    };
    let around = Around {
        revision: &found.revision,
        policies: &policies,
        is_outside: found.is_outside,
        ..Around::default()
    };
    Ok(shown::draft(view, &draft, &around))
}

/// What a form sends: a new object, a draft to be shown with what it would change, or one to be proposed.
pub async fn sent(
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
    enabled(view)?;
    check_form(headers)?;
    let fields: BTreeMap<String, String> = parse(body)
        .map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")))
        .collect();
    let draft = match fields.get("kind") {
        Some(kind) => begun(&signed, kind, &fields).await?,
        None => read(&fields),
    };
    let (wanted, words) = asked(&draft)?;
    if fields.get("step").is_some_and(|step| step == "propose") {
        return match changes::propose(&signed.sight, wanted, words).await {
            Ok(made) => {
                let kind = changes::change_request();
                let key = Key::new(&made.cluster, kind, &made.namespace, &made.name);
                arrived(&signed, &key).await;
                let page = link::object(&made.cluster, kind.kind, &made.namespace, &made.name);
                Ok(Redirect::to(&page).into_response())
            }
            // What was written is not lost.
            Err(problem) => again(&signed, view, &draft, Err(problem)).await,
        };
    }
    let found = preview(&signed, &wanted).await;
    again(&signed, view, &draft, found).await
}

/// Shows a draft again, with what it would change or why it cannot be changed so.
async fn again(
    signed: &Signed,
    view: &View,
    draft: &Draft,
    found: Result<Changed, Problem>,
) -> Result<Response, Problem> {
    let of = Place::read(&draft.kustomization).ok_or_else(|| wrong("kustomization: it names none"))?;
    let (repository, folder) = changes::source_of(&signed.sight, &draft.cluster, &of).await?;
    let policies = named(&changes::policies(&signed.sight, &draft.cluster, &repository).await?);
    let is_outside = !draft.object.is_empty() && !manifest_edit::is_within(&draft.path, &folder);
    let (status, problem) = match &found {
        Ok(_) => (StatusCode::OK, None),
        Err(problem) => (
            StatusCode::from_u16(problem.code).unwrap_or(StatusCode::CONFLICT),
            Some(problem.message.as_str()),
        ),
    };
    let files: Vec<(&str, &[String])> = match &found {
        Ok(found) => found
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.lines.as_slice()))
            .collect(),
        Err(_) => Vec::new(),
    };
    let around = Around {
        revision: found.as_ref().map_or("", |found| &found.revision),
        policies: &policies,
        is_outside,
        preview: found.as_ref().ok().map(|found| Preview {
            files: &files,
            objects: &found.objects,
            notes: &found.notes,
        }),
        problem,
    };
    let page = html(view, &shown::draft(view, draft, &around));
    Ok((status, page).into_response())
}

/// A draft of a new object.
async fn begun(signed: &Signed, kind: &str, fields: &BTreeMap<String, String>) -> Result<Draft, Problem> {
    let form = Form::of(kind).ok_or_else(|| wrong("kind: there is no form for it"))?;
    let of = |name: &str| {
        fields
            .get(name)
            .map(|text| text.trim().to_owned())
            .unwrap_or_default()
    };
    let content = form.manifests(fields).map_err(|problem| wrong(&problem))?;
    let (cluster, kustomization, name) = (of("cluster"), of("kustomization"), of("name"));
    let place = Place::read(&kustomization).ok_or_else(|| wrong("kustomization: choose one"))?;
    let (_, folder) = changes::source_of(&signed.sight, &cluster, &place).await?;
    let mut path = of("path");
    if path.is_empty() {
        let file = format!("{}-{name}.yaml", kind.to_lowercase());
        path = if folder.is_empty() {
            file
        } else {
            format!("{folder}/{file}")
        };
    }
    Ok(Draft {
        cluster,
        kustomization,
        path,
        content,
        title: format!("Add {kind}/{name}"),
        ..Draft::default()
    })
}

/// A draft as the page of one sends it.
fn read(fields: &BTreeMap<String, String>) -> Draft {
    let of = |name: &str| fields.get(name).cloned().unwrap_or_default();
    Draft {
        cluster: of("cluster"),
        kustomization: of("kustomization"),
        path: of("path").trim().to_owned(),
        object: of("object"),
        digest: of("digest"),
        content: of("content"),
        title: of("title"),
        reason: of("reason"),
        policy: of("policy"),
    }
}

fn asked(draft: &Draft) -> Result<(Wanted, Words), Problem> {
    let object = match draft.object.as_str() {
        "" => None,
        object => Some(serde_json::from_str(object).map_err(|_| wrong("object: it cannot be read"))?),
    };
    let file = FileChange {
        path: draft.path.clone(),
        digest: Some(draft.digest.clone()).filter(|_| object.is_some()),
        object,
        content: draft.content.clone(),
    };
    let wanted = Wanted {
        cluster: draft.cluster.clone(),
        kustomization: Place::read(&draft.kustomization)
            .ok_or_else(|| wrong("kustomization: it names none"))?,
        files: vec![file],
    };
    let words = Words {
        policy: Place::read(&draft.policy).unwrap_or_default(),
        title: draft.title.clone(),
        reason: draft.reason.clone(),
    };
    Ok((wanted, words))
}

/// Waits until the picture has a new object, so that its page is not missed.
async fn arrived(signed: &Signed, key: &Key) {
    let picture = &signed.sight.console.picture;
    let mut changes = picture.subscribe();
    let waiting = async {
        while picture.row(key).1.is_none() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        tracing::debug!(?key, "a new object is not in the picture yet");
    }
}

fn named(places: &[Place]) -> Vec<String> {
    places.iter().map(ToString::to_string).collect()
}

fn enabled(view: &View) -> Result<(), Problem> {
    let message = "this console proposes no changes: it must act as its callers (--actions=impersonated), and a cluster must have ChangeRequests";
    match view.has_changes {
        true => Ok(()),
        false => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message)),
    }
}

fn wrong(message: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, message)
}
