//! Fetch: carries out a plan against the remote. What each kind asks for is in `kind`; this holds what all share.

use std::path::PathBuf;

use git_client::Algorithms;
use tokio::time::Instant;

use crate::fetch::helm_repository;
use oci_verify::SigstoreRoot;
use remote_access::identity::Identities;
use transport::http;
use transport::stop::Stop;
use verification_policy::sources::Admission;

/// Context of fetching besides the object: shared by all objects, and without credentials of any.
#[derive(Clone)]
pub(crate) struct Fetcher {
    pub(crate) clients: http::Clients,
    pub(crate) registries: oci_client::registry::Memory,
    pub(crate) helm: helm_repository::Memory,
    /// Algorithms offered to ssh servers.
    pub(crate) ssh_algorithms: Algorithms,
    /// Where temporary files go.
    pub(crate) directory: PathBuf,
    /// How much is read of charts.
    pub(crate) charts: helm_package::Limits,
    /// Sigstore's roots of trust, for keyless signatures.
    pub(crate) sigstore: SigstoreRoot,
    /// Where the indexes of buckets are kept.
    pub(crate) indexes: PathBuf,
    /// Tokens of cloud providers.
    pub(crate) identities: Identities,
    /// The memory of the process for large objects of Git.
    memory: git_pack::Memory,
    /// The VerificationPolicies that apply to the run.
    pub(crate) admission: Admission,
    /// Ends the run's work on other threads.
    pub(crate) stop: Stop,
    /// When the run must be over.
    end: Option<Instant>,
}

impl Fetcher {
    /// A fetcher that knows nothing yet.
    pub(crate) fn new(directory: PathBuf, indexes: PathBuf, identities: Identities) -> Self {
        Self {
            clients: http::Clients::default(),
            registries: oci_client::registry::Memory::default(),
            helm: helm_repository::Memory::default(),
            ssh_algorithms: Algorithms::default(),
            directory,
            charts: helm_package::Limits::default(),
            sigstore: SigstoreRoot::default(),
            indexes,
            identities,
            memory: git_pack::Memory::default(),
            admission: Admission::default(),
            stop: Stop::default(),
            end: None,
        }
    }

    /// The fetcher of one run to which these policies apply, and which must be over in this time if one is given.
    pub(crate) fn for_run(&self, admission: Admission, timeout: Option<api::meta::Duration>) -> Self {
        Self {
            admission,
            stop: Stop::default(),
            end: timeout.map(|timeout| Instant::now() + timeout.to_std()),
            ..self.clone()
        }
    }

    /// A fetcher with one folder for everything, and no identity at any provider.
    #[cfg(test)]
    pub(crate) fn alone(directory: PathBuf) -> Self {
        let identities = Identities::new(0, std::time::Duration::ZERO, false, "");
        Self::new(directory.clone(), directory, identities)
    }

    /// When a fetch that begins now must be over.
    pub(crate) fn deadline(&self, timeout: api::meta::Duration) -> Instant {
        let deadline = Instant::now() + timeout.to_std();
        self.end.map_or(deadline, |end| end.min(deadline))
    }

    /// When the run must be over.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// How a repository is reached whose credentials must be there in this time.
    pub(crate) fn ways(&self, timeout: api::meta::Duration) -> remote_access::git::Ways<'_> {
        remote_access::git::Ways {
            clients: &self.clients,
            identities: &self.identities,
            ssh_algorithms: &self.ssh_algorithms,
            deadline: self.deadline(timeout),
        }
    }

    /// How packs are received.
    pub(crate) fn packs(&self) -> git_pack::Settings {
        git_pack::Settings {
            limits: git_pack::Limits::default(),
            memory: self.memory.clone(),
            cancelled: self.stop.flag().clone(),
        }
    }
}
