//! The kinds of sources as variations of one pipeline: what a kind reads, how it is fetched, what fills its artifact, and
//! what its status says of all that. One file for each kind; steps and conditions are in `reconcile`, once for all.

pub(crate) mod bucket;
pub(crate) mod git_repository;
mod helm_chart;
pub(crate) mod helm_repository;
mod oci_repository;

pub(crate) use bucket::AccessError as BucketAccessError;

use std::collections::BTreeMap;
use std::fmt::Debug;

use api::delivery::PolicySourceKind;
use api::meta::{Artifact, HasConditions, reasons};
use artifact::store::{self, Ingest, Record};
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;
use verification_policy::sources::{Origin, Trust};

use crate::error::Error;
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::reader::Reader;

/// A kind that is resolved to artifacts.
pub(crate) trait Kind:
    api::source::Source
    + api::facts::HasFacts
    + kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + HasStatus<Status: HasConditions + Clone + Default + PartialEq + Debug + Serialize + Send + Sync>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Its name, as in manifests.
    const NAME: &'static str;
    /// Whether the status has the address of the newest archive besides the artifact's own.
    const HAS_LATEST_URL: bool;
    /// Last part of that address.
    const LATEST_NAME: &'static str = "latest.tar.gz";
    /// Whether objects of this kind build upon the artifacts of others ([`Kind::inputs`]).
    const HAS_INPUTS: bool = false;
    /// Whether its spec has a timeout for its remote.
    const HAS_TIMEOUT: bool = true;
    /// Reason of the condition that says that the artifact is not the newest.
    const OUTDATED_REASON: &'static str = "NewRevision";
    /// Its name for VerificationPolicies.
    const POLICY_KIND: PolicySourceKind;
    /// Objects that the spec refers to, as read.
    type References: Send + Sync + 'static;
    /// Fetched content, ready to be stored.
    type Content: Send + 'static;

    /// Returns the error for a spec that is invalid or asks for an unsupported feature, until it changes.
    fn refusal(&self) -> Option<Error>;

    /// Returns whether the object is only read by others: it has no status, no finalizer and no artifact.
    fn is_static(&self) -> bool {
        false
    }

    /// Drops what the fetcher keeps for an object that is gone.
    fn forget(_: &controller_kit::ObjectKey, _: &Fetcher) {}

    /// The sources that this one builds upon. When one of them changes, this one is reconciled at once.
    fn inputs(&self) -> Vec<store::ObjectKey> {
        Vec::new()
    }

    /// Returns whether the spec wants to know who made the content. If so, [`Kind::verify`] is asked about it.
    fn wants_verification(&self) -> bool {
        false
    }

    /// Reads what the spec refers to.
    fn read_references(
        &self,
        reader: &Reader,
    ) -> impl Future<Output = Result<Self::References, Error>> + Send;

    /// Returns whether the artifact was made with other settings than those of the spec, so that the same revision gives
    /// another artifact.
    fn settings_changed(&self) -> bool;

    /// Returns whether other artifacts than those now in the store went into the artifact.
    fn inclusion_changed(&self, _references: &Self::References) -> bool {
        false
    }

    /// The artifacts of others that go into this one.
    fn included(_references: &Self::References) -> Vec<Record> {
        Vec::new()
    }

    /// Asks the remote for its revision, and for its content unless it is the known one.
    fn fetch(
        &self,
        references: &Self::References,
        unless_revision: Option<String>,
        fetcher: &Fetcher,
    ) -> impl Future<Output = Result<Fetch<Self::Content>, Failure>> + Send;

    /// Checks who made the content, before any of it is stored. Only asked when the spec wants it.
    fn verify(
        &self,
        _references: &Self::References,
        _fetched: &mut Fetched<Self::Content>,
        _fetcher: &Fetcher,
    ) -> impl Future<Output = Result<Verified, Error>> + Send {
        std::future::ready(Err(Error::Unsupported {
            field: "spec.verify".to_owned(),
        }))
    }

    /// Where the content comes from, for VerificationPolicies. None: from other sources alone.
    fn origin(&self, references: &Self::References) -> Option<Origin>;

    /// Returns whether content may come along from elsewhere, so that policies about other places than the object's own
    /// may apply.
    fn brings_others(&self) -> bool {
        false
    }

    /// Verifies the content as a VerificationPolicy demands it, before any of it is stored.
    fn meets(
        &self,
        trust: &Trust,
        references: &Self::References,
        fetched: &mut Fetched<Self::Content>,
        fetcher: &Fetcher,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Puts the content into an artifact. Blocks.
    fn fill(content: Self::Content, ingest: &mut Ingest) -> Result<(), Error>;

    /// Returns the built artifact, for kinds that build their content instead of taking it as it is.
    fn build(_content: &Self::Content) -> Option<Build> {
        None
    }

    /// Message of the conditions of an object whose artifact is stored.
    fn in_storage_message(revision: &str) -> String;

    /// Reason and message of the conditions of an object whose artifact is stored. Without a build, it was stored before.
    fn in_storage(&self, revision: &str, build: Option<&Build>) -> (String, String) {
        match build {
            Some(build) => (build.reason.to_owned(), build.summary.clone()),
            None => (reasons::SUCCEEDED.to_owned(), Self::in_storage_message(revision)),
        }
    }

    /// Message of the event about a new artifact. The headline is what the remote says of the revision.
    fn announcement(&self, artifact: &Artifact, headline: Option<&str>) -> String;

    /// Sets the artifact of a status, and the address of the newest archive where the kind has one.
    fn set_artifact(status: &mut Self::Status, artifact: Option<Artifact>, latest_url: Option<String>);

    /// Notes in the status with which settings the artifact was made.
    fn note_settings(&self, status: &mut Self::Status);

    /// Notes in the status which artifacts of others went into the artifact.
    fn note_included(_included: Vec<Artifact>, _status: &mut Self::Status) {}

    /// Notes in the status what was built.
    fn note_build(&self, _build: &Build, _status: &mut Self::Status) {}

    /// Notes in the status which revisions of [`Kind::inputs`] there were when the object was looked at.
    fn note_inputs(_revisions: &[(store::ObjectKey, String)], _status: &mut Self::Status) {}
}

/// A fetch that went well.
pub(crate) enum Fetch<C> {
    /// The remote has what is stored already.
    Unchanged {
        /// Its revision.
        revision: String,
    },
    /// The remote has something else.
    New(Fetched<C>),
}

/// Content and what is known about it.
pub(crate) struct Fetched<C> {
    pub(crate) seen: Seen,
    /// Last part of the artifact's path.
    pub(crate) filename: String,
    pub(crate) metadata: BTreeMap<String, String>,
    /// Headline of the revision at the remote, such as the first line of a commit message.
    pub(crate) headline: Option<String>,
    pub(crate) content: C,
}

/// Result of a build, where the artifact is more than a copy of the fetched content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Build {
    /// Reason of the conditions and of the event.
    pub(crate) reason: &'static str,
    /// Their message: what was done.
    pub(crate) summary: String,
    /// Name in the content.
    pub(crate) name: String,
    /// Files with values that went into it.
    pub(crate) values_files: Vec<String>,
    /// How many charts were added to it.
    pub(crate) resolved_dependencies: usize,
}

/// Content whose maker is known and trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verified {
    /// Message of the SourceVerified condition: what was verified, and with whose signature. Empty when a trust policy
    /// lets unverified content pass: then there is no such condition.
    pub(crate) message: String,
}

/// A revision that the remote has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) revision: String,
    /// The same in a sentence: "new upstream revision '…'".
    pub(crate) message: String,
}

/// A fetch that failed, perhaps after the remote said what it has.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) seen: Option<Seen>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, seen: None }
    }
}

#[cfg(test)]
mod tests;
