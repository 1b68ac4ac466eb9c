//! Dry runs: asks the server about every object that needs work, and collects all refusals.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Map, Value};

use super::{Failures, Progress, Run};
use crate::change::Action;
use crate::failure::{ApplyError, Class, Failure, ObjectError, Step};
use crate::fingerprint::Facts;
use crate::ignore::{self, Ignored};
use crate::managed::Live;
use crate::mapper;
use crate::plan::{self, Pending, Verdict};
use crate::prepare::Item;
use crate::request::{Answer, Mode};
use crate::stage::{Stage, is_crd, is_namespace};

pub(super) const DRY: Mode = Mode {
    dry_run: true,
    whole: false,
};

pub(super) const WHOLE: Mode = Mode { whole: true, ..DRY };

/// Answer to a question.
pub(super) type Asked = (Progress, Option<ObjectError>);

/// A kind that was just defined or changed is served a moment after its CRD says so; so often, and with these pauses,
/// is it asked about again.
const UNTIL_SERVED: [Duration; 6] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1600),
];

impl Run<'_> {
    /// Asks about everything that can be asked about before anything is written.
    pub(super) async fn validate(&mut self) -> Result<(), ApplyError> {
        let definitions = |item: &Item, progress: &Progress| {
            item.stage == Stage::ClusterDefinitions && matches!(progress, Progress::Open)
        };
        let mut errors = self
            .ask(self.indices(definitions))
            .await
            .err()
            .unwrap_or_default();
        self.hold_back_what_depends_on_this_set();
        let open = self.indices(|_, progress| matches!(progress, Progress::Open));
        errors.extend(self.ask(open).await.err().unwrap_or_default());
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ApplyError {
                errors,
                changes: Vec::new(),
            })
        }
    }

    /// Marks objects whose dry run would fail only because this set is not applied yet.
    fn hold_back_what_depends_on_this_set(&mut self) {
        let pending = self.pending();
        for (item, progress) in self.items.iter().zip(&mut self.progress) {
            if matches!(progress, Progress::Open)
                && let Some(blocked) = pending.blocks(&item.gvk, &item.id, item.object.value())
            {
                *progress = Progress::Waiting(blocked);
            }
        }
    }

    fn pending(&self) -> Pending {
        let mut pending = Pending::default();
        for (item, progress) in self.items.iter().zip(&self.progress) {
            let (is_new, is_changing) = match progress {
                Progress::Open | Progress::Refused | Progress::Waiting(_) => (true, true),
                Progress::Planned(verdict, _) => (matches!(verdict, Verdict::Create), verdict.is_work()),
                Progress::Done(_) => (false, false),
            };
            if is_new && is_namespace(&item.gvk) {
                pending.add_namespace(&item.id.name);
            }
            if is_changing {
                pending.add_role(&item.id);
                if is_crd(&item.gvk)
                    && let Some(definition) = mapper::definition(&item.object)
                {
                    pending.add_kind(&definition.group, &definition.kind);
                }
            }
        }
        pending
    }

    /// Dry-runs the objects and notes what each answer means.
    pub(super) async fn ask(&mut self, indices: Vec<usize>) -> Result<(), Failures> {
        if indices.is_empty() {
            return Ok(());
        }
        let run = &*self;
        let asked = indices
            .into_iter()
            .map(|i| async move { (i, run.question(i).await) }.boxed());
        let mut answers = run.together(asked.collect()).await;
        answers.sort_by_key(|(index, _)| *index);
        let mut errors = Vec::new();
        for (index, (progress, error)) in answers {
            self.progress[index] = progress;
            errors.extend(error);
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    async fn question(&self, index: usize) -> Asked {
        let item = &self.items[index];
        match &item.ignore {
            Some(candidates) => self.question_ignoring(index, candidates).await,
            None => {
                let answer = self.dry_run(item, item.object.value(), DRY).await;
                let asked = self.understand(index, answer);
                if self.may_differ_in_owners_only(index, &asked.0) {
                    return self.compare_values(index, asked).await;
                }
                asked
            }
        }
    }

    /// Returns whether an object of ours that this process has not applied yet seems to need a write. Flux owns more than
    /// its manifests say (Go's empty structs: `strategy: {}`), so that what it left differs in owners, not in values.
    fn may_differ_in_owners_only(&self, index: usize, progress: &Progress) -> bool {
        let (item, before) = (&self.items[index], &self.before[index]);
        let is_ours = matches!(before, Live::Present(facts) if facts.owner.as_deref() == Some(&self.owner));
        let is_write = matches!(
            progress,
            Progress::Planned(Verdict::Configure { take_over: false, .. }, None)
        );
        is_write && is_ours && self.engine.managed().recorded(&item.id).is_none()
    }

    /// Leaves an object alone that an apply would not change, as Flux does.
    async fn compare_values(&self, index: usize, asked: Asked) -> Asked {
        let item = &self.items[index];
        let wanted = self.dry_run(item, item.object.value(), WHOLE).await;
        let live = self.engine.requests().whole(&item.address()).await;
        let (Ok(wanted), Ok(Some(live))) = (wanted, live) else {
            return asked;
        };
        match (&wanted.whole, &live.whole) {
            (Some(wanted), Some(whole)) if ignore::same_but(whole, wanted, std::iter::empty()) => {
                self.remember(item, None, &Facts::new(&live.glimpse, self.engine.settings()));
                (Progress::done(item, Action::Unchanged), None)
            }
            _ => asked,
        }
    }

    pub(super) async fn dry_run(
        &self,
        item: &Item,
        object: &Map<String, Value>,
        mode: Mode,
    ) -> Result<Answer, Failure> {
        let (requests, at) = (self.engine.requests(), item.address());
        let mut answer = requests.apply(&at, object, mode).await;
        let is_fresh = self
            .fresh
            .contains(&(item.gvk.group.clone(), item.gvk.kind.clone()));
        for pause in UNTIL_SERVED.iter().filter(|_| is_fresh) {
            if !matches!(&answer, Err(failure) if is_of_an_old_schema(failure)) {
                break;
            }
            tokio::time::sleep(*pause).await;
            answer = requests.apply(&at, object, mode).await;
        }
        answer
    }

    /// Notes that the server refused an object, which may mean that it has to be recreated.
    pub(super) fn refused(&self, index: usize, failure: Failure) -> Asked {
        let (item, before) = (&self.items[index], &self.before[index]);
        if failure.class == Class::Immutable && self.may_recreate(item, before) {
            return (Progress::Planned(Verdict::Recreate, None), None);
        }
        (Progress::Refused, Some(self.refusal(item, Step::DryRun, failure)))
    }

    pub(super) fn understand(&self, index: usize, answer: Result<Answer, Failure>) -> Asked {
        let (item, before) = (&self.items[index], &self.before[index]);
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return self.refused(index, failure),
        };
        let facts = Facts::new(&answer.glimpse, self.engine.settings());
        let exists = answer.glimpse.resource_version().is_some();
        let is_telling = self.is_telling(item, &facts);
        let progress = match plan::verdict(item.policy, before, &facts, exists, is_telling) {
            Verdict::Unchanged => {
                self.remember(item, None, &facts);
                Progress::done(item, Action::Unchanged)
            }
            Verdict::Skip => Progress::done(item, Action::Skipped),
            verdict => Progress::Planned(verdict, None),
        };
        (progress, None)
    }

    pub(super) fn remember(&self, item: &Item, ignored: Option<Arc<Ignored>>, facts: &Facts) {
        self.engine
            .managed()
            .record(&item.id, &self.owner, item.applying(ignored), facts);
    }

    /// Force may come with the call, from the manifest, or from the live object.
    pub(super) fn may_recreate(&self, item: &Item, before: &Live) -> bool {
        let live_says_so = matches!(before, Live::Present(facts) if facts.policy.force);
        self.options.force || item.policy.force || live_says_so
    }

    /// Words a failure for its reader: what helps against an immutable field, and that discovery may be out of date.
    pub(super) fn refusal(&self, item: &Item, step: Step, mut failure: Failure) -> ObjectError {
        if failure.class == Class::Immutable {
            let group = self.engine.settings().policies();
            failure.message = format!(
                "{}; to have it deleted and created anew, annotate it with {group}/force: enabled",
                failure.message
            );
        }
        if failure.class == Class::NotServed {
            self.engine.mapper().invalidate();
        }
        item.error(step, failure)
    }
}

/// Returns whether the refusal may come from a schema that is about to be replaced.
fn is_of_an_old_schema(failure: &Failure) -> bool {
    matches!(failure.class, Class::NotFound | Class::NotServed)
        || failure.message.contains("field not declared in schema")
}
