//! `windlass secrets`: files that are encrypted with SOPS.
//!
//! `rotate` re-encrypts them for the recipients in `.sops.yaml`. Anyone who may change that file could add a key of their own, so nothing is written
//! without --yes, after a look at the list of recipients.

mod files;
pub(crate) mod identities;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use sops::age::Recipient;
use sops::rules::Keys;
use sops::{Decryptor, Integrity, Rotated};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{Failure, print};
use files::{Encrypted, Rule};

/// Command line of `secrets`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Re-encrypt the files of a repository for the current recipients in .sops.yaml.
    Rotate(Rotate),
}

#[derive(Debug, Args)]
struct Rotate {
    /// Encrypted files, or folders that contain some
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// age recipients, instead of those in .sops.yaml
    #[arg(long, value_name = "RECIPIENT", value_delimiter = ',', value_parser = Recipient::parse)]
    age: Vec<Recipient>,

    /// File with a private key of age or OpenPGP to decrypt with; defaults to $SOPS_AGE_KEY, $SOPS_AGE_KEY_FILE, ~/.config/sops/age/keys.txt
    #[arg(long, value_name = "FILE")]
    identity: Vec<PathBuf>,

    /// Give every file a new data key; files that lose a recipient always get one
    #[arg(long)]
    renew: bool,

    /// Write the files, instead of listing what would change
    #[arg(long, short)]
    yes: bool,

    /// Exit with 5 if something would change
    #[arg(long, conflicts_with = "yes")]
    exit_code: bool,
}

/// Does it.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let What::Rotate(rotate) = &flags.what;
    rotate.run(&report_line)
}

/// What is made of a file.
enum Outcome {
    Rotated(Rotated),
    /// It is as it should be.
    Same,
    /// It is left as it is, and why.
    Skipped(String),
}

impl Rotate {
    fn run(&self, report_line: &impl Fn(&str)) -> Result<(), Failure> {
        let decryptor = Decryptor::new(identities::find(&self.identity)?, Integrity::Checked);
        let mut found = Vec::new();
        for path in &self.paths {
            files::find(path, &mut found)?;
        }
        if found.is_empty() {
            return Err(Failure::NotReady(
                "there are no files that are encrypted with SOPS".to_owned(),
            ));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(Failure::Runtime)?;
        let mut rules = files::Rules::default();
        let mut outcomes = Vec::new();
        for file in found {
            let outcome = runtime.block_on(self.outcome(&file, &decryptor, &mut rules))?;
            outcomes.push((file, outcome));
        }
        print(&table(&outcomes, Colours::of_terminal()))?;
        self.end(&outcomes, report_line)
    }

    async fn outcome(
        &self,
        file: &Encrypted,
        decryptor: &Decryptor,
        rules: &mut files::Rules,
    ) -> Result<Outcome, Failure> {
        let keys = if self.age.is_empty() {
            match rules.of(&file.path)? {
                Rule::Keys(keys) => keys,
                // With the recipients that it has.
                Rule::None(_) if self.renew => match file.keys() {
                    Ok(keys) => keys,
                    Err(problem) => return Ok(Outcome::Skipped(problem)),
                },
                Rule::None(why) => return Ok(Outcome::Skipped(why)),
            }
        } else {
            Keys {
                recipients: self.age.clone(),
                ..Keys::default()
            }
        };
        let rotated = decryptor.rotate(&file.content, file.format, &keys, self.renew, Timestamp::now());
        Ok(match rotated.await {
            Ok(Some(rotated)) => Outcome::Rotated(rotated),
            Ok(None) => Outcome::Same,
            Err(error) => Outcome::Skipped(error.to_string().trim().replace('\n', " ")),
        })
    }

    /// Writes the files, and says what follows.
    fn end(&self, outcomes: &[(Encrypted, Outcome)], report_line: &impl Fn(&str)) -> Result<(), Failure> {
        let rotated: Vec<_> = outcomes
            .iter()
            .filter_map(|(file, outcome)| match outcome {
                Outcome::Rotated(rotated) => Some((file, rotated)),
                _ => None,
            })
            .collect();
        let skipped = outcomes
            .iter()
            .filter(|(_, outcome)| matches!(outcome, Outcome::Skipped(_)))
            .count();
        let of = |what: fn(&Rotated) -> &Vec<String>| -> BTreeSet<&String> {
            rotated.iter().flat_map(|(_, rotated)| what(rotated)).collect()
        };
        let added = of(|rotated| &rotated.added);
        for recipient in &added {
            report_line(&format!("added: {}", recipient.escape_debug()));
        }
        // The list in a file is not authenticated: an attacker can add their key there as well as to the rules.
        for recipient in of(|rotated| &rotated.recipients).difference(&added) {
            report_line(&format!("kept: {}", recipient.escape_debug()));
        }
        let removed = of(|rotated| &rotated.removed);
        for recipient in &removed {
            // The file is untrusted and may contain line breaks.
            report_line(&format!("removed: {}", recipient.escape_debug()));
        }
        if self.yes {
            for (file, rotated) in &rotated {
                files::replace(&file.path, &rotated.content)?;
            }
        }
        let done = if self.yes { "rotated" } else { "would be rotated" };
        report_line(&format!("{} of {} files {done}", rotated.len(), outcomes.len()));
        if !removed.is_empty() {
            report_line(
                "removed recipients can still decrypt the files in the history of the repository: change the secrets themselves, too",
            );
        }
        if !self.yes && !rotated.is_empty() {
            report_line(
                "nothing was written: check the added and kept recipients, then run it again with --yes",
            );
        }
        if skipped > 0 {
            return Err(Failure::Incomplete(format!("{skipped} files were skipped")));
        }
        if self.exit_code && !rotated.is_empty() {
            return Err(Failure::Differs);
        }
        Ok(())
    }
}

fn table(outcomes: &[(Encrypted, Outcome)], colours: Colours) -> String {
    let rows: Vec<Vec<Cell>> = outcomes
        .iter()
        .map(|(file, outcome)| {
            let (word, tone, why) = match outcome {
                Outcome::Rotated(rotated) => ("rotate", Tone::Open, changes(rotated)),
                Outcome::Same => ("unchanged", Tone::Good, String::new()),
                Outcome::Skipped(why) => ("skipped", Tone::Bad, why.clone()),
            };
            vec![
                Cell::from(file.path.display().to_string()),
                Cell::toned(word, tone),
                Cell::from(why),
            ]
        })
        .collect();
    output::table(&["FILE", "RESULT", "CHANGES"], &rows, colours)
}

fn changes(rotated: &Rotated) -> String {
    let mut parts = Vec::new();
    for (what, keys) in [("add", &rotated.added), ("remove", &rotated.removed)] {
        parts.extend(keys.iter().map(|key| format!("{what} {}", short(key))));
    }
    if rotated.is_renewed {
        parts.push("new data key".to_owned());
    }
    parts.join(", ")
}

/// The beginning of a key: those of age's newer kind have 2,000 characters.
fn short(key: &str) -> String {
    const LENGTH: usize = 20;
    let key = key.escape_debug().to_string();
    if key.chars().count() <= LENGTH {
        return key;
    }
    let beginning: String = key.chars().take(LENGTH).collect();
    format!("{beginning}…")
}

/// Writes a content where a file was, with its permissions, whole or not at all.
fn write_in_place(path: &Path, content: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    file.as_file()
        .set_permissions(fs::metadata(path)?.permissions())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
