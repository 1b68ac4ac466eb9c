//! Encrypted files of a repository, and the rules for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sops::age::Recipient;
use sops::rules::{self, FILE_NAME, Keys};
use sops::{Format, MAX_FILE_BYTES, MasterKey};

use super::write_in_place;
use crate::cluster::Failure;
use crate::folder;

/// A file that is encrypted with SOPS.
pub(super) struct Encrypted {
    pub(super) path: PathBuf,
    pub(super) content: Vec<u8>,
    pub(super) format: Format,
}

impl Encrypted {
    /// The keys that it has now.
    pub(super) fn keys(&self) -> Result<Keys, String> {
        let metadata = sops::Metadata::of(&self.content, self.format).map_err(|error| error.to_string())?;
        let mut keys = Keys {
            has_groups: metadata.key_groups.len() > 1,
            ..Keys::default()
        };
        for key in metadata.key_groups.iter().flatten() {
            match &key.master {
                MasterKey::Age { recipient } => {
                    let recipient = Recipient::parse(recipient).map_err(|error| error.to_string())?;
                    keys.recipients.push(recipient);
                }
                other => keys.others.push(other.to_string()),
            }
        }
        Ok(keys)
    }
}

/// Adds the encrypted files at a path. A path that is named must be encrypted, or a folder.
pub(super) fn find(path: &Path, found: &mut Vec<Encrypted>) -> Result<(), Failure> {
    let failed = |error| Failure::Usage(format!("{}: {error}", path.display()));
    if fs::metadata(path).map_err(failed)?.is_dir() {
        for path in folder::files(path)? {
            // `./a` is `a`.
            let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
            if fs::metadata(&path).map_err(failed)?.len() <= MAX_FILE_BYTES as u64 {
                found.extend(read(&path)?);
            }
        }
        return Ok(());
    }
    let file = read(path)?;
    let file =
        file.ok_or_else(|| Failure::Usage(format!("{}: it is not encrypted with SOPS", path.display())))?;
    found.push(file);
    Ok(())
}

/// Reads a file; None if it is not encrypted.
fn read(path: &Path) -> Result<Option<Encrypted>, Failure> {
    let content = fs::read(path);
    let content = content.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let format = match Format::of_path(&path.to_string_lossy()) {
        // The name says nothing, and documentation about SOPS may look encrypted.
        Format::Binary => {
            Format::of_encrypted(&content).filter(|format| sops::Metadata::of(&content, *format).is_ok())
        }
        format => Some(format).filter(|format| format.is_encrypted(&content)),
    };
    Ok(format.map(|format| Encrypted {
        path: path.to_owned(),
        content,
        format,
    }))
}

/// What the rules say about a file.
pub(super) enum Rule {
    Keys(Keys),
    /// Nothing, and why.
    None(String),
}

/// The rules of all folders, read once.
#[derive(Default)]
pub(super) struct Rules(BTreeMap<PathBuf, Option<rules::Rules>>);

impl Rules {
    /// Returns what the nearest `.sops.yaml` above a file says about it, up to the folder of the repository.
    pub(super) fn of(&mut self, path: &Path) -> Result<Rule, Failure> {
        let failed = |error| Failure::Usage(format!("{}: {error}", path.display()));
        let whole = fs::canonicalize(path).map_err(failed)?;
        for folder in whole.ancestors().skip(1) {
            let Some(rules) = self.in_folder(folder)? else {
                // A file above the repository may belong to another user.
                if folder.join(".git").exists() {
                    break;
                }
                continue;
            };
            let relative = whole.strip_prefix(folder).unwrap_or(&whole).to_string_lossy();
            return Ok(match rules.keys_for(&relative) {
                Some(keys) => Rule::Keys(keys.clone()),
                None => Rule::None(format!(
                    "no rule in {} matches it",
                    folder.join(FILE_NAME).display()
                )),
            });
        }
        Ok(Rule::None(format!("there is no {FILE_NAME} for it: use --age")))
    }

    fn in_folder(&mut self, folder: &Path) -> Result<Option<&rules::Rules>, Failure> {
        if !self.0.contains_key(folder) {
            let path = folder.join(FILE_NAME);
            let failed = |problem: String| Failure::Usage(format!("{}: {problem}", path.display()));
            let rules = match fs::read_to_string(&path) {
                Ok(text) => Some(rules::Rules::parse(&text).map_err(failed)?),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(failed(error.to_string())),
            };
            self.0.insert(folder.to_owned(), rules);
        }
        Ok(self.0.get(folder).and_then(Option::as_ref))
    }
}

/// Writes a content where a file was.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let written = write_in_place(path, content);
    written.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_encrypted_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let recipient =
            Recipient::parse("age14q8xuq8kmfg55mcngay6cfruj8ajapq6za990d9pmmce665e25sqywpguv").unwrap();
        let encrypted = |format| {
            let text = if format == Format::Json {
                "{\"a\": \"b\"}"
            } else {
                "a: b\n"
            };
            let now = jiff::Timestamp::UNIX_EPOCH;
            sops::encrypt(
                text.as_bytes(),
                format,
                std::slice::from_ref(&recipient),
                None,
                now,
            )
            .unwrap()
        };
        fs::create_dir_all(root.join("a/.git")).unwrap();
        for (path, content) in [
            ("a/secret.yaml", encrypted(Format::Yaml)),
            ("a/secret.json", encrypted(Format::Json)),
            ("a/secret.enc", encrypted(Format::Json)),
            ("a/plain.yaml", b"a: b\n".to_vec()),
            ("a/.git/secret.yaml", encrypted(Format::Yaml)),
            (
                "a/about.md",
                b"Such files have mac: ENC[AES256_GCM in them.\n".to_vec(),
            ),
        ] {
            fs::write(root.join(path), content).unwrap();
        }
        std::os::unix::fs::symlink(root.join("a/secret.yaml"), root.join("a/link.yaml")).unwrap();
        let mut found = Vec::new();
        find(root, &mut found).unwrap();
        let paths: Vec<_> = found
            .iter()
            .map(|file| file.path.strip_prefix(root).unwrap().display().to_string())
            .collect();
        assert_eq!(paths, ["a/secret.enc", "a/secret.json", "a/secret.yaml"]);
        assert_eq!(
            found[0].keys().unwrap().recipients[0].to_string(),
            recipient.to_string()
        );
        let refused = find(&root.join("a/plain.yaml"), &mut found).unwrap_err();
        assert!(refused.to_string().ends_with("it is not encrypted with SOPS"));
    }
}
