//! Which commit a reference means: pure functions from `spec.ref` and the remote's answer to ls-refs.
//!
//! In: a [`Reference`] and the list of refs. Out: the prefixes to ask the remote for, and the [`Resolved`] commit
//! with the revision as Flux writes it (`main@sha1:…`, `v1.2.3@sha1:…`, `refs/pull/1/head@sha1:…`, `sha1:…`).

use gix::ObjectId;
use gix::protocol::handshake::Ref;

use super::Error;
use crate::fetch::semver;

/// Flux's default when `spec.ref` names nothing.
const DEFAULT_BRANCH: &str = "master";
/// A tag name with this suffix asks for the commit behind an annotated tag, which is what a tag always means here.
const PEELED: &str = "^{}";

/// What `spec.ref` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
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
pub(crate) enum KnownAs {
    /// `spec.ref.branch`.
    Branch(String),
    /// `spec.ref.name`.
    Name(String),
}

/// The fields of `spec.ref`; an empty text is as good as none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fields<'a> {
    pub(crate) branch: Option<&'a str>,
    pub(crate) tag: Option<&'a str>,
    pub(crate) semver: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) commit: Option<&'a str>,
}

impl Reference {
    /// Of several fields the first of commit, name, tag, semver, branch counts (fluxcd/pkg git/gogit `clone`).
    pub(crate) fn from_fields(fields: Fields<'_>) -> Self {
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
                let commit = find(refs, &full).ok_or(Error::FindReference { name: full })?;
                Ok(Resolved::new(commit, Some(tag)))
            }
            Self::SemVer(range) => resolve_range(range, refs),
            Self::Name(name) => {
                let commit = find(refs, without_peel(name))
                    .ok_or_else(|| Error::ResolveName { name: name.clone() })?;
                Ok(Resolved::new(commit, Some(name)))
            }
            Self::Commit { id, known_as } => {
                let commit = ObjectId::from_hex(id.to_ascii_lowercase().as_bytes())
                    .map_err(|_| Error::ParseCommit { id: id.clone() })?;
                match known_as {
                    Some(KnownAs::Branch(branch)) => {
                        let full = format!("refs/heads/{branch}");
                        find(refs, &full).ok_or(Error::FindReference { name: full })?;
                        Ok(Resolved::new(commit, Some(branch)))
                    }
                    Some(KnownAs::Name(name)) => Ok(Resolved::new(commit, Some(name))),
                    None => Ok(Resolved::new(commit, None)),
                }
            }
        }
    }
}

/// The commit to fetch, and its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// The commit, annotated tags peeled.
    pub(crate) commit: ObjectId,
    /// `<ref>@sha1:<commit>`, or `sha1:<commit>`.
    pub(crate) revision: String,
}

impl Resolved {
    fn new(commit: ObjectId, known_as: Option<&str>) -> Self {
        let revision = match known_as {
            Some(name) => format!("{name}@sha1:{commit}"),
            None => format!("sha1:{commit}"),
        };
        Self { commit, revision }
    }
}

fn resolve_range(range: &str, refs: &[Ref]) -> Result<Resolved, Error> {
    let constraint = semver::Constraint::parse(range)?;
    let tags = refs.iter().filter_map(|entry| {
        let (name, ..) = entry.unpack();
        std::str::from_utf8(name.strip_prefix(b"refs/tags/")?).ok()
    });
    let tag = constraint.highest(tags).ok_or_else(|| Error::MatchTag {
        range: range.to_owned(),
    })?;
    let commit = find(refs, &format!("refs/tags/{tag}")).ok_or_else(|| Error::MatchTag {
        range: range.to_owned(),
    })?;
    Ok(Resolved::new(commit, Some(tag)))
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
    Error::FindReference {
        name: full_name.to_owned(),
    }
}

fn without_peel(name: &str) -> &str {
    name.strip_suffix(PEELED).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const C: &str = "cccccccccccccccccccccccccccccccccccccccc";

    fn id(hex: &str) -> ObjectId {
        ObjectId::from_hex(hex.as_bytes()).unwrap()
    }

    fn refs() -> Vec<Ref> {
        let direct = |name: &str, hex| Ref::Direct {
            full_ref_name: name.into(),
            object: id(hex),
        };
        let annotated = |name: &str, tag, hex| Ref::Peeled {
            full_ref_name: name.into(),
            tag: id(tag),
            object: id(hex),
        };
        vec![
            Ref::Symbolic {
                full_ref_name: "HEAD".into(),
                target: "refs/heads/main".into(),
                tag: None,
                object: id(A),
            },
            direct("refs/heads/main", A),
            direct("refs/heads/main-2", B),
            direct("refs/heads/feature/x", B),
            direct("refs/pull/1/head", C),
            direct("refs/tags/v1.0.0", A),
            annotated("refs/tags/v1.2.0", C, B),
            direct("refs/tags/release/v9.9.9", A),
            direct("refs/tags/latest", A),
        ]
    }

    fn resolve(fields: Fields<'_>) -> Result<String, String> {
        let reference = Reference::from_fields(fields);
        reference.check().map_err(|error| error.to_string())?;
        reference
            .resolve(&refs())
            .map(|resolved| resolved.revision)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn revisions_are_written_as_flux_writes_them() {
        let none = Fields::default();
        let cases = [
            (
                Fields {
                    branch: Some("main"),
                    ..none
                },
                format!("main@sha1:{A}"),
            ),
            (
                Fields {
                    branch: Some("feature/x"),
                    ..none
                },
                format!("feature/x@sha1:{B}"),
            ),
            (
                Fields {
                    tag: Some("v1.0.0"),
                    ..none
                },
                format!("v1.0.0@sha1:{A}"),
            ),
            (
                Fields {
                    tag: Some("v1.2.0"),
                    ..none
                },
                format!("v1.2.0@sha1:{B}"),
            ),
            (
                Fields {
                    semver: Some(">=1.0"),
                    ..none
                },
                format!("v1.2.0@sha1:{B}"),
            ),
            (
                Fields {
                    semver: Some("~1.0"),
                    ..none
                },
                format!("v1.0.0@sha1:{A}"),
            ),
            (
                Fields {
                    name: Some("refs/pull/1/head"),
                    ..none
                },
                format!("refs/pull/1/head@sha1:{C}"),
            ),
            (
                Fields {
                    name: Some("refs/heads/main"),
                    ..none
                },
                format!("refs/heads/main@sha1:{A}"),
            ),
            (
                Fields {
                    name: Some("refs/tags/v1.2.0"),
                    ..none
                },
                format!("refs/tags/v1.2.0@sha1:{B}"),
            ),
            (
                Fields {
                    name: Some("refs/tags/v1.2.0^{}"),
                    ..none
                },
                format!("refs/tags/v1.2.0^{{}}@sha1:{B}"),
            ),
            (
                Fields {
                    commit: Some(C),
                    ..none
                },
                format!("sha1:{C}"),
            ),
            (
                Fields {
                    commit: Some(C),
                    branch: Some("main"),
                    ..none
                },
                format!("main@sha1:{C}"),
            ),
            (
                Fields {
                    commit: Some(C),
                    name: Some("refs/x"),
                    ..none
                },
                format!("refs/x@sha1:{C}"),
            ),
        ];
        for (fields, revision) in cases {
            assert_eq!(resolve(fields), Ok(revision), "{fields:?}");
        }
    }

    #[test]
    fn of_several_fields_the_most_exact_counts() {
        let all = Fields {
            branch: Some("main"),
            tag: Some("v1.0.0"),
            semver: Some("*"),
            name: Some("refs/pull/1/head"),
            commit: None,
        };
        assert_eq!(resolve(all), Ok(format!("refs/pull/1/head@sha1:{C}")));
        assert_eq!(
            resolve(Fields { name: None, ..all }),
            Ok(format!("v1.0.0@sha1:{A}"))
        );
        assert_eq!(
            resolve(Fields {
                name: Some(""),
                tag: Some(""),
                ..all
            }),
            Ok(format!("v1.2.0@sha1:{B}"))
        );
        let default = Reference::from_fields(Fields::default());
        assert_eq!(default, Reference::Branch("master".to_owned()));
    }

    #[test]
    fn what_is_absent_is_named() {
        let none = Fields::default();
        let cases = [
            (
                Fields {
                    branch: Some("mai"),
                    ..none
                },
                "couldn't find remote ref 'refs/heads/mai'",
            ),
            (
                Fields {
                    tag: Some("v1"),
                    ..none
                },
                "couldn't find remote ref 'refs/tags/v1'",
            ),
            (
                Fields {
                    semver: Some(">=2"),
                    ..none
                },
                "no match found for semver: >=2",
            ),
            (
                Fields {
                    semver: Some("latest"),
                    ..none
                },
                "semver parse error",
            ),
            (
                Fields {
                    name: Some("refs/pull/2/head"),
                    ..none
                },
                "unable to resolve ref 'refs/pull/2/head' to a specific commit",
            ),
            (
                Fields {
                    commit: Some("main"),
                    ..none
                },
                "failed to parse commit 'main'",
            ),
            (
                Fields {
                    commit: Some(C),
                    branch: Some("gone"),
                    ..none
                },
                "couldn't find remote ref 'refs/heads/gone'",
            ),
            (
                Fields {
                    name: Some("/refs/heads/main"),
                    ..none
                },
                "ref '/refs/heads/main' is invalid",
            ),
            (
                Fields {
                    branch: Some("a b"),
                    ..none
                },
                "ref 'a b' is invalid",
            ),
            (
                Fields {
                    branch: Some("a\nwant x"),
                    ..none
                },
                "ref 'a\nwant x' is invalid",
            ),
        ];
        for (fields, message) in cases {
            assert_eq!(resolve(fields), Err(message.to_owned()), "{fields:?}");
        }
    }

    #[test]
    fn an_unborn_head_means_an_empty_repository() {
        let unborn = Ref::Unborn {
            full_ref_name: "HEAD".into(),
            target: "refs/heads/main".into(),
        };
        let error = Reference::Branch("main".to_owned())
            .resolve(&[unborn])
            .unwrap_err();
        assert!(matches!(error, Error::EmptyRepository), "{error}");
    }

    #[test]
    fn only_the_refs_that_are_needed_are_asked_for() {
        let prefixes = |fields| Reference::from_fields(fields).prefixes();
        let none = Fields::default();
        assert_eq!(
            prefixes(Fields {
                branch: Some("main"),
                ..none
            }),
            ["refs/heads/main", "HEAD"]
        );
        assert_eq!(
            prefixes(Fields {
                semver: Some("*"),
                ..none
            }),
            ["refs/tags/"]
        );
        assert_eq!(
            prefixes(Fields {
                name: Some("refs/tags/a^{}"),
                ..none
            }),
            ["refs/tags/a"]
        );
        assert_eq!(
            prefixes(Fields {
                commit: Some(A),
                ..none
            }),
            ["HEAD"]
        );
    }
}
