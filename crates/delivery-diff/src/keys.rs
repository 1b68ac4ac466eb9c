//! The keys for what is encrypted: those of the Kustomization's Secret, if it may be read, and those of age that this machine
//! has where `sops` looks for them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use api::kustomize::Kustomization;
use api::meta::ValuesKind;
use kube::ResourceExt as _;
use sops::flux::secret::Imported;
use sops::{Decryptor, Integrity};

use crate::world::World;

/// Keys for decryption, and why some are missing.
pub(crate) struct Keys {
    pub(crate) decryptor: Decryptor,
    pub(crate) problem: Option<String>,
}

/// The keys of a Kustomization; None if it asks for no decryption.
pub(crate) async fn keys_of(world: &World, object: &Kustomization) -> Option<Keys> {
    let decryption = object.spec.decryption.as_ref()?;
    let mut problem = None;
    let mut data = BTreeMap::new();
    if world.is_for_strangers {
        return Some(Keys {
            decryptor: Decryptor::new(Imported::default().into_keys(None), Integrity::Ignored),
            problem: Some("nothing is decrypted for a pull request".to_owned()),
        });
    }
    if let Some(reference) = &decryption.secret_ref {
        let namespace = object.namespace().unwrap_or_default();
        match world.data(ValuesKind::Secret, &namespace, &reference.name).await {
            Ok(Some(found)) => data = found,
            Ok(None) => problem = Some(format!("the Secret {namespace}/{} is not there", reference.name)),
            Err(why) => problem = Some(why),
        }
    }
    // The name says how it is read.
    data.extend(of_this_machine().map(|text| ("of-this-machine.agekey".to_owned(), text)));
    let imported = Imported::of_secret(&data).unwrap_or_else(|error| {
        problem = Some(error.to_string());
        Imported::default()
    });
    Some(Keys {
        // As in the controller: kustomize has changed most objects before they are decrypted.
        decryptor: Decryptor::new(imported.into_keys(None), Integrity::Ignored),
        problem,
    })
}

/// The keys of age that this machine has where `sops` looks for them: `SOPS_AGE_KEY`, `SOPS_AGE_KEY_FILE`,
/// `~/.config/sops/age/keys.txt`.
#[must_use]
pub fn of_this_machine() -> Option<Vec<u8>> {
    if let Some(keys) = env::var_os("SOPS_AGE_KEY") {
        return keys.into_string().ok().map(String::into_bytes);
    }
    let configured = || {
        let base = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let base = base.or_else(|| Some(env::home_dir()?.join(".config")))?;
        Some(base.join("sops/age/keys.txt"))
    };
    let path = env::var_os("SOPS_AGE_KEY_FILE").map(PathBuf::from);
    fs::read(path.or_else(configured)?).ok()
}
