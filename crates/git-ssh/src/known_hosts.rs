//! `known_hosts`: which keys a host is known by (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT").
//!
//! In: the text of a Secret. Out: a [`Verdict`] about a key that a server presents. Names may be plain, hashed
//! (`|1|salt|hash`), with a port (`[host]:port`), with wildcards (`*`, `?`) and negated (`!name`); a host may have
//! several keys, also of one type. Keys are compared by their bytes, so that none need be understood to be compared.

mod hashed;
mod pattern;
mod port;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use hashed::HashedName;
use pattern::Patterns;

/// A text that cannot be read. Holds nothing of the text but the number of the line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("knownhosts: failed to read line {line}: {problem}")]
pub struct ParseError {
    /// Counted from one.
    pub line: usize,
    /// The problem in that line.
    pub problem: &'static str,
}

/// Known hosts and their keys.
#[derive(Debug, Clone, Default)]
pub struct KnownHosts {
    keys: Vec<HostKey>,
    revoked: Vec<Key>,
}

/// Verdict on a presented key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is one of the host's keys.
    Known,
    /// There is no entry for the host.
    UnknownHost,
    /// There are entries for the host, none with this key.
    Mismatch,
    /// The key is marked as revoked, for whichever host.
    Revoked,
}

#[derive(Debug, Clone)]
struct HostKey {
    names: Names,
    is_authority: bool,
    key: Key,
}

#[derive(Debug, Clone)]
enum Names {
    Plain(Patterns),
    Hashed(HashedName),
}

/// A public key in ssh's own encoding, of which only the type is read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    type_: String,
    bytes: Vec<u8>,
}

impl KnownHosts {
    /// Reads a text. As in Flux, a line that cannot be read spoils the whole: a key that is left out because of a typing
    /// error would be missed only when the server begins to use it.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let mut known = Self::default();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let at = |problem| ParseError {
                line: index + 1,
                problem,
            };
            let line = std::str::from_utf8(line)
                .map_err(|_| at("it is not text"))?
                .trim();
            if !line.is_empty() && !line.starts_with('#') {
                known.add(line).map_err(at)?;
            }
        }
        Ok(known)
    }

    /// Returns whether nothing at all is known.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Judges a key, given in ssh's own encoding, that the server at this address presents.
    pub fn check(&self, host: &str, port: u16, key: &[u8]) -> Verdict {
        if self.revoked.iter().any(|revoked| revoked.bytes == key) {
            return Verdict::Revoked;
        }
        let mut keys = self.keys_of(host, port, false).peekable();
        if keys.peek().is_none() {
            return Verdict::UnknownHost;
        }
        if keys.any(|known| known.bytes == key) {
            Verdict::Known
        } else {
            Verdict::Mismatch
        }
    }

    /// The types of the keys that the host is known by, such as `ssh-ed25519`, each once.
    pub fn key_types(&self, host: &str, port: u16) -> Vec<&str> {
        let mut types: Vec<&str> = Vec::new();
        for key in self.keys_of(host, port, false) {
            if !types.contains(&key.type_.as_str()) {
                types.push(&key.type_);
            }
        }
        types
    }

    /// Returns whether a certificate authority with this key may vouch for the host (`@cert-authority`).
    pub fn trusts_authority(&self, host: &str, port: u16, key: &[u8]) -> bool {
        let revoked = self.revoked.iter().any(|revoked| revoked.bytes == key);
        !revoked && self.keys_of(host, port, true).any(|known| known.bytes == key)
    }

    /// Returns whether some certificate authority may vouch for the host.
    pub fn has_authority(&self, host: &str, port: u16) -> bool {
        self.keys_of(host, port, true).next().is_some()
    }

    fn keys_of(&self, host: &str, port: u16, authorities: bool) -> impl Iterator<Item = &Key> {
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_ascii_lowercase();
        self.keys
            .iter()
            .filter(move |entry| entry.is_authority == authorities && entry.names.contain(&host, port))
            .map(|entry| &entry.key)
    }

    fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let (marker, names) = match first {
            "@revoked" | "@cert-authority" => (first, words.next().ok_or("it names no host")?),
            _ if first.starts_with('@') => return Err("its marker is not known"),
            _ => ("", first),
        };
        let key = Key::read(words.next(), words.next())?;
        if marker == "@revoked" {
            self.revoked.push(key);
            return Ok(());
        }
        let names = if names.starts_with('|') {
            Names::Hashed(HashedName::read(names)?)
        } else {
            Names::Plain(Patterns::read(names)?)
        };
        self.keys.push(HostKey {
            names,
            is_authority: marker == "@cert-authority",
            key,
        });
        Ok(())
    }
}

impl Names {
    fn contain(&self, host: &str, port: u16) -> bool {
        match self {
            Self::Plain(patterns) => patterns.contain(host, port),
            Self::Hashed(name) => name.is(host, port),
        }
    }
}

impl Key {
    /// The type as a word, and the key in base64, which begins with its type again.
    fn read(type_: Option<&str>, encoded: Option<&str>) -> Result<Self, &'static str> {
        type_.ok_or("it has no key type")?;
        let encoded = encoded.ok_or("it has no key")?;
        let bytes = STANDARD.decode(encoded).map_err(|_| "its key is not base64")?;
        let type_ = key_type(&bytes).ok_or("its key is cut or of no known form")?;
        Ok(Self {
            type_: type_.to_owned(),
            bytes,
        })
    }
}

/// The type that an encoded key begins with: four bytes of length, then the name; the key itself follows.
fn key_type(bytes: &[u8]) -> Option<&str> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let name = rest.get(..length)?;
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic) && rest.len() > length;
    std::str::from_utf8(name).ok().filter(|_| is_name)
}

#[cfg(test)]
mod tests;
