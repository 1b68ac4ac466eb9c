//! The requests that this crate sends, each with a time limit and few retries.
//!
//! Nothing here decides; answers come back as [`Glimpse`]s or whole objects, failures as [`Failure`]s. Only what is safe
//! to send twice is retried: connection trouble, and a conflict of two writes at the same moment. Kubernetes'
//! 429/503/504 are retried by the client itself.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::params::{DeleteParams, GetParams, ListParams, Preconditions};
use kube::core::request::Request;
use kube::core::{ApiResource, Resource as _, Status};
use manifest::ObjectId;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::failure::{Class, Failure, names_nothing};
use crate::fingerprint::Glimpse;
use crate::mapper::Resource;
use crate::prune::{PAGE, Page};
use crate::settings::Settings;

/// Sends requests for one identity.
#[derive(Clone)]
pub(crate) struct Requests {
    client: Client,
    settings: Arc<Settings>,
    /// Shared by all identities; its order is first come, first served.
    in_flight: Arc<Semaphore>,
}

/// Where an object is.
#[derive(Clone, Debug)]
pub struct Address {
    /// Its kind.
    pub resource: Arc<Resource>,
    /// Its namespace; empty in the cluster scope.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The server's answer to a write or to a dry run.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) glimpse: Glimpse,
    /// The whole object, when it was asked for.
    pub(crate) whole: Option<Value>,
}

/// How an apply is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) dry_run: bool,
    /// Asks for the whole object instead of its metadata.
    pub(crate) whole: bool,
}

type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// Attempts of a request that fails on the way, or meets another write.
const ATTEMPTS: u32 = 3;

/// Pause before the second attempt; doubled before the third.
const PAUSE: Duration = Duration::from_millis(100);

impl Address {
    /// Returns which object it is.
    pub fn id(&self) -> ObjectId {
        ObjectId {
            group: self.resource.api.group.clone(),
            kind: self.resource.api.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Returns the URL of the collection that the object is in.
    pub(crate) fn collection(&self) -> Request {
        let namespace = self.resource.namespaced.then_some(self.namespace.as_str());
        Request::new(Glimpse::url_path(&self.resource.api, namespace))
    }
}

impl Requests {
    pub(crate) fn new(client: Client, settings: Arc<Settings>) -> Self {
        let in_flight = Arc::new(Semaphore::new(settings.requests_in_flight.max(1)));
        Self {
            client,
            settings,
            in_flight,
        }
    }

    /// The same cluster for another identity.
    pub(crate) fn with_client(&self, client: Client) -> Self {
        Self {
            client,
            ..self.clone()
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Applies the object under our field manager, taking fields from whoever has them. With a resourceVersion it is
    /// applied over that version only, and a conflict is not tried again.
    pub(crate) async fn apply(
        &self,
        at: &Address,
        object: &Map<String, Value>,
        mode: Mode,
    ) -> Result<Answer, Failure> {
        let params = PatchParams {
            dry_run: mode.dry_run,
            ..PatchParams::apply(&self.settings.field_manager).force()
        };
        let patch = Patch::Apply(object);
        let collection = at.collection();
        let build = || {
            if mode.whole {
                collection.patch(&at.name, &params, &patch)
            } else {
                collection.patch_metadata(&at.name, &params, &patch)
            }
        };
        let is_locked = object
            .get("metadata")
            .is_some_and(|m| m.get("resourceVersion").is_some());
        self.answer(build, mode.whole, !is_locked).await
    }

    /// Sends a JSON patch that carries the version it was made from.
    pub(crate) async fn json_patch(&self, at: &Address, operations: Value) -> Result<Answer, Failure> {
        let unreadable = |error| Failure::new(Class::Invalid, format!("failed to build the patch: {error}"));
        let patch = Patch::<()>::Json(serde_json::from_value(operations).map_err(unreadable)?);
        let params = PatchParams {
            field_manager: Some(self.settings.field_manager.clone()),
            ..PatchParams::default()
        };
        self.answer(
            || at.collection().patch_metadata(&at.name, &params, &patch),
            false,
            false,
        )
        .await
    }

    /// Asks what a patch would make of an object, which has to be there.
    pub(crate) async fn try_patch(&self, at: &Address, patch: &MadePatch) -> Result<Answer, Failure> {
        let params = PatchParams {
            dry_run: true,
            field_manager: Some(self.settings.field_manager.clone()),
            ..PatchParams::default()
        };
        let patch = match patch {
            MadePatch::Strategic(patch) => Patch::Strategic(patch),
            MadePatch::Merge(patch) => Patch::Merge(patch),
        };
        self.answer(|| at.collection().patch(&at.name, &params, &patch), true, true)
            .await
    }

    /// Reads the metadata of a live object; None when there is none.
    pub(crate) async fn metadata(&self, at: &Address) -> Result<Option<Value>, Failure> {
        match self
            .send(
                || at.collection().get_metadata(&at.name, &GetParams::default()),
                true,
            )
            .await
        {
            Ok(text) => parse(&text).map(Some),
            Err(Sent::Status(status)) if is_object_missing(&status) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// Lists the metadata of a kind's objects, in one namespace or (empty) in all, from where a page before ended.
    pub(crate) async fn page(
        &self,
        kind: &ApiResource,
        namespace: &str,
        next: &str,
    ) -> Result<Page, Failure> {
        let collection = Request::new(Glimpse::url_path(kind, Some(namespace).filter(|n| !n.is_empty())));
        let params = ListParams::default().limit(PAGE);
        let params = if next.is_empty() {
            params
        } else {
            params.continue_token(next)
        };
        let text = self.send(|| collection.list_metadata(&params), true).await?;
        parse(&text)
    }

    /// Reads a whole live object; None when there is none.
    pub(crate) async fn whole(&self, at: &Address) -> Result<Option<Answer>, Failure> {
        match self
            .send(|| at.collection().get(&at.name, &GetParams::default()), true)
            .await
        {
            Ok(text) => Ok(Some(Answer {
                glimpse: parse(&text)?,
                whole: Some(parse(&text)?),
            })),
            Err(Sent::Status(status)) if is_object_missing(&status) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// Deletes in the background, as Flux does; `Ok(false)` when there is no such object.
    pub(crate) async fn delete(
        &self,
        at: &Address,
        preconditions: Option<Preconditions>,
    ) -> Result<bool, Failure> {
        let params = DeleteParams {
            preconditions,
            ..DeleteParams::background()
        };
        Ok(self.delete_with(at, params).await?.is_some())
    }

    /// Deletes, and returns the answer; None when there is no such object.
    pub(crate) async fn delete_with(
        &self,
        at: &Address,
        params: DeleteParams,
    ) -> Result<Option<String>, Failure> {
        match self
            .send(|| at.collection().delete(&at.name, &params), false)
            .await
        {
            Ok(answer) => Ok(Some(answer)),
            Err(Sent::Status(status)) if is_object_missing(&status) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// Sends a request that is answered by an object.
    pub(crate) async fn answer(
        &self,
        build: impl Fn() -> Built,
        whole: bool,
        retry_conflict: bool,
    ) -> Result<Answer, Failure> {
        let text = self.send(build, retry_conflict).await.map_err(Failure::from)?;
        let glimpse = parse(&text)?;
        Ok(Answer {
            glimpse,
            whole: if whole { Some(parse(&text)?) } else { None },
        })
    }

    async fn send(&self, build: impl Fn() -> Built, retry_conflict: bool) -> Result<String, Sent> {
        let mut attempt = 1;
        loop {
            let request =
                build().map_err(|error| Sent::Failed(Failure::new(Class::Invalid, error.to_string())))?;
            // Held for one attempt, not for the pause before the next. No one closes it.
            let turn = self.in_flight.acquire().await;
            let sent =
                tokio::time::timeout(self.settings.request_timeout, self.client.request_text(request)).await;
            drop(turn);
            let error = match sent {
                Ok(Ok(text)) => return Ok(text),
                Ok(Err(error)) => error,
                Err(_) => return Err(Sent::Failed(no_answer(self.settings.request_timeout))),
            };
            if attempt == ATTEMPTS || !is_worth_another_attempt(&error, retry_conflict) {
                return Err(error.into());
            }
            tokio::time::sleep(PAUSE * 2u32.pow(attempt - 1)).await;
            attempt += 1;
        }
    }
}

/// Why a request failed.
enum Sent {
    /// The server answered with a status.
    Status(Box<Status>),
    /// Nothing that a server said.
    Failed(Failure),
}

impl From<kube::Error> for Sent {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Sent::Status(status),
            other => Sent::Failed(Failure::from_client(&other)),
        }
    }
}

impl From<Sent> for Failure {
    fn from(sent: Sent) -> Self {
        match sent {
            Sent::Status(status) => Failure::from_status(&status),
            Sent::Failed(failure) => failure,
        }
    }
}

fn is_object_missing(status: &Status) -> bool {
    status.is_not_found() && !names_nothing(status)
}

fn is_worth_another_attempt(error: &kube::Error, retry_conflict: bool) -> bool {
    match error {
        kube::Error::Api(status) => retry_conflict && status.is_conflict(),
        kube::Error::Service(_) | kube::Error::HyperError(_) => true,
        _ => false,
    }
}

fn no_answer(limit: Duration) -> Failure {
    Failure::new(
        Class::Transient,
        format!("the API server did not answer within {} s", limit.as_secs()),
    )
}

/// Parses an answer here and not in kube, which logs what it cannot parse.
fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let unreadable = |error| {
        Failure::new(
            Class::Transient,
            format!("failed to read the API server's answer: {error}"),
        )
    };
    serde_json::from_str(text).map_err(unreadable)
}

/// A patch that the caller made of states that it knows.
#[derive(Clone, Debug, PartialEq)]
pub enum MadePatch {
    /// Lists are merged by their keys. Only for kinds of Kubernetes itself.
    Strategic(Value),
    /// RFC 7386.
    Merge(Value),
}
