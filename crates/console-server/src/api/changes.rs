//! `…/manifest`: where the manifest of an object is; `/api/v1/changes`: what another text would change, and the pull request for it.

use api::delivery::{FileChange, ManifestReference};
use axum::Json;
use axum::extract::Path;
use axum::extract::rejection::JsonRejection;
use delivery_diff::{Line, Section, Summary, hunks};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::actions::Named;
use super::diff::shown;
use super::object::find;
use crate::caller::Signed;
use crate::changes::{self, Place, Words};
use crate::problem::Problem;

/// Bytes of a request.
pub const MAX_BODY: usize = 512 << 10;

/// The manifest of an object, and where it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The Kustomization that applied the object.
    pub kustomization: Place,
    /// The GitRepository from which that is built.
    pub repository: Place,
    /// The revision that was looked at.
    pub revision: String,
    /// Path of the file in the repository.
    pub path: String,
    /// Whether the file is outside of the folder of the Kustomization: others may use it, too.
    pub is_outside: bool,
    /// The manifest, as the file names it: apiVersion, kind, name and namespace.
    #[schema(value_type = Object)]
    pub object: ManifestReference,
    /// SHA-256 of its text.
    pub digest: String,
    /// Its text, with its comments.
    pub content: String,
    /// ChangePolicies under which it can be changed.
    pub policies: Vec<Place>,
}

/// What is to be changed, and how it is proposed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Change {
    pub cluster: String,
    /// The Kustomization that applies the manifests.
    pub kustomization: Place,
    /// Files as in a ChangeRequest: path and content; for a manifest that is there also object and digest.
    #[schema(value_type = Vec<Object>)]
    pub files: Vec<FileChange>,
    /// The ChangePolicy. The ChangeRequest is made in its namespace. Not needed for a dry run.
    #[serde(default)]
    pub policy: Place,
    /// Title of the pull request. Not needed for a dry run.
    #[serde(default)]
    pub title: String,
    /// Why the change is wanted; at most 1,000 bytes.
    #[serde(default)]
    pub reason: String,
    /// Only say what it would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// What was proposed; of a dry run, what it would change.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The ChangeRequest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Named>,
    /// The revision that was looked at.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The lines that change in files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// How many objects would be created, changed, recreated, pruned and so on.
    #[schema(value_type = Object)]
    pub summary: Summary,
    /// Objects that would change: object, action, file, message, and fields with path, old, new and setBy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub objects: Vec<Value>,
    /// Kustomizations and HelmReleases that could not be built, and limitations of the comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The lines of a file that change.
#[derive(Debug, Serialize, ToSchema)]
pub struct File {
    /// Its path in the repository.
    pub path: String,
    /// Lines with ` `, `-` or `+` before them, and `@@ … @@` before each place.
    pub lines: Vec<String>,
}

/// Where the manifest of an object is in Git: the file and its text. The object must have been applied by a Kustomization that is built from a
/// GitRepository.
///
/// Requires `get` on the object, the Kustomization and the GitRepository.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{cluster}/{kind}/{namespace}/{name}/manifest",
    tag = "changes",
    params(
        ("cluster", description = "Cluster"), ("kind", description = "Kind, such as HelmRelease or hr"),
        ("namespace", description = "Namespace"), ("name", description = "Name"),
    ),
    responses(
        (status = 200, description = "The manifest", body = Manifest),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not get it, whether it is there or not", body = Problem),
        (status = 404, description = "It does not exist", body = Problem),
        (status = 409, description = "No file has it, or several have it", body = Problem),
        (status = 422, description = "This console does not ask as its callers, or not in this cluster", body = Problem),
        (status = 429, description = "You have another comparison under way", body = Problem),
        (status = 503, description = "The cluster does not say what you may get, or it takes too long", body = Problem),
    ),
)]
pub async fn manifest(
    signed: Signed,
    named: Path<(String, String, String, String)>,
) -> Result<Json<Manifest>, Problem> {
    let (key, object) = find(&signed, named).await?;
    let found = changes::manifest_of(&signed.sight, &key, object).await?;
    let policies = changes::policies(&signed.sight, &key.cluster, &found.repository).await?;
    let place = |id: &manifest::ObjectId| Place {
        namespace: id.namespace.clone(),
        name: id.name.clone(),
    };
    Ok(Json(Manifest {
        kustomization: place(&found.kustomization),
        repository: place(&found.repository),
        revision: found.revision,
        path: found.file,
        is_outside: found.is_outside,
        object: found.object,
        digest: manifest_edit::digest(&found.text),
        content: found.text,
        policies,
    }))
}

/// Propose a change of manifests: a ChangeRequest is made, and pipeline-controller opens the pull request. With `dryRun`, nothing is written, and the answer says
/// what the change would do in the files and in the cluster.
///
/// Requires `create` on ChangeRequests in the namespace of the ChangePolicy; for a dry run what `…/diff` requires.
#[utoipa::path(
    post,
    path = "/api/v1/changes",
    tag = "changes",
    request_body = Change,
    responses(
        (status = 200, description = "What was proposed, or what it would change", body = Changed),
        (status = 400, description = "It cannot be understood, or the API server does not accept it", body = Problem),
        (status = 401, description = "No token, or one that is not accepted", body = Problem),
        (status = 403, description = "You may not create ChangeRequests there", body = Problem),
        (status = 404, description = "There are no ChangeRequests in this cluster", body = Problem),
        (status = 409, description = "A file or its content is not accepted, or was changed since it was read", body = Problem),
        (status = 413, description = "It is too large", body = Problem),
        (status = 422, description = "This console does not ask as its callers, or not in this cluster", body = Problem),
        (status = 429, description = "Another request of yours is under way", body = Problem),
        (status = 503, description = "It cannot be recorded, or it takes too long", body = Problem),
    ),
)]
pub async fn change(
    signed: Signed,
    change: Result<Json<Change>, JsonRejection>,
) -> Result<Json<Changed>, Problem> {
    let Json(change) = change.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let wanted = changes::Wanted {
        cluster: change.cluster,
        kustomization: change.kustomization,
        files: change.files,
    };
    if change.dry_run {
        return preview(&signed, &wanted).await.map(Json);
    }
    let words = Words {
        policy: change.policy,
        title: change.title,
        reason: change.reason,
    };
    let made = changes::propose(&signed.sight, wanted, words).await?;
    let request = Some(Named {
        cluster: made.cluster.to_string(),
        kind: made.kind.kind().to_owned(),
        namespace: made.namespace,
        name: made.name,
    });
    Ok(Json(Changed {
        request,
        ..Changed::default()
    }))
}

/// What a change would do.
pub async fn preview(signed: &Signed, wanted: &changes::Wanted) -> Result<Changed, Problem> {
    let found = changes::preview(&signed.sight, wanted).await?;
    let edited: Vec<String> = wanted.files.iter().map(|file| file.path.clone()).collect();
    let changed = found.files;
    // Comparing texts line by line takes processor time and memory.
    let comparing = move || {
        let changed = changed.into_iter();
        let files = changed.map(|(path, old, new)| File {
            lines: lines(&old, &new, edited.contains(&path)),
            path,
        });
        files.collect()
    };
    let files = signed.sight.in_turn(comparing).await?;
    let of = |section: &Section| {
        section
            .error
            .as_ref()
            .map(|error| format!("{}: {error}", section.object))
    };
    let errors = found.sections.iter().filter_map(of);
    let notes = found
        .sections
        .iter()
        .flat_map(|section| section.notes.iter().cloned());
    let objects = found.sections.iter().flat_map(|section| &section.objects);
    Ok(Changed {
        request: None,
        revision: found.revision,
        files,
        summary: Summary::from_sections(&found.sections),
        objects: objects.map(|entry| shown(entry, false)).collect(),
        notes: errors.chain(notes).collect(),
    })
}

/// The lines that differ. Of a file that lists others, those around them are not the caller's.
fn lines(old: &str, new: &str, has_context: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for hunk in hunks(old, new) {
        if has_context {
            lines.push(hunk.header);
        }
        for line in hunk.lines {
            match line {
                Line::Same(line) if has_context => lines.push(format!(" {line}")),
                Line::Same(_) => {}
                Line::Old(line) => lines.push(format!("-{line}")),
                Line::New(line) => lines.push(format!("+{line}")),
            }
        }
    }
    lines
}
