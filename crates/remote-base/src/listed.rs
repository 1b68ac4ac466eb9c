//! What builds of a controller fetch (ADR 36). Tenants write the addresses: only listed servers are asked, no credentials of the
//! controller are sent, and one build may ask for a limited amount.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use git_pack::Limits;
use kustomize_build::{Fetch, FetchError, FileSystem, Repository, without_credentials};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::time::Instant;
use transport::http::Hosts;

use crate::kept::{Commit, Kept};
use crate::{Bases, Settings, files, git, tree};

/// How many repositories and files one build may name.
const MAX_NAMED: u32 = 64;
/// How long all of them may take together.
const MAX_TIME: Duration = Duration::from_secs(120);
/// Bytes of all files.
const MAX_BYTES: usize = 32 << 20;
/// A server is asked again for a branch or tag after this time.
const FRESH: Duration = Duration::from_secs(30);
/// What is received of one repository.
const LIMITS: Limits = Limits {
    objects: 100_000,
    object_bytes: 32 << 20,
    delta_bytes: 32 << 20,
    inflated_bytes: 512 << 20,
};

/// What a build has fetched: addresses without credentials, and for each the revisions, or the digests of a file.
pub type Fetched = BTreeMap<String, String>;

/// Fetches from listed servers. Clones share what is kept.
#[derive(Clone)]
pub struct Listed(Arc<Shared>);

struct Shared {
    bases: Bases,
    packs: git_pack::Memory,
    kept: Kept,
}

impl fmt::Debug for Listed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Listed").finish_non_exhaustive()
    }
}

impl Listed {
    /// Makes it for these servers.
    pub fn new(servers: Hosts) -> Self {
        let settings = Settings {
            only: Some(servers),
            ..Settings::default()
        };
        Self(Arc::new(Shared {
            bases: Bases::new(settings),
            packs: git_pack::Memory::default(),
            kept: Kept::default(),
        }))
    }

    /// Begins what one build fetches. With `afresh`, servers are asked for everything.
    pub fn session(&self, runtime: Handle, afresh: bool) -> Session {
        Session {
            shared: Arc::clone(&self.0),
            runtime,
            afresh,
            deadline: Instant::now() + MAX_TIME,
            left: Cell::new(MAX_NAMED),
            files: RefCell::default(),
            used: RefCell::default(),
        }
    }
}

/// What one build fetches. It must be used on a thread that may block.
pub struct Session {
    shared: Arc<Shared>,
    runtime: Handle,
    afresh: bool,
    deadline: Instant,
    left: Cell<u32>,
    /// Where files are encrypted, a build runs twice.
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    used: RefCell<Fetched>,
}

impl Session {
    /// Returns whether the build asked for anything.
    pub fn was_asked(&self) -> bool {
        self.left.get() < MAX_NAMED
    }

    /// Returns what was fetched.
    pub fn into_used(self) -> Fetched {
        self.used.into_inner()
    }

    fn count(&self, address: &str) -> Result<(), FetchError> {
        match self.left.get().checked_sub(1) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(FetchError::Refused(format!(
                "'{}': a build may name {MAX_NAMED} remote resources; copy some of them into the source",
                without_credentials(address)
            ))),
        }
    }

    /// Notes what was used. Of one repository there may be several commits.
    fn note(&self, address: String, revision: String) {
        let mut used = self.used.borrow_mut();
        let known = used.entry(address).or_default();
        if !known.split(' ').any(|one| one == revision) {
            if !known.is_empty() {
                known.push(' ');
            }
            known.push_str(&revision);
        }
    }

    async fn commit(&self, repository: &Repository) -> Result<Commit, FetchError> {
        let asked = (repository.clone_url(), repository.reference().to_owned());
        let kept = self.shared.kept.get(&asked);
        // A commit that is named by its id is the same at all times.
        let is_id = |kept: &Commit| git::is_id(&asked.1) && kept.revision.ends_with(&asked.1);
        let is_new =
            |kept: &Commit| is_id(kept) || !self.afresh && kept.at.is_some_and(|at| at.elapsed() < FRESH);
        if let Some(kept) = kept.as_ref().filter(|kept| is_new(kept)) {
            return Ok(kept.clone());
        }
        let ask = git::Ask {
            known: kept.as_ref().map(|kept| kept.revision.clone()),
            packs: git_pack::Settings {
                limits: LIMITS,
                memory: self.shared.packs.clone(),
                ..git_pack::Settings::default()
            },
            deadline: self.deadline.min(git::deadline(repository)),
        };
        let fetched = git::fetch(&self.shared.bases, repository, ask).await;
        let fetched = fetched.inspect_err(|_| {
            // The next attempt must ask again, or it would deliver what was there before the failure.
            if let Some(kept) = kept.clone() {
                self.shared.kept.put(Commit { at: None, ..kept });
            }
        })?;
        let (revision, pack) = match (fetched, kept) {
            (Some(fetched), _) => {
                let revision = fetched.resolved.revision;
                let address = without_credentials(repository.raw());
                tracing::info!(address, revision, "fetched a remote base");
                (revision, fetched.pack)
            }
            (None, Some(kept)) => (kept.revision, kept.pack),
            (None, None) => return Err(FetchError::Failed("git repository is empty".to_owned())),
        };
        let at = Some(Instant::now());
        let commit = Commit {
            asked,
            revision,
            pack,
            at,
        };
        self.shared.kept.put(commit.clone());
        Ok(commit)
    }
}

impl Fetch for Session {
    fn repository(&self, repository: &Repository) -> Result<Box<dyn FileSystem>, FetchError> {
        self.count(repository.raw())?;
        let commit = self.runtime.block_on(self.commit(repository))?;
        let address = without_credentials(&repository.clone_url());
        self.note(address, commit.revision);
        Ok(tree(commit.pack))
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        if let Some(known) = self.files.borrow().get(url) {
            return Ok(known.clone());
        }
        self.count(url)?;
        let deadline = self.deadline.min(Bases::deadline());
        let known: usize = self.files.borrow().values().map(Vec::len).sum();
        let limit = u64::try_from(MAX_BYTES.saturating_sub(known)).unwrap_or_default();
        let content = files::get(&self.shared.bases, url, limit, deadline);
        let content = self.runtime.block_on(content)?;
        self.files.borrow_mut().insert(url.to_owned(), content.clone());
        // A query may have a token in it.
        let address = url.split(['?', '#']).next().unwrap_or_default();
        let digest = hex::encode(Sha256::digest(&content));
        let address = without_credentials(address);
        self.note(address, format!("sha256:{digest}"));
        Ok(content)
    }
}
