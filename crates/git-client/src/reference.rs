//! Which commit a reference means: pure functions from `spec.ref` and the remote's answer to ls-refs.
//!
//! In: a [`Reference`] and the list of refs. Out: the prefixes to ask the remote for, and the [`Resolved`] commit
//! with the revision as Flux writes it (`main@sha1:…`, `v1.2.3@sha1:…`, `refs/pull/1/head@sha1:…`, `sha1:…`).

use gix::ObjectId;
use gix::protocol::handshake::Ref;
use go_semver::tags;
use transport::nearest::Nearest;

use crate::error::Error;

/// Flux's default when `spec.ref` names nothing.
const DEFAULT_BRANCH: &str = "master";
/// A tag name with this suffix asks for the commit behind an annotated tag, which is what a tag always means here.
const PEELED: &str = "^{}";
const TAGS: &str = "refs/tags/";

/// Reference that `spec.ref` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The head of a branch.
    Branch(String),
    /// The commit that a tag points to.
    Tag(String),
    /// The highest tag in a version range.
    SemVer(String),
    /// Any ref by its full name.
    Name(String),
    /// One commit.
    Commit {
        /// Hexadecimal name of the commit.
        id: String,
        /// Full name of the ref under which the revision is known, if any.
        known_as: Option<KnownAs>,
    },
}

/// The ref that goes with a pinned commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownAs {
    /// `spec.ref.branch`.
    Branch(String),
    /// `spec.ref.name`.
    Name(String),
}

/// The fields of `spec.ref`; an empty text is as good as none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    /// Name of a branch.
    pub branch: Option<&'a str>,
    /// Name of a tag.
    pub tag: Option<&'a str>,
    /// Range of versions; the highest tag in it.
    pub semver: Option<&'a str>,
    /// Full name of a reference, such as `refs/pull/1/head`.
    pub name: Option<&'a str>,
    /// Commit, in hexadecimal digits.
    pub commit: Option<&'a str>,
}

impl Reference {
    /// Of several fields the first of commit, name, tag, semver, branch counts (fluxcd/pkg git/gogit `clone`).
    pub fn from_fields(fields: Fields<'_>) -> Self {
        let given = |field: Option<&str>| field.filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(id) = given(fields.commit) {
            let name = given(fields.name).map(KnownAs::Name);
            return Self::Commit {
                id,
                known_as: name.or_else(|| given(fields.branch).map(KnownAs::Branch)),
            };
        }
        given(fields.name)
            .map(Self::Name)
            .or_else(|| given(fields.tag).map(Self::Tag))
            .or_else(|| given(fields.semver).map(Self::SemVer))
            .unwrap_or_else(|| {
                Self::Branch(given(fields.branch).unwrap_or_else(|| DEFAULT_BRANCH.to_owned()))
            })
    }

    /// Prefixes of the refs that are needed to resolve this, so that the remote need not list all.
    pub(super) fn prefixes(&self) -> Vec<String> {
        match self {
            // HEAD tells an empty repository from one that lacks the branch.
            Self::Branch(branch) => vec![format!("refs/heads/{branch}"), "HEAD".to_owned()],
            Self::Tag(tag) => vec![format!("refs/tags/{tag}")],
            Self::SemVer(_) => vec!["refs/tags/".to_owned()],
            Self::Name(name) => vec![without_peel(name).to_owned()],
            Self::Commit {
                known_as: Some(KnownAs::Branch(branch)),
                ..
            } => vec![format!("refs/heads/{branch}")],
            Self::Commit { .. } => vec!["HEAD".to_owned()],
        }
    }

    /// The prefix of the refs that could have been meant when this one is not there, for a remote that listed less.
    pub(super) fn siblings(&self) -> Option<String> {
        let full_name = match self {
            Self::Branch(branch)
            | Self::Commit {
                known_as: Some(KnownAs::Branch(branch)),
                ..
            } => format!("refs/heads/{branch}"),
            Self::Tag(tag) => format!("{TAGS}{tag}"),
            Self::Name(name) => without_peel(name).to_owned(),
            Self::SemVer(_) | Self::Commit { .. } => return None,
        };
        Some(folder(&full_name).to_owned())
    }

    /// The branch that a pinned commit must be on, and where that is.
    pub(super) fn branch_of_commit(&self, refs: &[Ref]) -> Option<(String, ObjectId)> {
        match self {
            Self::Commit {
                known_as: Some(KnownAs::Branch(branch)),
                ..
            } => Some((branch.clone(), find(refs, &format!("refs/heads/{branch}"))?)),
            _ => None,
        }
    }

    /// Refuses names that no ref can have, before they reach the wire.
    pub(super) fn check(&self) -> Result<(), Error> {
        let names = match self {
            Self::Branch(name) | Self::Tag(name) | Self::Name(name) => Some(name),
            Self::Commit {
                known_as: Some(KnownAs::Branch(name) | KnownAs::Name(name)),
                ..
            } => Some(name),
            Self::SemVer(_) | Self::Commit { .. } => None,
        };
        if let Some(name) = names {
            let name = without_peel(name);
            let forbidden = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
            let slashes = name.starts_with('/') || name.ends_with('/') || name.contains("//");
            if slashes || name.contains("..") || name.contains(forbidden) {
                return Err(Error::InvalidReference {
                    name: name.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Finds the commit among the refs that the remote listed.
    pub(super) fn resolve(&self, refs: &[Ref]) -> Result<Resolved, Error> {
        match self {
            Self::Branch(branch) => {
                let full = format!("refs/heads/{branch}");
                let commit = find(refs, &full).ok_or_else(|| absent_branch(refs, &full))?;
                Ok(Resolved::new(commit, Some(branch)))
            }
            Self::Tag(tag) => {
                let full = format!("refs/tags/{tag}");
                let commit = find(refs, &full).ok_or_else(|| absent(refs, &full))?;
                Ok(Resolved::new(commit, Some(tag)).with_tag(refs, tag))
            }
            Self::SemVer(range) => resolve_range(range, refs),
            Self::Name(name) => {
                let commit = find(refs, without_peel(name)).ok_or_else(|| Error::ResolveName {
                    name: name.clone(),
                    nearest: nearest(refs, without_peel(name)),
                })?;
                let resolved = Resolved::new(commit, Some(name));
                Ok(match without_peel(name).strip_prefix(TAGS) {
                    Some(tag) => resolved.with_tag(refs, tag),
                    None => resolved,
                })
            }
            Self::Commit { id, known_as } => {
                let commit = ObjectId::from_hex(id.to_ascii_lowercase().as_bytes())
                    .map_err(|_| Error::ParseCommit { id: id.clone() })?;
                match known_as {
                    Some(KnownAs::Branch(branch)) => {
                        let full = format!("refs/heads/{branch}");
                        find(refs, &full).ok_or_else(|| absent(refs, &full))?;
                        Ok(Resolved::new(commit, Some(branch)))
                    }
                    Some(KnownAs::Name(name)) => {
                        let resolved = Resolved::new(commit, Some(name));
                        // The tag's own object is not looked at, as in Flux: the tag may be at another commit.
                        Ok(match name.strip_prefix(TAGS) {
                            Some(tag) => resolved.with_tag(&[], tag),
                            None => resolved,
                        })
                    }
                    None => Ok(Resolved::new(commit, None)),
                }
            }
        }
    }
}

/// The commit to fetch, and its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The commit, annotated tags peeled.
    pub commit: ObjectId,
    /// `<ref>@sha1:<commit>`, or `sha1:<commit>`.
    pub revision: String,
    /// The tag that led to the commit.
    pub tag: Option<Tag>,
}

/// A tag by which a commit is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Without `refs/tags/`.
    pub name: String,
    /// The object of an annotated tag; a lightweight tag has none.
    pub object: Option<ObjectId>,
}

impl Resolved {
    fn new(commit: ObjectId, known_as: Option<&str>) -> Self {
        let revision = match known_as {
            Some(name) => format!("{name}@sha1:{commit}"),
            None => format!("sha1:{commit}"),
        };
        Self {
            commit,
            revision,
            tag: None,
        }
    }

    fn with_tag(mut self, refs: &[Ref], name: &str) -> Self {
        let full_name = format!("{TAGS}{name}");
        let object = refs.iter().find_map(|entry| match entry {
            Ref::Peeled {
                full_ref_name, tag, ..
            } if *full_ref_name == full_name => Some(*tag),
            _ => None,
        });
        self.tag = Some(Tag {
            name: name.to_owned(),
            object,
        });
        self
    }
}

fn resolve_range(range: &str, refs: &[Ref]) -> Result<Resolved, Error> {
    let constraints = tags::parse_range(range)?;
    let tags = refs.iter().filter_map(|entry| {
        let (name, ..) = entry.unpack();
        std::str::from_utf8(name.strip_prefix(b"refs/tags/")?).ok()
    });
    let absent = || Error::MatchTag {
        range: range.to_owned(),
        nearest: tags::instead(range, tags.clone()),
    };
    let tag = tags::highest(&constraints, tags.clone()).ok_or_else(absent)?;
    let commit = find(refs, &format!("refs/tags/{tag}")).ok_or_else(absent)?;
    Ok(Resolved::new(commit, Some(tag)).with_tag(refs, tag))
}

/// The object behind a ref of exactly this name, through an annotated tag if there is one.
fn find(refs: &[Ref], full_name: &str) -> Option<ObjectId> {
    refs.iter().find_map(|entry| match entry {
        Ref::Peeled {
            full_ref_name,
            object,
            ..
        }
        | Ref::Direct {
            full_ref_name,
            object,
        }
        | Ref::Symbolic {
            full_ref_name,
            object,
            ..
        } => (full_ref_name == full_name).then_some(*object),
        Ref::Unborn { .. } => None,
    })
}

fn absent_branch(refs: &[Ref], full_name: &str) -> Error {
    let unborn = |entry: &Ref| matches!(entry, Ref::Unborn { full_ref_name, .. } if full_ref_name == "HEAD");
    if refs.iter().all(unborn) && !refs.is_empty() {
        return Error::EmptyRepository;
    }
    absent(refs, full_name)
}

fn absent(refs: &[Ref], full_name: &str) -> Error {
    Error::FindReference {
        name: full_name.to_owned(),
        nearest: nearest(refs, full_name),
    }
}

/// Other refs of the same kind, in case one of them was meant.
fn nearest(refs: &[Ref], full_name: &str) -> Nearest {
    let folder = folder(full_name);
    let names = refs.iter().filter_map(|entry| {
        let (name, ..) = entry.unpack();
        std::str::from_utf8(name.strip_prefix(folder.as_bytes())?).ok()
    });
    Nearest::to(full_name.strip_prefix(folder).unwrap_or(full_name), names)
}

/// The part of a ref's name that says what kind of ref it is.
fn folder(full_name: &str) -> &str {
    let kinds = ["refs/heads/", "refs/tags/"];
    let kind = kinds.into_iter().find(|kind| full_name.starts_with(kind));
    kind.unwrap_or_else(|| {
        full_name
            .rsplit_once('/')
            .map_or("", |(folder, _)| &full_name[..=folder.len()])
    })
}

fn without_peel(name: &str) -> &str {
    name.strip_suffix(PEELED).unwrap_or(name)
}

#[cfg(test)]
mod tests;
