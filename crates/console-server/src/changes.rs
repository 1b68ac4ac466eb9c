//! Changes of manifests that callers ask for: where a manifest is, what another text would change, and the ChangeRequest that proposes
//! it. Nothing goes past Git, and all of it is done as the caller (ADR 22).

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use api::delivery::{
    ChangeKind, ChangePolicySpec, ChangeRequest, ChangeRequestSpec, FileChange, KustomizationReference,
};
use api::meta::LocalObjectReference;
use axum::http::StatusCode;
use controller_kit::access_from;
use delivery_diff::{ChartFacts, Declared, Proposed, Reader, chart_facts, declared, proposed};
use delivery_graph::kind::{self, Kind};
use delivery_graph::one_line;
use fleet::picture::Known;
use fleet::row::{Key, Row};
use kube::api::{Api, PostParams};
use manifest::ObjectId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::actions::{self, Acted, Mode, Subject};
use crate::api::actions::{MAX_REASON, is_name, turn};
use crate::api::diff::one_at_a_time;
use crate::problem::Problem;
use crate::sight::{Answer, Sight};

/// As the ledger has it.
const PROPOSE: &str = "propose";
/// Characters of a title, and of the part of a name that is made of it.
const MAX_TITLE: usize = 200;
const MAX_SLUG: usize = 40;
/// Files of one change, and bytes of each: as the definition of ChangeRequest has it.
const MAX_FILES: usize = 20;
const MAX_CONTENT: usize = 65_536;
/// Kinds that may have a chart.
const CHARTS: [&str; 2] = ["OCIRepository", "HelmChart"];
/// Objects that are offered for a choice.
const MAX_OFFERED: usize = 200;

/// An object of a cluster, by namespace and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub namespace: String,
    pub name: String,
}

impl Place {
    /// Reads `namespace/name`.
    pub fn read(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        Some(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    fn check(&self, field: &str) -> Result<(), Problem> {
        match is_name(&self.namespace) && is_name(&self.name) {
            true => Ok(()),
            false => Err(wrong(format!("{field}: it is no namespace and name"))),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What is to be changed.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub cluster: String,
    /// The Kustomization that applies the manifests.
    pub kustomization: Place,
    pub files: Vec<FileChange>,
}

/// How it is proposed.
#[derive(Debug, Clone, Default)]
pub struct Words {
    /// The ChangePolicy. The ChangeRequest is made in its namespace.
    pub policy: Place,
    pub title: String,
    pub reason: String,
}

/// Whether changes can be proposed in a cluster by this console.
pub fn are_possible(sight: &Sight, cluster: &str) -> bool {
    let is_asked = matches!(sight.console.actions, Mode::Own | Mode::Impersonated);
    is_asked && sight.archives(cluster).is_ok() && sight.console.picture.is_served(change_request())
}

/// Where the manifest of an object is that the caller may get.
pub async fn manifest_of(sight: &Sight, key: &Key, object: Value) -> Result<Declared, Problem> {
    let (client, archives) = sight.as_the_caller(&key.cluster)?;
    let looking = one_at_a_time(sight, move || async move {
        declared(&Reader::new(client), &archives, &object).await
    });
    looking.await?.map_err(conflict)
}

/// What a change would do, in the files and in the cluster. Nothing is written.
pub async fn preview(sight: &Sight, wanted: &Wanted) -> Result<Proposed, Problem> {
    check(wanted)?;
    let (client, archives) = sight.as_the_caller(&wanted.cluster)?;
    let (id, files) = (
        id_of("Kustomization", &wanted.kustomization)?,
        wanted.files.clone(),
    );
    let looking = one_at_a_time(sight, move || async move {
        proposed(Reader::new(client), archives, &id, &files).await
    });
    looking.await?.map_err(conflict)
}

/// Makes the ChangeRequest, as the caller.
pub async fn propose(sight: &Sight, wanted: Wanted, words: Words) -> Result<Subject, Problem> {
    check(&wanted)?;
    words.policy.check("policy")?;
    let title = words.title.trim();
    if title.is_empty() || title.chars().count() > MAX_TITLE || title.contains(['\r', '\n']) {
        return Err(wrong(format!(
            "title: it must be one line of at most {MAX_TITLE} characters"
        )));
    }
    if words.reason.len() > MAX_REASON {
        return Err(wrong(format!("reason: it is longer than {MAX_REASON} bytes")));
    }
    let _turn = turn(sight)?;
    let client = sight.client_of_the_caller(&wanted.cluster)?;
    let judge = sight.judge(&wanted.cluster)?;
    let subject = Subject {
        cluster: Arc::from(&*wanted.cluster),
        kind: Acted::Flux(change_request()),
        namespace: words.policy.namespace.clone(),
        name: name_of(title),
    };
    let of =
        (wanted.kustomization.namespace != words.policy.namespace).then_some(wanted.kustomization.namespace);
    let reason = words.reason.trim().to_owned();
    let spec = ChangeRequestSpec {
        kustomization_ref: KustomizationReference {
            name: wanted.kustomization.name,
            namespace: of,
        },
        change_policy_ref: LocalObjectReference {
            name: words.policy.name,
        },
        title: title.to_owned(),
        reason: Some(reason.clone()).filter(|reason| !reason.is_empty()),
        requested_by: Some(judge.caller.username.clone()),
        files: wanted.files,
        ..ChangeRequestSpec::default()
    };
    let ledger = sight.console.ledger.as_ref();
    let said = match reason.is_empty() {
        true => title.to_owned(),
        false => format!("{title}: {reason}"),
    };
    let action = actions::action(&subject, PROPOSE, &sight.caller, &said);
    let unrecorded =
        |error: actions::Error| Problem::new(crate::api::actions::refusal(&error), error.to_string());
    actions::begin(ledger, &action).await.map_err(unrecorded)?;
    let api: Api<ChangeRequest> = Api::namespaced(client, &subject.namespace);
    let made = api
        .create(&PostParams::default(), &ChangeRequest::new(&subject.name, spec))
        .await;
    let made = made.map(drop).map_err(|error| refusal(&error));
    let message = made.as_ref().err().map(|problem| problem.message.clone());
    actions::end(ledger, &action, &message.unwrap_or_default()).await;
    made.map(|()| subject)
}

fn refusal(error: &kube::Error) -> Problem {
    let kube::Error::Api(status) = error else {
        tracing::warn!(%error, "a ChangeRequest did not reach its cluster");
        let message = "the API server does not answer; the log of the console says why";
        return Problem::new(StatusCode::BAD_GATEWAY, message);
    };
    let code = match status.code {
        403 => StatusCode::FORBIDDEN,
        400 | 422 => StatusCode::BAD_REQUEST,
        404 => StatusCode::NOT_FOUND,
        409 => StatusCode::CONFLICT,
        _ => StatusCode::BAD_GATEWAY,
    };
    Problem::new(
        code,
        format!("the API server refuses: {}", one_line(&status.message)),
    )
}

/// Rows of a kind in a cluster that the caller may get: one question for each namespace at most.
async fn rows(sight: &Sight, cluster: &str, kind: &'static Kind) -> Result<Vec<(Key, Arc<Row>)>, Problem> {
    let (_, rows) = sight
        .console
        .picture
        .rows_of(|key| &*key.cluster == cluster && key.kind() == kind);
    sight.cut(rows).await
}

fn place_of(key: &Key) -> Place {
    Place {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}

/// ChangePolicies under which the caller may have a repository changed, as far as they may get them.
pub async fn policies(sight: &Sight, cluster: &str, repository: &ObjectId) -> Result<Vec<Place>, Problem> {
    let picture = &sight.console.picture;
    let known = kind::kind_of(repository).map(|kind| {
        let key = Key::new(&Arc::from(cluster), kind, &repository.namespace, &repository.name);
        picture.object(&key)
    });
    let access = match &known {
        Some(Known::Whole(object)) => {
            let annotations = object.pointer("/metadata/annotations");
            annotations.and_then(|all| all.get(access_from::ANNOTATION)?.as_str())
        }
        _ => None,
    };
    let may_use = |namespace: &str| {
        namespace == repository.namespace
            || (access.is_some() && access_from::check(access, namespace, &repository.namespace).is_ok())
    };
    let is_by_request = |key: &Key| match picture.object(key) {
        Known::Whole(object) => {
            let spec = serde_json::from_value::<ChangePolicySpec>(object["spec"].clone());
            spec.is_ok_and(|spec| spec.kind == ChangeKind::PullRequest)
        }
        _ => false,
    };
    let Some(kind) = kind::exact("ChangePolicy") else {
        return Ok(Vec::new());
    };
    let rows = rows(sight, cluster, kind).await?;
    let usable = rows
        .iter()
        .map(|(key, _)| key)
        .filter(|key| may_use(&key.namespace) && is_by_request(key));
    Ok(usable.map(place_of).take(MAX_OFFERED).collect())
}

/// Kustomizations of a cluster that are built from a GitRepository, as far as the caller may get them.
pub async fn kustomizations(sight: &Sight, cluster: &str) -> Result<Vec<Place>, Problem> {
    let Some(kind) = kind::exact("Kustomization") else {
        return Ok(Vec::new());
    };
    let rows = rows(sight, cluster, kind).await?;
    let of_git = rows
        .iter()
        .filter(|(_, row)| row.source.starts_with("GitRepository/"));
    Ok(of_git.map(|(key, _)| place_of(key)).take(MAX_OFFERED).collect())
}

/// OCIRepositories and HelmCharts of a cluster, as far as the caller may get them. Whether what one has is a chart is seen when it is
/// chosen.
pub async fn charts(sight: &Sight, cluster: &str) -> Result<Vec<ObjectId>, Problem> {
    let mut found = Vec::new();
    for kind in CHARTS.into_iter().filter_map(kind::exact) {
        let rows = rows(sight, cluster, kind).await?;
        found.extend(rows.iter().map(|(key, _)| kind.id(&key.namespace, &key.name)));
    }
    found.truncate(MAX_OFFERED);
    Ok(found)
}

/// What a chart takes that the caller may get.
pub async fn chart(sight: &Sight, cluster: &str, of: &ObjectId) -> Result<ChartFacts, Problem> {
    let (client, archives) = sight.as_the_caller(cluster)?;
    let of = of.clone();
    let looking = one_at_a_time(sight, move || async move {
        chart_facts(&Reader::new(client), &archives, &of).await
    });
    looking.await?.map_err(conflict)
}

/// The repository and the folder from which a Kustomization is built, if the caller may get that.
pub async fn source_of(sight: &Sight, cluster: &str, of: &Place) -> Result<(ObjectId, String), Problem> {
    let absent = || {
        Problem::new(
            StatusCode::NOT_FOUND,
            format!("there is no Kustomization {of} that you may get"),
        )
    };
    of.check("kustomization")?;
    let kind = kind::exact("Kustomization").ok_or_else(absent)?;
    let key = Key::new(&Arc::from(cluster), kind, &of.namespace, &of.name);
    if sight.may_get(&key).await? != Answer::Yes {
        return Err(absent());
    }
    let Known::Whole(object) = sight.console.picture.object(&key) else {
        return Err(absent());
    };
    delivery_diff::place_of(&object).map_err(conflict)
}

/// The kind of what is made.
pub fn change_request() -> &'static Kind {
    static KIND: std::sync::LazyLock<&'static Kind> =
        std::sync::LazyLock::new(|| kind::exact("ChangeRequest").unwrap_or(&kind::ALL[0]));
    *KIND
}

fn check(wanted: &Wanted) -> Result<(), Problem> {
    wanted.kustomization.check("kustomization")?;
    if wanted.files.is_empty() || wanted.files.len() > MAX_FILES {
        return Err(wrong(format!("files: from 1 to {MAX_FILES} may be given")));
    }
    match wanted.files.iter().find(|file| file.content.len() > MAX_CONTENT) {
        Some(file) => Err(wrong(format!(
            "{:.200}: it is longer than {MAX_CONTENT} bytes",
            file.path
        ))),
        None => Ok(()),
    }
}

fn id_of(kind: &str, place: &Place) -> Result<ObjectId, Problem> {
    let kind = kind::exact(kind).ok_or_else(|| wrong(format!("{kind} is no known kind")))?;
    Ok(kind.id(&place.namespace, &place.name))
}

/// A name that is not taken, with the words of the title.
fn name_of(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        match c.is_ascii_alphanumeric() {
            true => slug.push(c),
            false if slug.is_empty() || slug.ends_with('-') => {}
            false => slug.push('-'),
        }
        if slug.len() >= MAX_SLUG {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    let slug = if slug.is_empty() { "change" } else { slug };
    let random = RandomState::new().hash_one(title) & 0xff_ffff;
    format!("{slug}-{random:06x}")
}

fn wrong(message: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, message)
}

fn conflict(message: String) -> Problem {
    Problem::new(StatusCode::CONFLICT, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_titles() {
        for (title, slug) in [
            ("Two replicas for web", "two-replicas-for-web"),
            ("  Ünïcode: ../x", "n-code-x"),
            ("!!", "change"),
            (&"a".repeat(100), &"a".repeat(40)),
        ] {
            let name = name_of(title);
            let (found, random) = name.rsplit_once('-').expect("it has a random part");
            assert_eq!(found, slug);
            assert!(is_name(&name) && random.len() == 6, "{name}");
        }
        assert_ne!(name_of("a"), name_of("a"));
    }
}
