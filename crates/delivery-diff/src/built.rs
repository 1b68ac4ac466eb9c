//! Builds a folder of the content as apply-controller would: with the cluster's variables, and with
//! encrypted files decrypted if the keys are at hand.
//!
//! Nothing that was decrypted is quoted: kustomize and the variables name what they choke on.

use std::collections::HashMap;

use api::kustomize::{Kustomization, KustomizationSpec};
use api::meta::ValuesKind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flux_spec::build::Data;
use kube::ResourceExt as _;
use kustomize_build::{FileSystem, MemoryFs, OverlayFs};
use manifest::{Object, ObjectId};
use serde_json::Value;
use sops::flux::object as encrypted;
use sops::flux::sources::{self, EncryptedFile};

use crate::keys::{self, Keys};
use crate::report::WITHHELD;
use crate::world::World;

/// Built objects.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) objects: Vec<Object>,
    /// Objects whose content is encrypted.
    pub(crate) closed: Vec<Closed>,
    pub(crate) notes: Vec<String>,
    /// True if values that came from Secrets may be anywhere in the objects.
    pub(crate) is_confidential: bool,
}

/// An object that cannot be decrypted here.
pub(crate) struct Closed {
    pub(crate) id: ObjectId,
    /// File and line of its manifest.
    pub(crate) file: Option<String>,
    /// Why it cannot be.
    pub(crate) why: String,
}

/// Builds a folder of the content, for a Kustomization that may hold what came from Secrets itself.
pub(crate) async fn build(
    world: &World,
    object: &Kustomization,
    folder: &str,
    is_confidential: bool,
) -> Result<Built, String> {
    let spec = &object.spec;
    let mut built = Built {
        is_confidential,
        ..Built::default()
    };
    let keys = keys::keys_of(world, object).await;
    let plain = match &keys {
        Some(keys) => open_files(&*world.content, folder, spec, keys, &mut built).await?,
        None => MemoryFs::default(),
    };
    let secrets = match (is_confidential, built.is_confidential) {
        (true, _) => Secrets::InSpec,
        (false, true) => Secrets::InFiles,
        (false, false) => Secrets::None,
    };
    let mut objects = make(&*world.content, plain, folder, spec, secrets)?;
    if let Some(keys) = &keys {
        open_objects(&mut objects, keys, &mut built).await?;
    }
    substitute(world, object, &mut objects, &mut built).await?;
    flux_spec::build::refuse_encrypted(&objects).map_err(|error| error_chain::chain(&error))?;
    built.objects = objects;
    Ok(built)
}

/// Decrypts the files that the kustomizations name. Those that stay closed are built with as they are, and told.
async fn open_files(
    tree: &dyn FileSystem,
    folder: &str,
    spec: &KustomizationSpec,
    keys: &Keys,
    built: &mut Built,
) -> Result<MemoryFs, String> {
    let mut plain = MemoryFs::default();
    for file in encrypted_files(tree, folder, spec)? {
        // Of a file that stays closed the cluster has the content, in whatever is made of it.
        built.is_confidential = true;
        match sources::decrypt(&keys.decryptor, std::slice::from_ref(&file)).await {
            Ok(opened) => {
                for (path, content) in opened {
                    plain.insert(path, content);
                }
            }
            Err(error) => {
                let why = why_closed(&error, keys);
                built.notes.push(format!("{}: {why}", file.path()));
            }
        }
    }
    Ok(plain)
}

/// As Flux, looks for them from the kustomization that the build will start from.
fn encrypted_files(
    tree: &dyn FileSystem,
    folder: &str,
    spec: &KustomizationSpec,
) -> Result<Vec<EncryptedFile>, String> {
    let generated =
        flux_spec::build::generate(tree, folder, spec).map_err(|error| error_chain::chain(&error))?;
    let mut added = MemoryFs::default();
    added.insert(generated.path, generated.contents);
    sources::read(&OverlayFs::new(tree, added), folder).map_err(|error| error_chain::chain(&error))
}

fn make(
    tree: &dyn FileSystem,
    plain: MemoryFs,
    folder: &str,
    spec: &KustomizationSpec,
    secrets: Secrets,
) -> Result<Vec<Object>, String> {
    let built = flux_spec::build::build(&OverlayFs::new(tree, plain), folder, spec);
    let error = match built {
        Ok(objects) => return Ok(objects),
        Err(error) => error_chain::chain(&error),
    };
    // If the files as they lie there fail alike, the words are made of what everybody can read.
    let is_public = || {
        flux_spec::build::build(tree, folder, spec).is_err_and(|public| error_chain::chain(&public) == error)
    };
    match secrets {
        Secrets::None => Err(error),
        Secrets::InFiles if is_public() => Err(error),
        Secrets::InFiles => Err(
            "failed to build with the decrypted files; the words are withheld, since they may quote them"
                .to_owned(),
        ),
        Secrets::InSpec => Err(format!("failed to build it: {WITHHELD}")),
    }
}

/// Where the words of a failed build may have secrets from.
enum Secrets {
    None,
    InFiles,
    /// They are part of the spec, put there by the object that applies it.
    InSpec,
}

/// Decrypts the objects that are encrypted, and takes out those that stay closed.
async fn open_objects(objects: &mut Vec<Object>, keys: &Keys, built: &mut Built) -> Result<(), String> {
    let mut open = Vec::with_capacity(objects.len());
    for mut object in objects.drain(..) {
        let mut close = |why| {
            let file = object.origin().map(ToString::to_string);
            let id = object.id();
            built.closed.push(Closed { id, file, why });
        };
        match encrypted::decrypt(&keys.decryptor, object.value()).await {
            Ok(None) if holds_encrypted(&object) => close(CLOSED.to_owned()),
            Ok(None) => open.push(object),
            Ok(Some(decrypted)) => {
                *object.value_mut() = decrypted;
                // Names may change after this, when variables are substituted, so no object is told from the others by its own.
                built.is_confidential = true;
                open.push(object);
            }
            Err(error) => close(why_closed(&error, keys)),
        }
    }
    *objects = open;
    Ok(())
}

const CLOSED: &str = "it is made of an encrypted file that cannot be decrypted here";

fn why_closed(error: &dyn std::error::Error, keys: &Keys) -> String {
    let problem = keys.problem.as_ref().map(|problem| format!(" ({problem})"));
    format!(
        "encrypted with SOPS, and cannot be decrypted here: {}{}",
        error_chain::chain(error),
        problem.unwrap_or_default()
    )
}

/// Returns whether ciphertext of SOPS is in an object, as text or as the data of a Secret.
fn holds_encrypted(object: &Object) -> bool {
    const MARK: &str = "ENC[AES256_GCM,";
    fn is_in(value: &Value) -> bool {
        match value {
            Value::String(text) => {
                let decoded = || {
                    STANDARD
                        .decode(text)
                        .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(MARK))
                };
                text.contains(MARK) || decoded()
            }
            Value::Array(items) => items.iter().any(is_in),
            Value::Object(fields) => fields.values().any(is_in),
            _ => false,
        }
    }
    let is_data = |field: &str| object.value().get(field).is_some_and(is_in);
    ["data", "stringData", "binaryData"].into_iter().any(is_data)
}

async fn substitute(
    world: &World,
    object: &Kustomization,
    objects: &mut [Object],
    built: &mut Built,
) -> Result<(), String> {
    let Some(post_build) = &object.spec.post_build else {
        return Ok(());
    };
    let namespace = object.namespace().unwrap_or_default();
    let mut found: HashMap<(bool, String), Data> = HashMap::new();
    for reference in &post_build.substitute_from {
        let is_secret = reference.kind == ValuesKind::Secret;
        let data = world.data(reference.kind, &namespace, &reference.name).await?;
        // What the cluster has may be made of a Secret that would go, so that one counts as well.
        built.is_confidential |= world.holds_secrets(reference.kind, &namespace, &reference.name);
        found.insert((is_secret, reference.name.clone()), data);
    }
    let mode = if world.strict {
        flux_spec::build::Mode::Strict
    } else {
        flux_spec::build::Mode::Lenient
    };
    let done = flux_spec::build::substitute(objects, post_build, mode, &|reference| {
        let key = (reference.kind == ValuesKind::Secret, reference.name.clone());
        found.get(&key).cloned().flatten()
    });
    done.map_err(|error| not_substituted(&error, built.is_confidential))
}

fn not_substituted(error: &flux_spec::build::Error, is_confidential: bool) -> String {
    match error {
        error if !is_confidential => error_chain::chain(error),
        flux_spec::build::Error::PostBuild { object, .. } => {
            format!("failed to substitute variables in {object}: {WITHHELD}")
        }
        _ => format!("failed to substitute variables: {WITHHELD}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_of_secrets_are_not_quoted_when_they_do_harm() {
        let post_build = serde_json::from_value(json!({"substitute": {"word": "hunter2: [\n- x"}})).unwrap();
        let Value::Object(map) = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {"key": "${word}", "other": "${word:="}})
        else {
            panic!("no object")
        };
        let mut objects = [Object::new(map, None)];
        let failed = flux_spec::build::substitute(
            &mut objects,
            &post_build,
            flux_spec::build::Mode::Lenient,
            &|_| None,
        );
        let error = failed.unwrap_err();
        let told = not_substituted(&error, true);
        assert!(!told.contains("hunter2") && told.contains("withheld"), "{told}");
        assert_eq!(not_substituted(&error, false), error_chain::chain(&error));
    }

    #[test]
    fn ciphertext_is_seen_in_text_and_in_data() {
        let object = |value: Value| match value {
            Value::Object(map) => Object::new(map, None),
            _ => panic!("no object"),
        };
        let cipher = "A=ENC[AES256_GCM,data:x,iv:y]";
        assert!(holds_encrypted(&object(
            json!({"kind": "ConfigMap", "data": {"a": cipher}})
        )));
        assert!(holds_encrypted(&object(
            json!({"kind": "Secret", "data": {"a": STANDARD.encode(cipher)}})
        )));
        assert!(!holds_encrypted(&object(
            json!({"kind": "Secret", "data": {"a": "YQ=="}, "metadata": {"name": "a"}})
        )));
    }
}
