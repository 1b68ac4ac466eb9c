//! The first words of `git-receive-pack`: what the references are now, and what it can do.

use std::collections::BTreeMap;
use std::io::{self, Read};

use gix::ObjectId;

use super::packet_line;

/// References of interest, and the server's capabilities.
#[derive(Debug, Default)]
pub(super) struct Advertisement {
    refs: BTreeMap<String, ObjectId>,
    capabilities: Vec<String>,
}

impl Advertisement {
    /// Reads up to the end of the section. Only the named references are kept: a server may have a million of them.
    pub(super) fn read(reader: &mut dyn Read, names: &[&str]) -> io::Result<Self> {
        let mut advertisement = Self::default();
        let mut is_first = true;
        while let Some(line) = packet_line::read(reader)? {
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches('\n');
            if let Some(said) = line.strip_prefix("ERR ") {
                return Err(io::Error::other(format!("the server says: {said}")));
            }
            if line.starts_with("version ") || line.starts_with("shallow ") {
                continue;
            }
            let (entry, capabilities) = line.split_once('\0').unwrap_or((line, ""));
            if std::mem::take(&mut is_first) {
                advertisement.capabilities = capabilities.split_whitespace().map(str::to_owned).collect();
            }
            let nonsense = || {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the list of references makes no sense",
                )
            };
            let (id, name) = entry.split_once(' ').ok_or_else(nonsense)?;
            if names.contains(&name) {
                let id = ObjectId::from_hex(id.as_bytes()).map_err(|_| nonsense())?;
                advertisement.refs.insert(name.to_owned(), id);
            }
        }
        Ok(advertisement)
    }

    /// Where the reference is; None if it is not there.
    pub(super) fn at(&self, name: &str) -> Option<ObjectId> {
        self.refs.get(name).copied()
    }

    /// Returns whether the server has the capability.
    pub(super) fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|known| known == capability)
    }

    /// Returns whether objects are named by SHA-1 there.
    pub(super) fn is_sha1(&self) -> bool {
        let format = self
            .capabilities
            .iter()
            .find_map(|known| known.strip_prefix("object-format="));
        format.is_none_or(|format| format == "sha1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";

    fn read(lines: &[&str]) -> io::Result<Advertisement> {
        let mut bytes = Vec::new();
        for line in lines {
            packet_line::push(&mut bytes, line.as_bytes());
        }
        bytes.extend_from_slice(packet_line::FLUSH);
        Advertisement::read(&mut bytes.as_slice(), &["refs/heads/main"])
    }

    #[test]
    fn references_and_capabilities_are_read() {
        let first = format!("{ONE} refs/heads/main\0report-status atomic object-format=sha1\n");
        let read = read(&[
            "version 1\n",
            &first,
            &format!("{ONE} refs/heads/other\n"),
            &format!("{ONE} .have\n"),
        ]);
        let read = read.unwrap();
        assert_eq!(read.at("refs/heads/main").unwrap().to_string(), ONE);
        assert_eq!(read.at("refs/heads/other"), None, "no one asked for it");
        assert!(read.can("atomic") && !read.can("push-options") && read.is_sha1());
    }

    #[test]
    fn an_empty_repository_has_capabilities_only() {
        let zero = "0".repeat(40);
        let read = read(&[&format!(
            "{zero} capabilities^{{}}\0report-status object-format=sha256"
        )])
        .unwrap();
        assert_eq!(read.at("refs/heads/main"), None);
        assert!(read.can("report-status") && !read.is_sha1());
    }

    #[test]
    fn errors_and_nonsense_are_reported() {
        let error = read(&["ERR no access for you\n"]).unwrap_err();
        assert_eq!(error.to_string(), "the server says: no access for you");
        assert!(read(&["nonsense"]).is_err());
        assert!(read(&["xyz refs/heads/main"]).is_err());
    }
}
