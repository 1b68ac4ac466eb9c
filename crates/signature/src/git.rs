//! Splits a commit or a tag into the signed content and the signature: Git keeps both in one object.
//!
//! In: the object as it lies in the repository, without the header that its id covers. Out: a [`Signed`]. A commit has
//! its signature in a header, a tag at the end of its text; what was signed is the object without it.

/// Headers that hold the signature of a commit: over the object with SHA-1 names, and over its twin with SHA-256 names.
const SIGNATURE_HEADERS: [&str; 2] = ["gpgsig", "gpgsig-sha256"];
/// The beginnings of what Git takes for a signature at the end of a tag.
const ARMORS: [&[u8]; 4] = [OPENPGP, b"-----BEGIN PGP MESSAGE-----", X509, SSH];
const OPENPGP: &[u8] = b"-----BEGIN PGP SIGNATURE-----";
const SSH: &[u8] = b"-----BEGIN SSH SIGNATURE-----";
const X509: &[u8] = b"-----BEGIN SIGNED MESSAGE-----";

/// A Git object taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// Signed content.
    pub payload: Vec<u8>,
    /// The armored signature; empty when there is none.
    pub signature: Vec<u8>,
}

/// Format of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// There is no signature.
    Absent,
    /// OpenPGP, as gpg makes it.
    OpenPgp,
    /// SSH, as ssh-keygen makes it.
    Ssh,
    /// X.509, as gpgsm makes it. It cannot be verified.
    X509,
    /// None of these.
    Unknown,
}

impl std::fmt::Display for Format {
    /// In the words of Flux.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Absent => "empty",
            Self::OpenPgp => "openpgp",
            Self::Ssh => "ssh",
            Self::X509 => "x509",
            Self::Unknown => "unknown",
        })
    }
}

impl Signed {
    /// Takes a commit apart. A commit with several signatures has none that is known to be the one that counts.
    #[must_use]
    pub fn of_commit(object: &[u8]) -> Self {
        let (payload, mut signatures) = without_signature_headers(object);
        let signature = if signatures.len() == 1 {
            signatures.remove(0)
        } else if signatures.is_empty() {
            Vec::new()
        } else {
            b"several signatures".to_vec() // of a format that is unknown
        };
        Self { payload, signature }
    }

    /// Takes a tag apart. The last line that begins a signature counts, as in Git.
    #[must_use]
    pub fn of_tag(object: &[u8]) -> Self {
        let mut at = object.len();
        let mut start = 0;
        for line in object.split_inclusive(|byte| *byte == b'\n') {
            if ARMORS.iter().any(|armor| line.starts_with(armor)) {
                at = start;
            }
            start += line.len();
        }
        let (before, signature) = object.split_at(at);
        Self {
            payload: without_signature_headers(before).0,
            signature: signature.to_vec(),
        }
    }

    /// Returns the format of the signature.
    #[must_use]
    pub fn format(&self) -> Format {
        let signature = self.signature.trim_ascii_start();
        match signature {
            _ if self.signature.is_empty() => Format::Absent,
            _ if signature.starts_with(OPENPGP) => Format::OpenPgp,
            _ if signature.starts_with(SSH) => Format::Ssh,
            _ if signature.starts_with(X509) => Format::X509,
            _ => Format::Unknown,
        }
    }
}

/// The object without the headers that hold signatures, and the signatures over the object with SHA-1 names.
fn without_signature_headers(object: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (mut payload, mut signatures) = (Vec::with_capacity(object.len()), Vec::<Vec<u8>>::new());
    let mut lines = object.split_inclusive(|byte| *byte == b'\n');
    let mut header = None;
    for line in lines.by_ref() {
        if line == b"\n" {
            payload.extend_from_slice(line);
            break;
        }
        if let Some(rest) = line.strip_prefix(b" ") {
            // A line that goes on belongs to the header above it.
            match (header, signatures.last_mut()) {
                (None, _) => payload.extend_from_slice(line),
                (Some("gpgsig"), Some(signature)) => signature.extend_from_slice(rest),
                (Some(_), _) => {}
            }
            continue;
        }
        header = signature_header(line);
        match header {
            None => payload.extend_from_slice(line),
            Some(name @ "gpgsig") => signatures.push(line[name.len() + 1..].to_vec()),
            Some(_) => {}
        }
    }
    for line in lines {
        payload.extend_from_slice(line);
    }
    (payload, signatures)
}

fn signature_header(line: &[u8]) -> Option<&'static str> {
    SIGNATURE_HEADERS.into_iter().find(|name| {
        line.strip_prefix(name.as_bytes())
            .is_some_and(|rest| rest.starts_with(b" "))
    })
}

/// Header of a tag object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagHeader {
    /// Hexadecimal id of what it points to.
    pub target: String,
    /// True if that is a tag again; else it is a commit.
    pub points_to_tag: bool,
    /// The name that it was made for.
    pub name: String,
}

impl TagHeader {
    /// Reads the header of a tag. None for what is none, or points to something other than a commit or a tag.
    #[must_use]
    pub fn read(object: &[u8]) -> Option<Self> {
        let mut lines = object.split(|byte| *byte == b'\n');
        let mut field = |name: &str| {
            let line = std::str::from_utf8(lines.next()?).ok()?;
            Some(line.strip_prefix(name)?.strip_prefix(' ')?.to_owned())
        };
        let target = field("object")?;
        let points_to_tag = match field("type")?.as_str() {
            "commit" => false,
            "tag" => true,
            _ => return None,
        };
        Some(Self {
            target,
            points_to_tag,
            name: field("tag")?,
        })
    }
}

#[cfg(test)]
mod tests;
