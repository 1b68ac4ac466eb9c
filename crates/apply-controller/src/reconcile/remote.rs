//! What builds may fetch from elsewhere (ADR 36): nothing, unless the cluster's administrator lists servers (`--remote-hosts`).

use std::cell::Cell;

use kustomize_build::{Fetch, FetchError, FileSystem, NoFetch, Repository, without_credentials};
use remote_base::{Fetched, Listed, Session};
use tokio::runtime::Handle;

use crate::context::Context;

/// What builds may fetch from elsewhere.
#[derive(Clone)]
pub enum Remote {
    /// Nothing.
    Nothing,
    /// Nothing, though servers are listed.
    Refused(String),
    /// What listed servers have.
    Listed(Listed),
}

impl Remote {
    /// What a Kustomization of a namespace may fetch. Where sources must be verified, what is not verified must not come in beside them.
    pub fn of(context: &Context, namespace: &str) -> Self {
        match &context.remote {
            None => Self::Nothing,
            Some(listed) => match context.images.refuses_remote(namespace) {
                Some(refusal) => Self::Refused(refusal),
                None => Self::Listed(listed.clone()),
            },
        }
    }

    /// Begins a build, for which servers are asked afresh or not.
    pub(super) fn begin(&self, runtime: Handle, afresh: bool) -> Fetching {
        match self {
            Self::Nothing => Fetching::Nothing,
            Self::Refused(why) => Fetching::Refused(why.clone(), Cell::new(false)),
            Self::Listed(listed) => Fetching::Listed(Box::new(listed.session(runtime, afresh))),
        }
    }
}

/// What one build fetches.
pub(super) enum Fetching {
    Nothing,
    Refused(String, Cell<bool>),
    Listed(Box<Session>),
}

impl Fetching {
    /// What was fetched. None if the result of the build depends on its tree only, and on no server or policy.
    pub(super) fn into_fetched(self) -> Option<Fetched> {
        match self {
            Self::Nothing => None,
            Self::Refused(_, was_asked) => was_asked.get().then(Fetched::new),
            Self::Listed(session) => session.was_asked().then(|| session.into_used()),
        }
    }

    fn fetch<T>(
        &self,
        address: &str,
        nothing: impl FnOnce(&NoFetch) -> Result<T, FetchError>,
        listed: impl FnOnce(&Session) -> Result<T, FetchError>,
    ) -> Result<T, FetchError> {
        match self {
            Self::Nothing => nothing(&NoFetch),
            Self::Refused(why, was_asked) => {
                was_asked.set(true);
                let address = without_credentials(address);
                let text = format!("remote resources are not supported: '{address}': {why}");
                Err(FetchError::Refused(text))
            }
            Self::Listed(session) => listed(session),
        }
    }
}

impl Fetch for Fetching {
    fn repository(&self, repository: &Repository) -> Result<Box<dyn FileSystem>, FetchError> {
        self.fetch(
            repository.raw(),
            |none| none.repository(repository),
            |session| session.repository(repository),
        )
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        self.fetch(url, |none| none.file(url), |session| session.file(url))
    }
}
