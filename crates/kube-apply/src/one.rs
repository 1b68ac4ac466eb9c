//! One object at a time, for callers with an order and rules of their own: Helm's actions.
//!
//! Nothing is decided here. A write is sent under our field manager, its answer comes back whole, and the index of managed
//! objects learns what the write left, so that drift of such objects is told like that of all others.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::core::params::{DeleteParams, PostParams, ValidationDirective};
use manifest::Object;
use serde_json::{Map, Value};

use crate::engine::Engine;
use crate::failure::{Class, Failure};
use crate::fingerprint::{Digest, Facts};
use crate::managed::Applying;
use crate::prepare::{expires, is_path_segment};
use crate::request::{Address, Answer};
use crate::settings::Owner;
use crate::{takeover, terminated};

pub use crate::request::MadePatch;

pub use crate::cascade::{Cascade, Deleted};

/// How one object is applied on the server.
#[derive(Clone, Debug, Default)]
pub struct ApplyOne<'a> {
    /// In whose name; drift is told to no one without one.
    pub owner: Option<&'a Owner>,
    /// Refuses fields that the kind does not have.
    pub strict: bool,
    /// Managers, by their whole names, whose fields are made ours, whichever way they wrote.
    pub take_over: &'a [&'a str],
}

/// How often an object is applied while others write in between.
const ATTEMPTS: u32 = 3;

impl Engine {
    /// Returns whether the owner applied exactly this, and no one touched it since; no request is needed to know.
    pub fn is_current(&self, object: &Object, owner: &Owner) -> bool {
        let desired = Digest::of_map(object.value());
        self.managed().is_current(&object.id(), owner, desired)
    }

    /// Applies an object on the server, taking fields from whoever has them; returns what the server made of it, without managedFields.
    ///
    /// # Errors
    /// When the server refuses. The message holds nothing of a Secret.
    pub async fn apply_one(
        &self,
        at: &Address,
        object: &Object,
        how: &ApplyOne<'_>,
    ) -> Result<Value, Failure> {
        at.check()?;
        let flight = self.managed().begin(&object.id());
        let answer = self.applied(at, object, how).await;
        let answer = answer.map_err(|failure| failure.without_values_of(object))?;
        if let Some(owner) = how.owner {
            let facts = Facts::new(&answer.glimpse, self.settings());
            flight.record(owner, applying(object, Digest::of_map(object.value())), &facts);
        }
        whole(answer)
    }

    async fn applied(&self, at: &Address, object: &Object, how: &ApplyOne<'_>) -> Result<Answer, Failure> {
        let mut attempt = 1;
        loop {
            let answer = self.apply_once(at, object.value(), how.strict).await?;
            let metadata = answer.whole.as_ref().and_then(|whole| whole.get("metadata"));
            let Some(patch) = metadata.and_then(|m| takeover::patch_of(m, how.take_over, self.settings()))
            else {
                return Ok(answer);
            };
            match self.requests().json_patch(at, patch).await {
                Ok(_) => {}
                Err(failure) if failure.class == Class::Conflict && attempt < ATTEMPTS => {}
                Err(failure) => return Err(failure),
            }
            attempt += 1;
        }
    }

    async fn apply_once(
        &self,
        at: &Address,
        object: &Map<String, Value>,
        strict: bool,
    ) -> Result<Answer, Failure> {
        let params = PatchParams {
            field_validation: strict.then_some(ValidationDirective::Strict),
            ..PatchParams::apply(&self.settings().field_manager).force()
        };
        let patch = Patch::Apply(object);
        let build = || at.collection().patch(&at.name, &params, &patch);
        self.requests().answer(build, true, true).await
    }

    /// Creates an object; returns what the server made of it, without managedFields.
    ///
    /// # Errors
    /// When there is one of that name, [`Class::Conflict`] with the status `AlreadyExists`; or the server refuses.
    pub async fn create_one(
        &self,
        at: &Address,
        object: &Object,
        owner: Option<&Owner>,
    ) -> Result<Value, Failure> {
        at.check()?;
        let body = serde_json::to_vec(object.value()).map_err(|error| unreadable(&error))?;
        let params = self.post_params();
        let build = || at.collection().create(&params, body.clone());
        self.written(object, owner, self.requests().answer(build, true, false))
            .await
    }

    /// Replaces an object by another state of it.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn replace_one(
        &self,
        at: &Address,
        object: &Object,
        owner: Option<&Owner>,
    ) -> Result<Value, Failure> {
        at.check()?;
        let body = serde_json::to_vec(object.value()).map_err(|error| unreadable(&error))?;
        let params = self.post_params();
        let build = || at.collection().replace(&at.name, &params, body.clone());
        self.written(object, owner, self.requests().answer(build, true, false))
            .await
    }

    /// Sends a patch; `object` is the state that it leads to.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn patch_one(
        &self,
        at: &Address,
        object: &Object,
        patch: &MadePatch,
        owner: Option<&Owner>,
    ) -> Result<Value, Failure> {
        at.check()?;
        let params = PatchParams {
            field_manager: Some(self.settings().field_manager.clone()),
            ..PatchParams::default()
        };
        let patch = match patch {
            MadePatch::Strategic(patch) => Patch::Strategic(patch),
            MadePatch::Merge(patch) => Patch::Merge(patch),
        };
        let build = || at.collection().patch(&at.name, &params, &patch);
        self.written(object, owner, self.requests().answer(build, true, true))
            .await
    }

    /// Reads an object; None if there is none.
    ///
    /// # Errors
    /// When it may not be read, or the server does not answer.
    pub async fn read_one(&self, at: &Address) -> Result<Option<Value>, Failure> {
        at.check()?;
        let found = self.requests().whole(at).await?;
        found.map(whole).transpose()
    }

    /// Reads the metadata of an object, as `{"metadata": …}`; None if there is none.
    ///
    /// # Errors
    /// When it may not be read, or the server does not answer.
    pub async fn read_metadata_one(&self, at: &Address) -> Result<Option<Value>, Failure> {
        at.check()?;
        self.requests().metadata(at).await
    }

    /// Deletes an object, whoever else wants it.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn delete_one(&self, at: &Address, cascade: Cascade) -> Result<Deleted, Failure> {
        at.check()?;
        self.managed().forget_object(&at.id());
        let params = match cascade {
            Cascade::Background => DeleteParams::background(),
            Cascade::Foreground => DeleteParams::foreground(),
            Cascade::Orphan => DeleteParams::orphan(),
        };
        match self.requests().delete_with(at, params).await? {
            None => Ok(Deleted::Missing),
            Some(answer) if is_terminating(&answer) => Ok(Deleted::Terminating),
            Some(_) => Ok(Deleted::Gone),
        }
    }

    /// Waits until an object is gone.
    ///
    /// # Errors
    /// When it is still there after that time.
    pub async fn wait_gone(&self, at: &Address, timeout: Duration) -> Result<(), Failure> {
        terminated::wait_for_one(self.requests().client(), at, timeout).await
    }

    fn post_params(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.settings().field_manager.clone()),
            ..PostParams::default()
        }
    }

    /// Waits for a write that is not a server-side apply, and records what it left. What was written in another way is
    /// never taken for current.
    async fn written(
        &self,
        object: &Object,
        owner: Option<&Owner>,
        write: impl Future<Output = Result<Answer, Failure>>,
    ) -> Result<Value, Failure> {
        let flight = self.managed().begin(&object.id());
        let answer = write.await.map_err(|failure| failure.without_values_of(object))?;
        if let Some(owner) = owner {
            let facts = Facts::new(&answer.glimpse, self.settings());
            flight.record(owner, applying(object, Digest::NOTHING), &facts);
        }
        whole(answer)
    }
}

impl Failure {
    /// Returns whether a create met an object of the same name.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.status == "AlreadyExists"
    }

    fn without_values_of(mut self, object: &Object) -> Self {
        self.message = crate::redact::redact(&self.message, object);
        self
    }
}

impl Address {
    /// Names become part of a URL, and come from tenants.
    fn check(&self) -> Result<(), Failure> {
        for (field, text) in [("name", &self.name), ("namespace", &self.namespace)] {
            if !is_path_segment(text) {
                let problem = format!(
                    "metadata.{field} {text:?} must not be '.' or '..' nor hold '/', '%', '?' or '#'"
                );
                return Err(Failure::new(Class::Invalid, problem));
            }
        }
        Ok(())
    }
}

/// The answer to a delete is a status, or the object: as it was, or as it waits for its end.
fn is_terminating(answer: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Answer {
        #[serde(default)]
        metadata: Metadata,
    }
    #[derive(Default, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        deletion_timestamp: Option<serde::de::IgnoredAny>,
    }
    // What cannot be read is waited for.
    serde_json::from_str(answer).map_or(true, |Answer { metadata }| metadata.deletion_timestamp.is_some())
}

fn applying(object: &Object, desired: Digest) -> Applying {
    Applying {
        desired,
        expires: expires(&object.gvk(), object),
        ignored: None,
    }
}

/// Returns the object of an answer. Who owns which field is half of it, and no one's who is answered.
fn whole(answer: Answer) -> Result<Value, Failure> {
    let whole = answer.whole;
    let mut whole =
        whole.ok_or_else(|| Failure::new(Class::Transient, "the API server's answer holds no object"))?;
    if let Some(Value::Object(metadata)) = whole.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    Ok(whole)
}

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::new(
        Class::Invalid,
        format!("failed to write the object as JSON: {error}"),
    )
}
