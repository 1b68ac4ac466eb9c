//! Finds out which objects are not as their manifests have them, and writes nothing.
//!
//! What no one touched since its owner applied it is not asked about. Of the rest, a dry run says what an apply would do; what
//! would change only owners of fields is no difference.

use serde_json::Value;

use super::ask::WHOLE;
use super::{Progress, Run, kinds};
use crate::Engine;
use crate::changes::Count;
use crate::failure::{ApplyError, ObjectError, Step};
use crate::ignore::{self, Pointer};
use crate::plan::Verdict;
use crate::prepare::Prepared;
use crate::settings::ApplyOptions;
use manifest::{GroupVersionKind, ObjectId};

/// An object that is not as its manifest has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The object.
    pub id: ObjectId,
    /// Its kind, in the version of the manifest.
    pub gvk: GroupVersionKind,
    /// How it differs.
    pub how: Differs,
}

/// How an object differs from its manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differs {
    /// There is none.
    Missing,
    /// In fields.
    InFields {
        /// Fields that an apply would add.
        additions: usize,
        /// Fields to which it would give other values.
        changes: usize,
        /// Fields that it would remove.
        removals: usize,
    },
}

impl Engine {
    /// Finds the objects that differ. An object that is left alone because it asks for it is none of them.
    pub async fn differences(&self, prepared: &Prepared) -> Result<Vec<Difference>, ApplyError> {
        let owner = prepared.owner.clone();
        self.managed()
            .ensure(&owner, &kinds(&prepared.items, |item| item.is_served))
            .await;
        let touched = prepared.items.iter();
        let touched = touched.filter(|item| !self.managed().is_untouched(&item.id, &owner));
        let touched = Prepared {
            items: touched.cloned().collect(),
            owner,
        };
        let options = ApplyOptions::default();
        let mut run = Run::open(self, touched, &options);
        run.validate().await?;
        run.differences().await
    }
}

impl Run<'_> {
    async fn differences(&self) -> Result<Vec<Difference>, ApplyError> {
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for index in 0..self.items.len() {
            match self.difference(index).await {
                Ok(how) => found.extend(how.map(|how| Difference {
                    id: self.items[index].id.clone(),
                    gvk: self.items[index].gvk.clone(),
                    how,
                })),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            return Ok(found);
        }
        Err(ApplyError {
            errors,
            changes: Vec::new(),
        })
    }

    async fn difference(&self, index: usize) -> Result<Option<Differs>, ObjectError> {
        match &self.progress[index] {
            Progress::Done(_) | Progress::Refused => Ok(None),
            Progress::Planned(Verdict::Skip | Verdict::Unchanged, _) => Ok(None),
            Progress::Planned(Verdict::Create, _) => Ok(Some(Differs::Missing)),
            Progress::Planned(Verdict::Configure { .. } | Verdict::Recreate, _)
            | Progress::Open
            | Progress::Waiting(_) => self.compare(index).await,
        }
    }

    /// Counts the fields that an apply would change, but for those that rules leave to others.
    async fn compare(&self, index: usize) -> Result<Option<Differs>, ObjectError> {
        let item = &self.items[index];
        let failed = |failure| self.refusal(item, Step::DryRun, failure);
        let live = self.engine.requests().whole(&item.address()).await;
        let Some(live) = live.map_err(failed)?.and_then(|live| live.whole) else {
            return Ok(Some(Differs::Missing));
        };
        let manifest = Value::Object(item.object.value().clone());
        let wanted = self.dry_run(item, item.object.value(), WHOLE).await;
        // What cannot be asked about, as a field that must not change, is compared as it stands.
        let wanted = match wanted {
            Ok(answer) => answer.whole.unwrap_or_default(),
            Err(failure) if item.ignore.is_none() => return Err(failed(failure)),
            Err(_) => return Ok(None),
        };
        let pointers: Vec<&Pointer> = match &item.ignore {
            Some(candidates) => candidates.pointers_of(&wanted),
            None => Vec::new(),
        };
        let spots = ignore::spots(&pointers, &manifest, &live, &wanted);
        let ignored = || spots.iter().map(|spot| spot.steps.as_slice());
        let count = Count::between(
            &ignore::reduced(&live, ignored()),
            &ignore::reduced(&wanted, ignored()),
        );
        Ok((!count.is_nothing()).then_some(Differs::InFields {
            additions: count.additions,
            changes: count.changes,
            removals: count.removals,
        }))
    }
}
