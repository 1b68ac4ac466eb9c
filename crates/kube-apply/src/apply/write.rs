//! Writes: applies objects for real, takes over from other tools, recreates what cannot be changed.

use std::future::Future;

use futures::FutureExt as _;
use serde_json::{Map, Value};

use super::{Failures, Progress, Run, done};
use crate::change::{Action, Change};
use crate::changes::FieldChanges;
use crate::failure::{Class, Failure, ObjectError, Step};
use crate::fingerprint::Facts;
use crate::managed::Live;
use crate::plan::{self, Verdict};
use crate::prepare::Item;
use crate::request::{Answer, Mode};
use crate::settings::Owner;
use crate::stage::Stage;
use crate::{takeover, terminated, usable};

/// How often a take-over is tried when someone else writes in between.
const TAKE_OVER_ATTEMPTS: u32 = 3;

impl Run<'_> {
    /// Writes the objects, all of one rank. All of them are tried; the failures come back together.
    pub(super) async fn write(&mut self, indices: Vec<usize>) -> Result<(), Failures> {
        let run = &*self;
        let writes = indices
            .into_iter()
            .map(|i| async move { (i, run.write_one(i).await) }.boxed());
        let mut written = run.together(writes.collect()).await;
        written.sort_by_key(|(index, _)| *index);
        let mut errors = Vec::new();
        for (index, result) in written {
            match result {
                Ok(change) => self.progress[index] = Progress::Done(Box::new(change)),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    async fn write_one(&self, index: usize) -> Result<Change, ObjectError> {
        let (item, before) = (&self.items[index], &self.before[index]);
        let (verdict, spots) = match &self.progress[index] {
            Progress::Planned(verdict, spots) => (*verdict, spots),
            _ => return Ok(done(item, Action::Unchanged)),
        };
        let was = self.state_before(item, verdict).await;
        let compare = was.is_some();
        let flight = self.engine.managed().begin(&item.id);
        let (answer, action) = match verdict {
            Verdict::Recreate => (self.recreate(item).await?, Action::Created),
            Verdict::Create => (self.send(item, false).await?, Action::Created),
            Verdict::Configure { take_over, .. } if let Some(spots) = spots => {
                if take_over {
                    self.take_over(item).await?;
                }
                self.write_ignoring(item, spots).await?
            }
            Verdict::Configure { take_over: true, .. } => {
                self.take_over(item).await?;
                (self.send(item, compare).await?, Action::Configured)
            }
            Verdict::Configure { asked, .. } => self.configure(item, before, asked, compare).await?,
            Verdict::Skip | Verdict::Unchanged => return Ok(done(item, Action::Unchanged)),
        };
        let ignored = item.ignored_in(answer.whole.as_ref());
        let facts = Facts::of_all_but(&answer.glimpse, self.engine.settings(), ignored.as_deref());
        flight.record(&self.owner, item.applying(ignored), &facts);
        let fields = match (was, &answer.whole) {
            (Some(was), Some(is)) if action == Action::Configured => FieldChanges::between(
                &was,
                is,
                &self.engine.settings().field_manager,
                item.is_confidential,
            ),
            _ => FieldChanges::default(),
        };
        let live = if self.wants_answer(item) {
            kept(answer)
        } else {
            None
        };
        Ok(Change {
            fields,
            live,
            taken_from: self.other_owner(before),
            ..done(item, action)
        })
    }

    /// Returns the previous owner of an object, if another one had applied it.
    fn other_owner(&self, before: &Live) -> Option<Owner> {
        let Live::Present(facts) = before else { return None };
        let other = facts.owner.as_deref().filter(|other| **other != self.owner);
        other.filter(|_| facts.owner_label_is_ours).cloned()
    }

    /// Reads what is about to be changed, if someone wants to know what changed. The write does not depend on it.
    async fn state_before(&self, item: &Item, verdict: Verdict) -> Option<Value> {
        if !self.options.want_changes || !matches!(verdict, Verdict::Configure { .. }) {
            return None;
        }
        match self.engine.requests().whole(&item.address()).await {
            Ok(found) => found?.whole,
            Err(error) => {
                tracing::debug!(object = %item.id, %error, "what is changed cannot be read");
                None
            }
        }
    }

    /// Applies over what is there; what a dry run would have found beforehand is dealt with on the spot.
    async fn configure(
        &self,
        item: &Item,
        before: &Live,
        asked: Option<u64>,
        compare: bool,
    ) -> Result<(Answer, Action), ObjectError> {
        let answer = match self.try_send(item, item.object.value(), compare).await {
            Err(failure) if failure.class == Class::Immutable && self.may_recreate(item, before) => {
                return Ok((self.recreate(item).await?, Action::Created));
            }
            other => other.map_err(|failure| self.refusal(item, Step::Apply, failure))?,
        };
        let facts = Facts::new(&answer.glimpse, self.engine.settings());
        if !facts.needs_take_over || item.policy.merge {
            let is_telling = self.is_telling(item, &facts);
            let unchanged = plan::is_unchanged(before, asked, &facts, is_telling);
            return Ok((
                answer,
                if unchanged {
                    Action::Unchanged
                } else {
                    Action::Configured
                },
            ));
        }
        self.take_over(item).await?;
        Ok((self.send(item, compare).await?, Action::Configured))
    }

    /// Applies the manifest; `whole` asks for the whole answer, whoever else wants it.
    pub(super) async fn send(&self, item: &Item, whole: bool) -> Result<Answer, ObjectError> {
        self.try_send(item, item.object.value(), whole)
            .await
            .map_err(|failure| self.refusal(item, Step::Apply, failure))
    }

    pub(super) fn try_send<'s>(
        &'s self,
        item: &'s Item,
        payload: &'s Map<String, Value>,
        whole: bool,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send + 's {
        let mode = Mode {
            dry_run: false,
            whole: whole || self.wants_answer(item) || item.ignore.is_some(),
        };
        async move { self.engine.requests().apply(&item.address(), payload, mode).await }
    }

    /// Returns whether the whole answer is kept.
    fn wants_answer(&self, item: &Item) -> bool {
        self.options.want_live || item.stage.is_waited_for()
    }

    /// Makes other tools' fields ours, so that the apply after this removes those that the manifest does not have.
    async fn take_over(&self, item: &Item) -> Result<(), ObjectError> {
        let (requests, at) = (self.engine.requests(), item.address());
        let mut attempt = 1;
        loop {
            let live = requests
                .metadata(&at)
                .await
                .map_err(|failure| item.error(Step::TakeOver, failure))?;
            let metadata = live.as_ref().and_then(|object| object.get("metadata"));
            let Some(patch) = metadata.and_then(|m| takeover::patch(m, self.engine.settings())) else {
                return Ok(());
            };
            match requests.json_patch(&at, patch).await {
                Ok(_) => return Ok(()),
                Err(failure) if failure.class == Class::Conflict && attempt < TAKE_OVER_ATTEMPTS => {
                    attempt += 1;
                }
                Err(failure) => return Err(item.error(Step::TakeOver, failure)),
            }
        }
    }

    /// Deletes the object, waits until it is gone, and applies it as a new one.
    async fn recreate(&self, item: &Item) -> Result<Answer, ObjectError> {
        let at = item.address();
        let error = |failure| item.error(Step::Recreate, failure);
        tracing::info!(object = %item.id, owner = %self.owner, "recreating an object whose immutable fields changed");
        if self.engine.requests().delete(&at, None).await.map_err(error)? {
            let client = self.engine.requests().client();
            terminated::wait_for_one(client, &at, self.options.stage_timeout)
                .await
                .map_err(error)?;
        }
        self.send(item, false).await
    }

    /// Waits until the definitions of a stage can be used by the next one.
    pub(super) async fn wait_until_usable(&mut self, stage: Stage) -> Result<(), Failures> {
        let written = self.indices(|item, progress| {
            let live = if let Progress::Done(change) = progress {
                change.live.as_ref()
            } else {
                None
            };
            item.stage == stage && live.is_some_and(|live| !usable::is_usable(&item.gvk, live))
        });
        let (client, limit) = (self.engine.requests().client(), self.options.stage_timeout);
        let waits = written.into_iter().map(|index| {
            let item = &self.items[index];
            async move {
                usable::wait(client, &item.address(), &item.gvk, limit)
                    .await
                    .map_err(|f| item.error(Step::Wait, f))
            }
            .boxed()
        });
        let errors: Vec<_> = self
            .together(waits.collect())
            .await
            .into_iter()
            .filter_map(Result::err)
            .collect();
        if !self.options.want_live {
            self.drop_answers(stage);
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn drop_answers(&mut self, stage: Stage) {
        let here = self
            .items
            .iter()
            .zip(&mut self.progress)
            .filter(|(item, _)| item.stage == stage);
        for (_, progress) in here {
            if let Progress::Done(change) = progress {
                change.live = None;
            }
        }
    }
}

/// Returns the whole object without what only servers read.
fn kept(answer: Answer) -> Option<Value> {
    let mut whole = answer.whole?;
    if let Some(metadata) = whole.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Some(whole)
}
