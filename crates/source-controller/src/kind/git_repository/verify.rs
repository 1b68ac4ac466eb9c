//! `spec.verify`: who signed the commit, and the tag that led to it.
//!
//! In: the mode, the public keys of a Secret, the commit and the tag as they lie in the repository. Out: the message of
//! the SourceVerified condition, or why there is none. Signatures themselves are judged in the crate `signature`.

use api::source::{GitRepositoryVerification, GitVerificationMode};
use git_client::ObjectId;
use git_client::pack::{self, Pack};
use git_client::reference::Resolved;
use jiff::Timestamp;
use signature::git::{Format, Signed, TagHeader};
use signature::{openpgp, ssh};

use transport::auth::SecretData;

/// Ending of the names of SSH keys in the Secret. All others are key rings, whatever their ending, as in Flux.
const SSH_SUFFIX: &str = ".sshpub";
/// Larger commits and tags are not verified: no one signs such.
const MAX_OBJECT: usize = 16 << 20;
/// Tags may point to tags.
const MAX_TAG_CHAIN: usize = 8;

/// Why the commit is not trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The Secret is not there.
    #[error("public keys secret error: {0}")]
    ReadKeys(String),
    /// A tag is to be verified, and the spec names none.
    #[error("cannot verify tag object's signature if a tag reference is not specified")]
    NoTag,
    /// The tag is a lightweight one, or was not signed.
    #[error("cannot verify signature of tag '{0}' since it is not signed")]
    UnsignedTag(String),
    /// The tag was signed otherwise.
    #[error("signature verification of tag '{tag}' failed")]
    Tag {
        /// Name and object.
        tag: String,
        /// Why it does not count.
        #[source]
        source: Mistrust,
    },
    /// The commit was not signed, or otherwise.
    #[error("signature verification of commit '{commit}' failed")]
    Commit {
        /// Its id.
        commit: ObjectId,
        /// Why it does not count.
        #[source]
        source: Mistrust,
    },
    /// The received objects cannot be read.
    #[error("failed to read what is to be verified")]
    Read(#[from] pack::Error),
}

/// Why a signature does not count.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Mistrust {
    /// There is none, or one of a kind that cannot be verified.
    #[error("unsupported signature type: {0}")]
    Format(Format),
    /// The Secret has no keys for it.
    #[error(
        "{kind} signature detected but no {kind} public keys found in secret (keys with {suffix} suffix)"
    )]
    NoKeys {
        /// PGP or SSH.
        kind: &'static str,
        /// Of the names in the Secret.
        suffix: &'static str,
    },
    /// It is none of these keys'.
    #[error("unable to verify Git {what}")]
    OpenPgp {
        /// Commit or tag.
        what: &'static str,
        /// Why not.
        #[source]
        source: openpgp::Error,
    },
    /// It is none of these keys'.
    #[error("unable to verify Git {what} SSH signature")]
    Ssh {
        /// Commit or tag.
        what: &'static str,
        /// Why not.
        #[source]
        source: ssh::Error,
    },
    /// A signed tag was put under another name, perhaps to pass an old release off as a new one.
    #[error("the tag was made with the name '{0}'")]
    OtherName(String),
    /// The tag that was signed leads elsewhere.
    #[error("the tag does not point to commit '{0}'")]
    OtherCommit(ObjectId),
    /// It is not read.
    #[error("it is too large to be verified")]
    TooLarge,
}

impl Error {
    /// Flux's reason.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::ReadKeys(_) => api::meta::reasons::VERIFICATION_ERROR,
            Self::NoTag => "InvalidVerificationMode",
            Self::UnsignedTag(_) | Self::Read(_) => "InvalidGitObject",
            Self::Tag { .. } => "InvalidTagSignature",
            Self::Commit { .. } => "InvalidCommitSignature",
        }
    }

    /// Returns whether only another spec helps.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::NoTag)
    }
}

/// The mode as the status says it.
pub(super) fn observed_mode(verification: &GitRepositoryVerification) -> &'static str {
    match verification.mode.unwrap_or_default() {
        GitVerificationMode::LowercaseHead | GitVerificationMode::Head => "HEAD",
        GitVerificationMode::Tag => "Tag",
        GitVerificationMode::TagAndHead => "TagAndHEAD",
    }
}

/// Public keys of trusted authors.
#[derive(Clone, Default)]
pub(super) struct Keys {
    rings: Vec<Vec<u8>>,
    lists: Vec<Vec<u8>>,
}

impl Keys {
    pub(super) fn from_secret(secret: &SecretData) -> Self {
        let mut keys = Self::default();
        for (name, value) in secret {
            if name.ends_with(SSH_SUFFIX) {
                keys.lists.push(value.clone());
            } else {
                keys.rings.push(value.clone());
            }
        }
        keys
    }
}

/// Object to verify, taken from the pack.
pub(super) struct Subject {
    commit: ObjectId,
    commit_object: Option<Vec<u8>>,
    tag: Option<Tag>,
}

struct Tag {
    name: String,
    /// The tag's object, and those that it leads to.
    chain: Vec<Vec<u8>>,
    /// As Flux writes it: the name that the tag was made with, and its object.
    shown: String,
}

impl Subject {
    /// Reads what the mode needs.
    pub(super) fn read(
        verification: &GitRepositoryVerification,
        resolved: &Resolved,
        pack: &Pack,
    ) -> Result<Self, Error> {
        let tag = if verification.verifies_tag() {
            let tag = resolved.tag.as_ref().ok_or(Error::NoTag)?;
            let object = tag.object.ok_or_else(|| Error::UnsignedTag(tag.name.clone()))?;
            let chain = read_chain(object, pack)?;
            let header = chain.first().and_then(|object| TagHeader::read(object));
            let made_as = header.map_or_else(|| tag.name.clone(), |header| header.name);
            Some(Tag {
                name: tag.name.clone(),
                chain,
                shown: format!("{made_as}@{object}"),
            })
        } else {
            None
        };
        let head = verification.verifies_head().then(|| pack.commit());
        Ok(Self {
            commit: resolved.commit,
            commit_object: head.transpose()?,
            tag,
        })
    }

    /// Verifies it all. Answers the message of the condition.
    pub(super) fn verify(&self, keys: &Keys, now: Timestamp) -> Result<String, Error> {
        let mut message = "verified signature of".to_owned();
        if let Some(tag) = &self.tag {
            let key = tag.verify(self.commit, keys, now)?;
            message.push_str(&format!("\n\t- tag '{}' with key '{key}'", tag.shown));
        }
        if let Some(object) = &self.commit_object {
            let commit = self.commit;
            let key = judge("commit", object, Signed::of_commit, keys, now);
            let key = key.map_err(|source| Error::Commit { commit, source })?;
            message.push_str(&format!("\n\t- commit '{commit}' with key '{key}'"));
        }
        Ok(message)
    }
}

impl Tag {
    fn verify(&self, commit: ObjectId, keys: &Keys, now: Timestamp) -> Result<String, Error> {
        let failed = |source| Error::Tag {
            tag: self.shown.clone(),
            source,
        };
        let object = self.chain.first().map_or(&[][..], Vec::as_slice);
        if Signed::of_tag(object).format() == Format::Absent {
            return Err(Error::UnsignedTag(self.shown.clone()));
        }
        let key = judge("tag", object, Signed::of_tag, keys, now).map_err(failed)?;
        // The remote says which commit a tag leads to; the signature says which one it was made for.
        let headers: Option<Vec<_>> = self.chain.iter().map(|object| TagHeader::read(object)).collect();
        let headers = headers.unwrap_or_default();
        let leads_to = headers.last().map(|header| header.target.as_str());
        if leads_to != Some(commit.to_string().as_str()) {
            return Err(failed(Mistrust::OtherCommit(commit)));
        }
        match headers.first() {
            Some(header) if header.name == self.name => Ok(key),
            header => Err(failed(Mistrust::OtherName(
                header.map(|header| header.name.clone()).unwrap_or_default(),
            ))),
        }
    }
}

fn read_chain(tag: ObjectId, pack: &Pack) -> Result<Vec<Vec<u8>>, Error> {
    let mut chain = vec![pack.tag(tag)?];
    while let Some(next) = chain.last().and_then(|object| TagHeader::read(object)) {
        let id = ObjectId::from_hex(next.target.as_bytes());
        match id {
            Ok(id) if next.points_to_tag && chain.len() < MAX_TAG_CHAIN => chain.push(pack.tag(id)?),
            _ => break,
        }
    }
    Ok(chain)
}

fn judge(
    what: &'static str,
    object: &[u8],
    take_apart: impl Fn(&[u8]) -> Signed,
    keys: &Keys,
    now: Timestamp,
) -> Result<String, Mistrust> {
    if object.len() > MAX_OBJECT {
        return Err(Mistrust::TooLarge);
    }
    let signed = take_apart(object);
    let (signature, payload) = (&signed.signature, &signed.payload);
    match signed.format() {
        Format::OpenPgp if keys.rings.is_empty() => Err(Mistrust::NoKeys {
            kind: "PGP",
            suffix: ".asc",
        }),
        Format::OpenPgp => openpgp::verify(signature, payload, &slices(&keys.rings), now)
            .map_err(|source| Mistrust::OpenPgp { what, source }),
        Format::Ssh if keys.lists.is_empty() => Err(Mistrust::NoKeys {
            kind: "SSH",
            suffix: SSH_SUFFIX,
        }),
        Format::Ssh => ssh::verify(signature, payload, &slices(&keys.lists), now)
            .map_err(|source| Mistrust::Ssh { what, source }),
        format => Err(Mistrust::Format(format)),
    }
}

fn slices(keys: &[Vec<u8>]) -> Vec<&[u8]> {
    keys.iter().map(Vec::as_slice).collect()
}
