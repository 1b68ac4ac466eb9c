//! The private keys that the command decrypts with, found where `sops` finds them.

use std::fs;
use std::path::PathBuf;

use delivery_diff::keys::of_this_machine;
use sops::Keys;
use sops::age::Identities;
use sops::openpgp::SecretKeys;

use crate::cluster::Failure;

/// Reads the keys of these files; without any, those of age that this machine has.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Keys, Failure> {
    let (mut age, mut openpgp) = (Identities::default(), SecretKeys::default());
    if paths.is_empty()
        && let Some(text) = of_this_machine()
    {
        let imported = age.import(&String::from_utf8_lossy(&text));
        imported.map_err(|error| Failure::Usage(format!("the age keys of this machine: {error}")))?;
    }
    for path in paths {
        let failed = |problem: String| Failure::Usage(format!("{}: {problem}", path.display()));
        let content = fs::read(path).map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&content);
        if text.contains("-----BEGIN PGP PRIVATE KEY") {
            openpgp
                .import(&content)
                .map_err(|error| failed(error.to_string()))?;
        } else {
            age.import(&text).map_err(|error| failed(error.to_string()))?;
        }
    }
    let mut keys = Keys::default();
    keys.add(age);
    keys.add(openpgp);
    Ok(keys)
}
