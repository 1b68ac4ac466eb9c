//! `GitRepository`: a commit of a Git repository.

mod content;
pub(crate) mod include;
mod references;
pub(crate) mod submodules;
pub(crate) mod verify;

use std::collections::BTreeMap;

use api::delivery::PolicySourceKind;
use api::meta::{AUTHOR_KEY, Artifact, ORIGIN_CREATED_KEY, SUBJECT_KEY};
use api::source::{GitRepository, GitRepositoryStatus, Source as _};
use artifact::store::{self, Ingest, Record};
use jiff::Timestamp;
use remote_access::git;
use transport::auth;
use verification_policy::sources::{Origin, Trust};

use crate::error::{Error, GitError};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;
use references::References;

pub(crate) use self::content::Content;
use git_client::pack::Pack;
use git_client::reference::{Fields, Reference};
use git_client::sparse::Sparse;

use self::content::{Part, Source};
use self::verify::{Keys, Subject};
use super::{Failure, Fetch, Fetched, Kind, Seen, Verified};

/// Longest first line of a commit message in an event, in characters, as in Flux.
const MAX_HEADLINE: usize = 50;

impl Kind for GitRepository {
    const NAME: &'static str = "GitRepository";
    const HAS_LATEST_URL: bool = false;
    const HAS_INPUTS: bool = true;
    const POLICY_KIND: PolicySourceKind = PolicySourceKind::GitRepository;
    type References = References;
    type Content = Content;

    fn refusal(&self) -> Option<Error> {
        let invalid = git::parsed_url(self).err();
        invalid.or_else(|| git::refusal(self)).map(Error::from)
    }

    fn inputs(&self) -> Vec<store::ObjectKey> {
        include::inputs(self)
    }

    fn wants_verification(&self) -> bool {
        self.spec.verification.is_some()
    }

    async fn read_references(&self, reader: &Reader) -> Result<References, Error> {
        let access = git::read(self, reader).await?;
        let keys = match &self.spec.verification {
            Some(verification) => {
                let secret = reader.secret(&verification.secret_ref.name).await;
                Some(
                    secret
                        .map(|secret| Keys::from_secret(&secret))
                        .map_err(|error| error.to_string()),
                )
            }
            None => None,
        };
        Ok(References {
            access,
            keys,
            inclusions: include::read(self, reader).await?,
        })
    }

    fn inclusion_changed(&self, references: &References) -> bool {
        let known = self
            .status
            .as_ref()
            .map(|status| status.included_artifacts.as_slice());
        include::differ(&references.inclusions, known.unwrap_or_default())
    }

    fn included(references: &References) -> Vec<Record> {
        references
            .inclusions
            .iter()
            .map(|inclusion| inclusion.record.clone())
            .collect()
    }

    fn settings_changed(&self) -> bool {
        let (spec, nothing) = (&self.spec, GitRepositoryStatus::default());
        let status = self.status.as_ref().unwrap_or(&nothing);
        spec.ignore != status.observed_ignore
            || spec.recurse_submodules != status.observed_recurse_submodules
            || spec.include != status.observed_include
            || spec.sparse_checkout != status.observed_sparse_checkout
    }

    async fn fetch(
        &self,
        references: &References,
        unless_revision: Option<String>,
        fetcher: &Fetcher,
    ) -> Result<Fetch<Content>, Failure> {
        let ways = fetcher.ways(self.timeout());
        let remotes = git::remotes(self, &references.access, ways)
            .await
            .map_err(Error::from)?;
        let request = git_client::Request {
            remote: remotes.main().map_err(Error::from)?,
            reference: Reference::from_fields(self.reference_fields()),
            sparse: Some(Sparse::new(&self.spec.sparse_checkout)),
            unless_revision,
            over: None,
            directory: fetcher.directory.clone(),
            packs: fetcher.packs(),
            deadline: fetcher.deadline(self.timeout()),
            stop: fetcher.stop.clone(),
        };
        let deadline = request.deadline;
        let shown = remotes.shown();
        let checkout = match git_client::fetch(request)
            .await
            .map_err(|error| GitError::of_fetch(shown, error))?
        {
            git_client::Outcome::Unchanged(resolved) => {
                return Ok(Fetch::Unchanged {
                    revision: resolved.revision,
                });
            }
            git_client::Outcome::Fetched(checkout) => checkout,
        };
        let git_client::Checkout {
            resolved,
            subject,
            pack,
        } = *checkout;
        let metadata = metadata(&pack);
        let seen = Seen {
            message: format!("new upstream revision '{}'", resolved.revision),
            revision: resolved.revision.clone(),
        };
        let mut content = Content {
            parts: Vec::new(),
            ignore: self.spec.ignore.clone(),
            sparse: Sparse::new(&self.spec.sparse_checkout),
            inclusions: references.inclusions.clone(),
            stop: fetcher.stop.clone(),
            resolved,
        };
        let filename = format!("{}.tar.gz", content.resolved.commit);
        if self.spec.recurse_submodules {
            let fetched = {
                let way = (&origin(self, references), deadline);
                submodules::fetch(pack, &mut content, &remotes, fetcher, way).await
            };
            fetched.map_err(|error| Failure {
                error,
                seen: Some(seen.clone()),
            })?;
        } else {
            content.parts.push(whole(pack));
        }
        Ok(Fetch::New(Fetched {
            filename,
            seen,
            metadata,
            headline: Some(shortened(&subject)),
            content,
        }))
    }

    async fn verify(
        &self,
        references: &References,
        fetched: &mut Fetched<Content>,
        _fetcher: &Fetcher,
    ) -> Result<Verified, Error> {
        let keys = match &references.keys {
            Some(Ok(keys)) => keys.clone(),
            Some(Err(problem)) => return Err(verify::Error::ReadKeys(problem.clone()).into()),
            None => Keys::default(),
        };
        let subject = {
            let content = &fetched.content;
            let (Some(verification), Some(pack)) = (&self.spec.verification, content.commit()) else {
                return Err(Error::Abandoned);
            };
            Subject::read(verification, &content.resolved, pack)?
        };
        let verifying = tokio::task::spawn_blocking(move || subject.verify(&keys, Timestamp::now()));
        let message = verifying.await.map_err(|_| Error::Abandoned)??;
        Ok(Verified { message })
    }

    fn origin(&self, references: &References) -> Option<Origin> {
        Some(origin(self, references))
    }

    fn brings_others(&self) -> bool {
        self.spec.recurse_submodules
    }

    async fn meets(
        &self,
        trust: &Trust,
        _references: &References,
        fetched: &mut Fetched<Content>,
        _fetcher: &Fetcher,
    ) -> Result<(), String> {
        let (wanted, keys) = trust.commits()?;
        let content = &fetched.content;
        let pack = content.commit().ok_or("it has no commit")?;
        let subject = Subject::read(wanted, &content.resolved, pack);
        let subject = subject.map_err(|error| error_chain::chain(&error))?;
        let keys = Keys::from_secret(keys);
        let verifying = tokio::task::spawn_blocking(move || subject.verify(&keys, Timestamp::now()));
        let verified = verifying.await.map_err(|error| error.to_string())?;
        verified.map(drop).map_err(|error| error_chain::chain(&error))
    }

    fn fill(content: Content, ingest: &mut Ingest) -> Result<(), Error> {
        content.fill(ingest)
    }

    fn in_storage_message(revision: &str) -> String {
        format!("stored artifact for revision '{revision}'")
    }

    fn announcement(&self, artifact: &Artifact, headline: Option<&str>) -> String {
        format!(
            "stored artifact for commit '{}'",
            headline.unwrap_or(&artifact.revision)
        )
    }

    fn set_artifact(
        status: &mut GitRepositoryStatus,
        artifact: Option<Artifact>,
        _latest_url: Option<String>,
    ) {
        status.artifact = artifact;
    }

    fn note_settings(&self, status: &mut GitRepositoryStatus) {
        status.observed_ignore = self.spec.ignore.clone();
        status.observed_recurse_submodules = self.spec.recurse_submodules;
        status.observed_include = self.spec.include.clone();
        status.observed_sparse_checkout = self.spec.sparse_checkout.clone();
        let verification = self.spec.verification.as_ref();
        status.source_verification_mode = verification.map(|wanted| verify::observed_mode(wanted).to_owned());
    }

    fn note_included(included: Vec<Artifact>, status: &mut GitRepositoryStatus) {
        status.included_artifacts = included;
    }
}

/// Where the repository is, for VerificationPolicies.
fn origin(object: &GitRepository, references: &References) -> Origin {
    let access = &references.access;
    // Over ssh it says itself which keys the host has. A Secret of which no certificate can be read is refused when it is used.
    let is_ssh = object.spec.url.starts_with("ssh://");
    let own_authorities = is_ssh || auth::tls(&access.secret).map_or(true, |tls| tls.ca.is_some());
    let origin = Origin::of_url(&object.spec.url, false);
    origin.asked_by(access.proxy.is_some(), own_authorities)
}

/// A commit at the root of the artifact.
fn whole(pack: Pack) -> Part {
    Part {
        prefix: String::new(),
        source: Source::Commit(Box::new(pack)),
    }
}

trait GitRepositoryExt {
    fn reference_fields(&self) -> Fields<'_>;
}

impl GitRepositoryExt for GitRepository {
    fn reference_fields(&self) -> Fields<'_> {
        let Some(reference) = &self.spec.reference else {
            return Fields::default();
        };
        Fields {
            branch: reference.branch.as_deref(),
            tag: reference.tag.as_deref(),
            semver: reference.semver.as_deref(),
            name: reference.name.as_deref(),
            commit: reference.commit.as_deref(),
        }
    }
}

/// Returns the metadata of a commit, beside its name: its time, its author and its subject, each in one line.
fn metadata(pack: &Pack) -> BTreeMap<String, String> {
    let time = pack
        .committed_at()
        .and_then(|seconds| Timestamp::from_second(seconds).ok());
    let time = time.map(|time| (ORIGIN_CREATED_KEY, time.to_string()));
    let texts = [(AUTHOR_KEY, pack.author()), (SUBJECT_KEY, pack.subject())];
    let texts = texts.map(|(key, text)| {
        let line: String = text.chars().filter(|c| !c.is_control()).collect();
        (key, shortened(line.trim()))
    });
    time.into_iter()
        .chain(texts.into_iter().filter(|(_, text)| !text.is_empty()))
        .map(|(key, text)| (key.to_owned(), text))
        .collect()
}

fn shortened(subject: &str) -> String {
    let mut characters = subject.chars();
    let start: String = characters.by_ref().take(MAX_HEADLINE).collect();
    if characters.next().is_some() {
        format!("{start}...")
    } else {
        start
    }
}

#[cfg(test)]
mod tests;
