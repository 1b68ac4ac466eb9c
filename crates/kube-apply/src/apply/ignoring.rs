//! Objects some of whose fields are left to others: asks, compares and writes them.
//!
//! What these fields are live has to be known, so the object is read; all others are neither read nor compared. It costs
//! one read more than a dry run to find nothing to do, and what is written is written over the version that was read.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::ask::{Asked, DRY, WHOLE};
use super::{Progress, Run};
use crate::change::Action;
use crate::failure::{Class, Failure, ObjectError, Step};
use crate::fingerprint::Facts;
use crate::ignore::{self, Candidates, Ignored, Pointer, Spot};
use crate::managed::Live;
use crate::plan::{self, Verdict};
use crate::prepare::Item;
use crate::request::Answer;

/// How often an object is read and written that changes in between. The last write is over whatever version is there:
/// someone who writes that often would hold the object up for good.
const ATTEMPTS: u32 = 4;

impl Run<'_> {
    /// Asks about an object that rules may be for.
    pub(super) async fn question_ignoring(&self, index: usize, candidates: &Candidates) -> Asked {
        let item = &self.items[index];
        let (payload, answer) = match self.dry_run(item, item.object.value(), WHOLE).await {
            Err(failure) if failure.class == Class::Immutable => {
                return self.question_without(index, candidates, failure).await;
            }
            answer => (item.object.value(), answer),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return self.refused(index, failure),
        };
        let facts = Facts::new(&answer.glimpse, self.engine.settings());
        let exists = answer.glimpse.resource_version().is_some();
        let verdict = plan::verdict(item.policy, &Live::Unknown, &facts, exists, false);
        let wanted = answer.whole.clone().unwrap_or_default();
        let pointers = candidates.pointers_of(&wanted);
        let Verdict::Configure { take_over, .. } = verdict else {
            return self.understand(index, Ok(answer));
        };
        if pointers.is_empty() {
            return self.understand(index, Ok(answer));
        }
        let live = match self.engine.requests().whole(&item.address()).await {
            Ok(Some(live)) => live,
            Ok(None) => return (Progress::Planned(Verdict::Create, None), None),
            Err(failure) => return self.refused(index, failure),
        };
        let whole = live.whole.as_ref().unwrap_or(&Value::Null);
        let spots = ignore::spots(&pointers, &Value::Object(payload.clone()), whole, &wanted);
        let found = Found {
            live: &live,
            wanted: &wanted,
            spots,
            take_over,
        };
        self.settle(index, found, true).await
    }

    /// Asks again without the ignored fields: one of them may be what cannot change.
    async fn question_without(&self, index: usize, candidates: &Candidates, failure: Failure) -> Asked {
        let (item, settings) = (&self.items[index], self.engine.settings());
        let Ok(Some(live)) = self.engine.requests().whole(&item.address()).await else {
            return self.refused(index, failure);
        };
        let whole = live.whole.as_ref().unwrap_or(&Value::Null);
        let manifest = Value::Object(item.object.value().clone());
        let spots = ignore::spots(&candidates.pointers_of(whole), &manifest, whole, &manifest);
        let Some(payload) = ignore::resolve(item.object.value(), whole, &spots, settings) else {
            return self.refused(index, failure);
        };
        let answer = match self.dry_run(item, &payload, WHOLE).await {
            Ok(answer) => answer,
            Err(failure) => return self.refused(index, failure),
        };
        let facts = Facts::new(&answer.glimpse, settings);
        let take_over = facts.needs_take_over && !item.policy.merge;
        let wanted = answer.whole.unwrap_or_default();
        let found = Found {
            live: &live,
            wanted: &wanted,
            spots,
            take_over,
        };
        self.settle(index, found, false).await
    }

    /// Decides by what was found; what is to be written and was not asked about yet is dry-run, too.
    async fn settle(&self, index: usize, found: Found<'_>, ask_again: bool) -> Asked {
        let (item, settings) = (&self.items[index], self.engine.settings());
        let whole = found.live.whole.as_ref().unwrap_or(&Value::Null);
        let fields = || found.spots.iter().map(|spot| spot.steps.as_slice());
        if !found.take_over && ignore::same_but(whole, found.wanted, fields()) {
            let ignored = Arc::new(Ignored::new(fields()));
            let facts = Facts::of_all_but(&found.live.glimpse, settings, Some(&*ignored));
            self.remember(item, Some(ignored), &facts);
            return (Progress::done(item, Action::Unchanged), None);
        }
        let payload = ignore::resolve(item.object.value(), whole, &found.spots, settings);
        if let Some(payload) = payload.filter(|_| ask_again)
            && let Err(failure) = self.dry_run(item, &payload, DRY).await
        {
            return self.refused(index, failure);
        }
        let verdict = Verdict::Configure {
            take_over: found.take_over,
            asked: None,
        };
        (Progress::Planned(verdict, Some(found.spots.into())), None)
    }

    /// Applies an object over what is there, but for its ignored fields.
    pub(super) async fn write_ignoring(
        &self,
        item: &Item,
        spots: &[Spot],
    ) -> Result<(Answer, Action), ObjectError> {
        let (requests, settings, at) = (self.engine.requests(), self.engine.settings(), item.address());
        let mut attempt = 1;
        loop {
            let read = requests.whole(&at).await;
            let Some(live) = read.map_err(|failure| self.refusal(item, Step::Apply, failure))? else {
                return Ok((self.send(item, false).await?, Action::Created));
            };
            let whole = live.whole.as_ref().unwrap_or(&Value::Null);
            let payload = ignore::resolve(item.object.value(), whole, spots, settings);
            let mut payload = payload.unwrap_or_else(|| item.object.value().clone());
            let version = live.glimpse.resource_version();
            if attempt < ATTEMPTS {
                lock(&mut payload, version);
            }
            match self.try_send(item, &payload, true).await {
                Ok(answer) if answer.glimpse.resource_version() == version => {
                    return Ok((answer, Action::Unchanged));
                }
                Ok(answer) => return Ok((answer, Action::Configured)),
                Err(failure) if failure.class == Class::Conflict && attempt < ATTEMPTS => attempt += 1,
                Err(failure) => return Err(self.refusal(item, Step::Apply, failure)),
            }
        }
    }
}

/// Input of a decision about an answer.
struct Found<'a> {
    live: &'a Answer,
    /// The manifest as the server would store it.
    wanted: &'a Value,
    spots: Vec<Spot>,
    take_over: bool,
}

/// Makes an apply fail if the object is not at this version any more.
fn lock(payload: &mut Map<String, Value>, version: Option<&str>) {
    if let (Some(Value::Object(metadata)), Some(version)) = (payload.get_mut("metadata"), version) {
        metadata.insert("resourceVersion".to_owned(), Value::from(version));
    }
}

impl Candidates {
    /// Lists the fields to ignore of a live object.
    pub(crate) fn pointers_of(&self, live: &Value) -> Vec<&Pointer> {
        let none = Map::new();
        let map = |field: &str| live.pointer(field).and_then(Value::as_object).unwrap_or(&none);
        self.pointers(map("/metadata/labels"), map("/metadata/annotations"))
    }
}

impl Item {
    /// Names the ignored fields of the object as it is now; None if no rule is for it.
    pub(super) fn ignored_in(&self, live: Option<&Value>) -> Option<Arc<Ignored>> {
        let (candidates, live) = (self.ignore.as_ref()?, live?);
        let pointers = candidates.pointers_of(live);
        if pointers.is_empty() {
            return None;
        }
        let spots = ignore::spots(&pointers, &Value::Object(self.object.value().clone()), live, live);
        Some(Arc::new(Ignored::new(
            spots.iter().map(|spot| spot.steps.as_slice()),
        )))
    }
}
