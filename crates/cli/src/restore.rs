//! `windlass restore`: applies what `windlass export --all --out` has written to another cluster.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use delivery_graph::kind;
use manifest::order::compare_for_apply;
use manifest::{Object, ObjectId, read_objects};
use sops::{Decryptor, Format, Integrity};

use crate::cluster::{self, ClusterFlags, Failure, print};
use crate::folder;
use crate::platform::plan::{self, Change};
use crate::platform::{Platform, objects};
use crate::secrets::identities;

/// The fields of this manager become those of the Kustomization that delivers an object, which would otherwise never remove one.
const FIELD_MANAGER: &str = "kubectl";
const SUSPENDED: &str = "suspend";

/// Command line of `restore`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Folder written by `windlass export --all --out FOLDER`
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// File with a private key of age or OpenPGP, for encrypted Secrets; defaults to $SOPS_AGE_KEY, $SOPS_AGE_KEY_FILE, ~/.config/sops/age/keys.txt
    #[arg(long, value_name = "FILE")]
    identity: Vec<PathBuf>,

    /// Restore all objects suspended, for a look before `windlass resume`
    #[arg(long)]
    suspended: bool,

    /// List what would change without changing it
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Restores.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let decryptor = Decryptor::new(identities::find(&flags.identity)?, Integrity::Checked);
    let mut paths = folder::files(&flags.folder)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    cluster::run(&flags.cluster, async |cluster| {
        let mut all = Vec::new();
        for path in &paths {
            all.extend(read(path, &decryptor).await?);
        }
        if all.is_empty() {
            return Err(Failure::NotReady(format!(
                "there are no manifests in {}",
                flags.folder.display()
            )));
        }
        sort(&mut all);
        if flags.suspended {
            all.iter_mut().for_each(suspend);
        }
        let platform = Platform::new(&cluster);
        let mut failed = 0;
        for object in all {
            let id = object.id();
            match restore(&platform, object, flags.dry_run).await {
                Ok(change) => print(&format!("{id} {}\n", word(change, flags.dry_run)))?,
                Err(failure) => {
                    failed += 1;
                    report_line(&format!("{id}: {failure}"));
                }
            }
        }
        match failed {
            0 => Ok(()),
            failed => Err(Failure::Incomplete(format!(
                "{failed} objects were not restored: fix the cause and run it again; `windlass install` adds missing kinds"
            ))),
        }
    })
}

/// Namespaces first, then Secrets and ConfigMaps, then what needs them: sources before what delivers from them.
fn sort(objects: &mut [Object]) {
    let place = |id: &ObjectId| {
        let mut kinds = kind::ALL.iter();
        kinds.position(|kind| kind.kind == id.kind && kind.group == id.group)
    };
    objects.sort_by(|one, other| compare_for_apply(&one.id(), &other.id()));
    objects.sort_by_key(|object| place(&object.id()).map_or(0, |place| place + 1));
}

fn word(change: Change, dry_run: bool) -> &'static str {
    match (change, dry_run) {
        (Change::Created, false) => "created",
        (Change::Created, true) => "would be created",
        (Change::Unchanged, _) => "unchanged",
        (_, false) => "configured",
        (_, true) => "would be configured",
    }
}

async fn restore(platform: &Platform, object: Object, dry_run: bool) -> Result<Change, Failure> {
    let namespace = object.namespace().to_owned();
    let located = objects::locate(&platform.client, platform.engine.mapper(), object, &namespace).await?;
    let before = located.live().await?;
    let Some(before) = before else {
        // In a namespace that is not there yet, not even a trial succeeds.
        if !dry_run {
            located.apply(FIELD_MANAGER, false).await?;
        }
        return Ok(Change::Created);
    };
    let after = located.apply(FIELD_MANAGER, dry_run).await?;
    Ok(match plan::content(before) == plan::content(after) {
        true => Change::Unchanged,
        false => Change::Changed,
    })
}

/// Suspends an object, if it is one that can be.
fn suspend(object: &mut Object) {
    let id = object.id();
    let can_be = kind::exact(&id.kind).is_some_and(|kind| kind.suspends && kind.group == id.group);
    if can_be
        && let Some(spec) = object
            .value_mut()
            .get_mut("spec")
            .and_then(|spec| spec.as_object_mut())
    {
        spec.insert(SUSPENDED.to_owned(), true.into());
    }
}

/// Returns whether a file of `export` is encrypted as a whole: one with an encrypted text among its values is not.
fn is_encrypted(content: &[u8]) -> bool {
    let mut lines = content.split(|byte| *byte == b'\n');
    Format::Yaml.is_encrypted(content) && lines.any(|line| line == b"sops:")
}

async fn read(path: &Path, decryptor: &Decryptor) -> Result<Vec<Object>, Failure> {
    let failed = |problem: String| Failure::Usage(format!("{}: {problem}", path.display()));
    let mut content = fs::read(path).map_err(|error| failed(error.to_string()))?;
    if is_encrypted(&content) {
        let decrypted = decryptor.decrypt(&content, Format::Yaml).await;
        content = decrypted.map_err(|error| failed(error.to_string()))?;
    }
    let text = String::from_utf8(content).map_err(|_| failed("it is no UTF-8".to_owned()))?;
    read_objects(&text, &path.display().to_string()).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str) -> Object {
        let value =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": {"a": 1}});
        objects::of_value(&value)
    }

    #[test]
    fn what_is_needed_comes_first() {
        let mut all = vec![
            object("notification.toolkit.fluxcd.io/v1beta3", "Alert"),
            object("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
            object("my.example.com/v1", "Own"),
            object("source.toolkit.fluxcd.io/v1", "GitRepository"),
            object("v1", "Secret"),
            object("v1", "Namespace"),
        ];
        sort(&mut all);
        let kinds: Vec<_> = all.iter().map(|object| object.id().kind).collect();
        assert_eq!(
            kinds,
            [
                "Namespace",
                "Secret",
                "Own",
                "GitRepository",
                "Kustomization",
                "Alert"
            ]
        );
    }

    #[tokio::test]
    async fn a_manifest_with_an_encrypted_text_in_it_is_plain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n    sops:\n      mac: ENC[AES256_GCM\n";
        fs::write(&path, text).unwrap();
        let decryptor = Decryptor::new(sops::Keys::default(), Integrity::Checked);
        assert_eq!(read(&path, &decryptor).await.unwrap()[0].id().name, "a");
        // And one that is encrypted never becomes an object as it is.
        fs::write(&path, "kind: Secret\nsops:\n    mac: ENC[AES256_GCM\n").unwrap();
        assert!(read(&path, &decryptor).await.is_err());
    }

    #[test]
    fn only_what_can_be_suspended_is() {
        for (api_version, kind, expected) in [
            ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", true),
            ("kustomize.config.k8s.io/v1beta1", "Kustomization", false),
            ("v1", "Secret", false),
        ] {
            let mut object = object(api_version, kind);
            suspend(&mut object);
            assert_eq!(
                object.into_value()["spec"]["suspend"] == true,
                expected,
                "{api_version}"
            );
        }
    }
}
