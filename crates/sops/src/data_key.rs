//! From the metadata of a file to its data key: one key of each group, and the groups' parts together.

use std::fmt;

use zeroize::Zeroizing;

use crate::key::{EncryptedKey, KeyError, Keys};
use crate::metadata::Metadata;
use crate::shamir;

/// Finds the data key of a file. Each group is tried; within a group the keys that need no network come first.
pub async fn find(metadata: &Metadata, keys: &Keys) -> Result<Zeroizing<Vec<u8>>, DataKeyError> {
    let mut parts = Vec::new();
    let mut groups = Vec::new();
    for group in &metadata.key_groups {
        match open(group, keys).await {
            Ok(part) => {
                parts.push(part);
                groups.push(None);
            }
            Err(tries) => groups.push(Some(tries)),
        }
    }
    let threshold = metadata.shamir_threshold;
    if let [_] = groups[..] {
        let part = parts.pop();
        return part.ok_or(DataKeyError::NotFound { groups, threshold });
    }
    if parts.len() < threshold {
        return Err(DataKeyError::NotFound { groups, threshold });
    }
    shamir::combine(&parts).map_err(DataKeyError::Combine)
}

async fn open(group: &[EncryptedKey], keys: &Keys) -> Result<Zeroizing<Vec<u8>>, Vec<Try>> {
    let mut ordered: Vec<&EncryptedKey> = group.iter().collect();
    ordered.sort_by_key(|key| key.master.priority());
    let mut tries = Vec::new();
    for key in ordered {
        match keys.decrypt(key).await {
            Ok(part) => return Ok(part),
            Err(errors) => tries.push(Try {
                name: key.master.to_string(),
                errors,
            }),
        }
    }
    Err(tries)
}

/// A key that did not open its part.
#[derive(Debug)]
pub struct Try {
    /// The key.
    pub name: String,
    /// Why not, by each service that was asked.
    pub errors: Vec<KeyError>,
}

/// Why there is no data key.
#[derive(Debug)]
#[non_exhaustive]
pub enum DataKeyError {
    /// Too few groups were opened.
    NotFound {
        /// For each group None if it was opened, else what was tried.
        groups: Vec<Option<Vec<Try>>>,
        /// How many are needed; 0 for a file with one group.
        threshold: usize,
    },
    /// The parts do not fit together.
    Combine(&'static str),
}

impl std::error::Error for DataKeyError {}

/// Writes SOPS's message: which keys were tried, group by group, and why each failed.
impl fmt::Display for DataKeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (groups, threshold) = match self {
            Self::NotFound { groups, threshold } => (groups, *threshold),
            Self::Combine(problem) => {
                return write!(formatter, "could not get data key from shamir parts: {problem}");
            }
        };
        formatter.write_str("Failed to get the data key required to decrypt the SOPS file.\n\n")?;
        for (number, group) in groups.iter().enumerate() {
            match group {
                None => write!(formatter, "Group {number}: SUCCESS\n\n")?,
                Some(tries) => {
                    let tries: Vec<String> = tries.iter().map(Try::line).collect();
                    let tries = indented(&tries.join("\n\n"), "  ");
                    write!(formatter, "Group {number}: FAILED\n{tries}\n\n")?;
                }
            }
        }
        let opened = groups.iter().filter(|group| group.is_none()).count();
        formatter.write_str(&wrapped(&conclusion(threshold, opened), 75))
    }
}

fn conclusion(threshold: usize, opened: usize) -> String {
    if threshold == 0 {
        return "Recovery failed because no master key was able to decrypt the file. In order for SOPS to recover the \
                file, at least one key has to be successful, but none were."
            .to_owned();
    }
    format!(
        "Recovery failed because the file was encrypted with a Shamir threshold of {threshold}, but only {opened} \
         part(s) were successfully recovered, one for each successful key group. In order for SOPS to recover the \
         file, at least {threshold} groups have to be successful. In order for a group to be successful, decryption \
         has to succeed with any of the keys in that key group."
    )
}

impl Try {
    fn line(&self) -> String {
        let errors = self.errors.iter().map(|error| {
            let told = indented(&wrapped(&error.0, 60), "  | ");
            told.replacen(' ', "-", 1)
        });
        let errors = errors.collect::<Vec<_>>().join("\n\n");
        format!("{}: FAILED\n{}", self.name, indented(&errors, "  "))
    }
}

fn indented(text: &str, prefix: &str) -> String {
    let lines = text.split('\n').map(|line| format!("{prefix}{line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Breaks lines at spaces, where they would be longer than this.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        for word in line.split(' ') {
            let last = lines.last_mut().expect("there is one from the start");
            if last.is_empty() {
                last.push_str(word);
            } else if last.chars().count() + 1 + word.chars().count() <= width {
                last.push(' ');
                last.push_str(word);
            } else {
                lines.push(word.to_owned());
            }
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_lists_what_was_tried_in_each_group() {
        let failed = Try {
            name: "age1xyz".to_owned(),
            errors: vec![KeyError(
                "no identity matched any of the recipients, at all, whatever it says".to_owned(),
            )],
        };
        let error = DataKeyError::NotFound {
            groups: vec![None, Some(vec![failed])],
            threshold: 2,
        };
        assert_eq!(
            error.to_string(),
            "Failed to get the data key required to decrypt the SOPS file.\n\n\
             Group 0: SUCCESS\n\n\
             Group 1: FAILED\n  age1xyz: FAILED\n    - | no identity matched any of the recipients, at all, whatever\n      | \
             it says\n\n\
             Recovery failed because the file was encrypted with a Shamir threshold of\n\
             2, but only 1 part(s) were successfully recovered, one for each successful\n\
             key group. In order for SOPS to recover the file, at least 2 groups have to\n\
             be successful. In order for a group to be successful, decryption has to\n\
             succeed with any of the keys in that key group."
        );
    }
}
