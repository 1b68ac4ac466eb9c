//! Applies what was prepared: asks first, writes in stages, remembers what it left.
//!
//! The steps of one apply: settle what needs no request; dry-run the rest and stop if anything is refused; then stage by
//! stage, and in a stage rank by rank, write what the dry runs found to be different. What could not be dry-run before its
//! CRD, namespace or role exists is dry-run as soon as it does.

mod ask;
mod differences;
mod ignoring;
mod write;

use std::collections::HashSet;
use std::sync::Arc;

pub use differences::{Difference, Differs};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use manifest::order::rank_for_apply;

use crate::Engine;
use crate::changes::FieldChanges;
use crate::failure::{ApplyError, ObjectError};
use crate::fingerprint::{Digest, Facts};
use crate::ignore::Spot;
use crate::managed::{Applying, Live, ManagedIndex};
use crate::mapper::{self, Resource};
use crate::plan::{self, Blocked, Opening, Verdict};
use crate::prepare::{Item, Prepared};
use crate::settings::{ApplyOptions, Owner};
use crate::stage::Stage;

pub use crate::change::{Action, Change};

/// The outcome of an apply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// One entry per object, in the order in which they were applied.
    pub changes: Vec<Change>,
}

impl Applied {
    /// Iterates over what changed in the cluster.
    pub fn changed(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.action.is_change())
    }
}

impl Engine {
    /// Applies prepared objects. When validation fails nothing is written; when a write fails, the stages after it are
    /// left out and the error names what was written before.
    pub async fn apply(&self, prepared: Prepared, options: &ApplyOptions) -> Result<Applied, ApplyError> {
        let owner = prepared.owner.clone();
        self.managed()
            .ensure(&owner, &kinds(&prepared.items, |item| item.is_served))
            .await;
        let mut run = Run::open(self, prepared, options);
        if !run.needs_no_question() {
            run.validate().await?;
        }
        for stage in Stage::ALL {
            if let Err(errors) = run.stage(stage).await {
                return Err(ApplyError {
                    errors,
                    changes: run.into_changes(),
                });
            }
        }
        if !options.partial {
            run.forget_others();
        }
        Ok(Applied {
            changes: run.into_changes(),
        })
    }
}

/// Lists the kinds of the items that `wanted` wants, each once.
fn kinds(items: &[Item], wanted: impl Fn(&Item) -> bool) -> Vec<Arc<Resource>> {
    let mut kinds: Vec<Arc<Resource>> = Vec::new();
    for item in items.iter().filter(|item| wanted(item)) {
        let is_same =
            |known: &&Arc<Resource>| known.api.group == item.gvk.group && known.api.kind == item.gvk.kind;
        if !kinds.iter().any(|known| is_same(&known)) {
            kinds.push(Arc::clone(&item.resource));
        }
    }
    kinds
}

/// One apply under way.
struct Run<'a> {
    engine: &'a Engine,
    options: &'a ApplyOptions,
    owner: Owner,
    items: Vec<Item>,
    /// Live objects before the first request.
    before: Vec<Live>,
    progress: Vec<Progress>,
    /// Kinds (group, kind) whose CRD this run wrote.
    fresh: HashSet<(String, String)>,
}

/// How far an object is.
#[derive(Debug)]
enum Progress {
    /// The server is to be asked.
    Open,
    /// The server cannot be asked yet.
    Waiting(Blocked),
    /// The dry run was refused.
    Refused,
    /// It is known what to do; with the fields that are left to others, if there are any.
    Planned(Verdict, Option<Box<[Spot]>>),
    /// It is done.
    Done(Box<Change>),
}

type Failures = Vec<ObjectError>;

impl<'a> Run<'a> {
    fn open(engine: &'a Engine, prepared: Prepared, options: &'a ApplyOptions) -> Self {
        let Prepared { owner, items } = prepared;
        let managed = engine.managed();
        let before: Vec<_> = items.iter().map(|item| managed.live(&item.id)).collect();
        let opened = |(item, live): (&Item, &Live)| {
            let is_current = managed.is_current(&item.id, &owner, item.digest);
            match plan::opening(item.policy, &owner, live, is_current) {
                Opening::Work => Progress::Open,
                Opening::Unchanged => Progress::done(item, Action::Unchanged),
                Opening::Skip => {
                    note_as_left(managed, item, &owner, live);
                    Progress::done(item, Action::Skipped)
                }
            }
        };
        let progress = items.iter().zip(&before).map(opened).collect();
        Self {
            engine,
            options,
            owner,
            items,
            before,
            progress,
            fresh: HashSet::new(),
        }
    }

    /// Settles the case of one known object that needs work, which a dry run cannot make any safer.
    fn needs_no_question(&mut self) -> bool {
        let open = self.indices(|_, progress| matches!(progress, Progress::Open));
        match open[..] {
            [] => true,
            [only] if plan::may_go_unasked(&self.before[only]) && self.items[only].ignore.is_none() => {
                let verdict = Verdict::Configure {
                    take_over: false,
                    asked: None,
                };
                self.progress[only] = Progress::Planned(verdict, None);
                true
            }
            _ => false,
        }
    }

    /// Does one stage: what waited for earlier stages is asked about, then ranks are written one after the other.
    async fn stage(&mut self, stage: Stage) -> Result<(), Failures> {
        let waiting = self.indices(|item, progress| {
            item.stage == stage && matches!(progress, Progress::Waiting(Blocked::UntilItsStage))
        });
        self.ask(waiting).await?;
        for rank in self.ranks(stage) {
            self.rank(stage, rank).await?;
        }
        if stage.is_waited_for() {
            self.wait_until_usable(stage).await?;
        }
        self.learn_kinds(stage).await;
        Ok(())
    }

    async fn rank(&mut self, stage: Stage, rank: i64) -> Result<(), Failures> {
        let is_here = |item: &Item| item.stage == stage && rank_for_apply(&item.id.kind) == rank;
        let waiting = self.indices(|item, progress| {
            is_here(item) && matches!(progress, Progress::Waiting(Blocked::UntilItsTurn))
        });
        self.ask(waiting).await?;
        let planned =
            self.indices(|item, progress| is_here(item) && matches!(progress, Progress::Planned(..)));
        self.write(planned).await
    }

    fn ranks(&self, stage: Stage) -> Vec<i64> {
        let here = self.items.iter().filter(|item| item.stage == stage);
        let mut ranks: Vec<_> = here.map(|item| rank_for_apply(&item.id.kind)).collect();
        ranks.dedup();
        ranks
    }

    fn indices(&self, wanted: impl Fn(&Item, &Progress) -> bool) -> Vec<usize> {
        let all = self.items.iter().zip(&self.progress).enumerate();
        all.filter(|(_, (item, progress))| wanted(item, progress))
            .map(|(index, _)| index)
            .collect()
    }

    /// Tells the mapper of kinds that CRDs of this stage defined, and starts to watch those that this set uses.
    async fn learn_kinds(&mut self, stage: Stage) {
        let here = self
            .items
            .iter()
            .zip(&self.progress)
            .filter(|(item, _)| item.stage == stage);
        let written = here.filter(|(_, p)| matches!(p, Progress::Done(change) if change.action.is_change()));
        let definitions: Vec<_> = written
            .filter_map(|(item, _)| mapper::definition(&item.object))
            .collect();
        for definition in definitions {
            self.engine.mapper().learn(&definition);
            self.fresh.insert((definition.group, definition.kind));
        }
        if !self.fresh.is_empty() {
            let new = kinds(&self.items, |item| !item.is_served);
            self.engine.managed().ensure(&self.owner, &new).await;
        }
    }

    /// Lets go of objects and kinds that this owner applied before and does not any more.
    fn forget_others(&self) {
        let ids: HashSet<_> = self.items.iter().map(|item| &item.id).collect();
        self.engine
            .managed()
            .retain_objects(&self.owner, |id| ids.contains(id));
        self.engine
            .managed()
            .retain_kinds(&self.owner, &kinds(&self.items, |_| true));
    }

    fn into_changes(self) -> Vec<Change> {
        let done = |progress| {
            if let Progress::Done(change) = progress {
                Some(*change)
            } else {
                None
            }
        };
        self.progress.into_iter().filter_map(done).collect()
    }

    /// Returns whether an equal fingerprint means that the object is as it was.
    fn is_telling(&self, item: &Item, facts: &Facts) -> bool {
        let recorded = self.engine.managed().recorded(&item.id);
        plan::is_telling(recorded.as_ref(), item.digest, facts, Timestamp::now())
    }

    /// Runs futures, a few at a time.
    async fn together<T>(&self, futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
        futures::stream::iter(futures)
            .buffer_unordered(self.engine.settings().concurrency.max(1))
            .collect()
            .await
    }
}

impl Progress {
    fn done(item: &Item, action: Action) -> Self {
        Self::Done(Box::new(done(item, action)))
    }
}

/// Records how an object was left that asks to be left alone, so that its drift is told again when it stops asking.
fn note_as_left(managed: &ManagedIndex, item: &Item, owner: &Owner, live: &Live) {
    if let Live::Present(facts) = live
        && facts.owner.as_deref() == Some(owner)
    {
        // This manifest is not what the object was made from.
        let applied = managed
            .recorded(&item.id)
            .map_or(Digest::NOTHING, |recorded| recorded.desired);
        managed.record(
            &item.id,
            owner,
            Applying {
                desired: applied,
                expires: item.expires,
                ignored: managed.recorded(&item.id).and_then(|recorded| recorded.ignored),
            },
            facts,
        );
    }
}

fn done(item: &Item, action: Action) -> Change {
    Change {
        id: item.id.clone(),
        gvk: item.gvk.clone(),
        action,
        fields: FieldChanges::default(),
        live: None,
        taken_from: None,
    }
}
