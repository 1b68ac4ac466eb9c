//! The life that each case goes through, the same for all contestants.

mod objects;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde::{Deserialize, Serialize};
use serde_json::json;
use testkit::{ControlPlane, wait_until_gone};

use crate::case::{Case, Content};
use crate::servers::{SECOND, Servers};
use crate::settle::{Wanted, settle};
use crate::snapshot::{self, Kind, Left};

/// All that was left after each step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// By step, in their order, and by the id of the case.
    pub steps: Vec<(Step, BTreeMap<String, Left>)>,
}

/// A step in the life of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// The object is there for the first time.
    Created,
    /// Labels are added to all objects, an overlay loses its first object, a chart gets other names.
    Changed,
    /// The repository has a new revision that changes nothing.
    Revised,
    /// Something is asked for that the API server refuses.
    Failed,
    /// That is taken back.
    Mended,
    /// Someone changes one object and deletes another, then a reconcile is asked for.
    Drifted,
    /// It is suspended, and someone changes an object.
    Suspended,
    /// It is resumed.
    Resumed,
    /// A Kustomization gets another name: the new one is there before the old one goes.
    Renamed,
    /// Its source is deleted, then a reconcile is asked for.
    Unsourced,
    /// Its source is there again.
    Resourced,
    /// The namespace that a Kustomization delivers to is deleted, then a reconcile is asked for.
    Emptied,
    /// That namespace is there again, and a reconcile is asked for.
    Refilled,
    /// It is deleted.
    Deleted,
}

impl Step {
    /// All, in their order.
    pub const ALL: [Self; 14] = [
        Self::Created,
        Self::Changed,
        Self::Revised,
        Self::Failed,
        Self::Mended,
        Self::Drifted,
        Self::Suspended,
        Self::Resumed,
        Self::Renamed,
        Self::Unsourced,
        Self::Resourced,
        Self::Emptied,
        Self::Refilled,
        Self::Deleted,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Revised => "revised",
            Self::Failed => "failed",
            Self::Mended => "mended",
            Self::Drifted => "drifted",
            Self::Suspended => "suspended",
            Self::Resumed => "resumed",
            Self::Renamed => "renamed",
            Self::Unsourced => "unsourced",
            Self::Resourced => "resourced",
            Self::Emptied => "emptied",
            Self::Refilled => "refilled",
            Self::Deleted => "deleted",
        }
    }
}

/// The namespace that an overlay is delivered to.
fn app_of(case: &Case) -> serde_json::Value {
    objects::namespace(&format!("{}{}", case.id, snapshot::APP))
}

/// How long a step may take for all cases of a wave.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long controllers have to do what they must not do.
const TEMPTATION: Duration = Duration::from_secs(2);
/// Objects that are written at once.
const AT_ONCE: usize = 8;
/// The manager of what is set up by the recorder itself.
const MANAGER: &str = "cluster-conformance";

/// Takes the waves of cases through their lives, one wave after the other; `tell` hears about each step.
pub async fn play(
    control_plane: &ControlPlane,
    servers: &Servers,
    waves: &[Vec<Case>],
    tell: impl Fn(&str),
) -> Result<Recording> {
    let mut recording = Recording {
        steps: Step::ALL.map(|step| (step, BTreeMap::new())).into(),
    };
    let mut seen = snapshot::Seen::new();
    for (number, wave) in waves.iter().enumerate() {
        let mut life = Life {
            client: control_plane.client(),
            servers,
            wave,
            source: format!("wave-{number}"),
            last: BTreeMap::new(),
        };
        for (step, recorded) in &mut recording.steps {
            let start = std::time::Instant::now();
            life.go(*step)
                .await
                .with_context(|| format!("wave {number}, {}", step.name()))?;
            life.last = snapshot::take(&life.client, wave, &mut seen).await?;
            recorded.extend(life.last.clone());
            let objects: usize = life.last.values().map(|left| left.objects.len()).sum();
            tell(&format!(
                "wave {} of {}, {}: {objects} objects of {} cases, {:.0?}",
                number + 1,
                waves.len(),
                step.name(),
                wave.len(),
                start.elapsed()
            ));
        }
        life.clear().await?;
    }
    Ok(recording)
}

struct Life<'a> {
    client: Client,
    servers: &'a Servers,
    wave: &'a [Case],
    /// The GitRepository of the wave's overlays.
    source: String,
    /// What was left after the step before.
    last: BTreeMap<String, Left>,
}

impl Life<'_> {
    async fn go(&self, step: Step) -> Result<()> {
        let request = step.name();
        let mut wanted = Wanted::default();
        match step {
            Step::Created => self.create().await?,
            Step::Revised => {
                let source = objects::overlays(self.servers, &self.source, SECOND);
                self.apply(&source).await?;
                wanted.revision = Some(SECOND);
            }
            Step::Drifted => {
                let kinds = snapshot::kinds(&self.client).await?;
                self.each(|case| self.change_by_hand(case, &kinds, step)).await?;
                self.each(|case| self.ask(case, step)).await?;
                wanted.request = Some(request);
            }
            Step::Suspended => {
                self.each(|case| self.write(case, step)).await?;
                let kinds = snapshot::kinds(&self.client).await?;
                self.each(|case| self.change_by_hand(case, &kinds, step)).await?;
                tokio::time::sleep(TEMPTATION).await;
            }
            Step::Renamed => {
                self.each(|case| self.write(case, step)).await?;
                settle(&self.client, wanted, PATIENCE).await?;
                self.each(|case| async move {
                    match case.content {
                        Content::Overlay(_) => self.delete(case, Step::Created).await,
                        Content::Chart(_) => Ok(()),
                    }
                })
                .await?;
            }
            Step::Unsourced => {
                for source in self.sources() {
                    self.take_away(&source).await?;
                }
                self.each(|case| self.ask(case, step)).await?;
                wanted.request = Some(request);
            }
            Step::Resourced => {
                for source in self.sources() {
                    self.apply(&source).await?;
                    self.ready(&source).await?;
                }
                self.each(|case| self.ask(case, step)).await?;
                wanted.request = Some(request);
            }
            Step::Emptied | Step::Refilled => {
                self.each(|case| async move {
                    if let (Content::Overlay(_), namespace) = (&case.content, app_of(case)) {
                        match step {
                            Step::Emptied => self.take_away(&namespace).await?,
                            _ => self.apply(&namespace).await?,
                        }
                    }
                    self.ask(case, step).await
                })
                .await?;
                wanted.request = Some(request);
            }
            Step::Deleted => self.each(|case| self.delete(case, step)).await?,
            Step::Changed | Step::Failed | Step::Mended | Step::Resumed => {
                self.each(|case| self.write(case, step)).await?;
            }
        }
        settle(&self.client, wanted, PATIENCE).await
    }

    async fn create(&self) -> Result<()> {
        self.apply(&objects::namespace(objects::SOURCES)).await?;
        let overlays = objects::overlays(self.servers, &self.source, crate::servers::FIRST);
        self.apply(&overlays).await?;
        self.ready(&overlays).await?;
        self.each(|case| async move {
            self.apply(&objects::namespace(&case.id)).await?;
            match &case.content {
                Content::Overlay(_) => {
                    self.apply(&app_of(case)).await?;
                }
                Content::Chart(_) => {
                    let charts = objects::charts(self.servers, case);
                    self.apply(&charts).await?;
                    self.ready(&charts).await?;
                }
            }
            self.write(case, Step::Created).await
        })
        .await
    }

    async fn write(&self, case: &Case, step: Step) -> Result<()> {
        self.apply(&objects::delivered(case, &self.source, step)).await
    }

    async fn apply(&self, object: &serde_json::Value) -> Result<()> {
        let (api, name) = testkit::objects::api_of(&self.client, object)?;
        let parameters = PatchParams::apply(MANAGER).force();
        let applied = api.patch(&name, &parameters, &Patch::Apply(object)).await;
        applied
            .map(drop)
            .with_context(|| format!("failed to apply {name}"))
    }

    /// Waits for a source: whether something is asked for before it is there is chance.
    async fn ready(&self, source: &serde_json::Value) -> Result<()> {
        let (api, name) = testkit::objects::api_of(&self.client, source)?;
        testkit::wait_for(&api, &name, testkit::objects::is_ready, PATIENCE)
            .await
            .map(drop)
    }

    async fn ask(&self, case: &Case, step: Step) -> Result<()> {
        let object = objects::delivered(case, &self.source, step);
        let (api, name) = testkit::objects::api_of(&self.client, &object)?;
        let patch = json!({"metadata": {"annotations": {testkit::objects::REQUESTED_AT: step.name()}}});
        let parameters = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        api.patch(&name, &parameters, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// The sources of the wave.
    fn sources(&self) -> Vec<serde_json::Value> {
        let charts = self
            .wave
            .iter()
            .filter(|case| matches!(case.content, Content::Chart(_)));
        let charts = charts.map(|case| objects::charts(self.servers, case));
        charts
            .chain([objects::overlays(self.servers, &self.source, SECOND)])
            .collect()
    }

    async fn delete(&self, case: &Case, step: Step) -> Result<()> {
        self.take_away(&objects::delivered(case, &self.source, step))
            .await
    }

    async fn take_away(&self, object: &serde_json::Value) -> Result<()> {
        let (api, name) = testkit::objects::api_of(&self.client, object)?;
        api.delete(&name, &DeleteParams::default()).await?;
        wait_until_gone(&api, &name, PATIENCE).await
    }

    /// Changes a label of the first object that was delivered, and deletes the second.
    async fn change_by_hand(&self, case: &Case, kinds: &[Kind], step: Step) -> Result<()> {
        let Some(left) = self.last.get(&case.id) else {
            return Ok(());
        };
        let mut delivered = left
            .objects
            .iter()
            .filter(|(name, object)| objects::is_changed_by_hand(name, object));
        if let Some((name, _)) = delivered.next() {
            let (api, name) = objects::find(&self.client, kinds, name)?;
            let patch = json!({"metadata": {
                "labels": {objects::LABEL: "by-hand"}, "annotations": {"conformance": format!("{}-by-hand", step.name())},
            }});
            let parameters = PatchParams {
                field_manager: Some("kubectl-edit".to_owned()),
                ..PatchParams::default()
            };
            api.patch(&name, &parameters, &Patch::Merge(patch)).await?;
        }
        if step == Step::Drifted
            && let Some((name, _)) = delivered.next()
        {
            let (api, name) = objects::find(&self.client, kinds, name)?;
            api.delete(&name, &DeleteParams::default()).await?;
        }
        Ok(())
    }

    /// Takes away what is left, for the next wave.
    async fn clear(&self) -> Result<()> {
        let kinds = snapshot::kinds(&self.client).await?;
        // Objects of kinds that no controller here knows have no finalizers: a definition takes them along.
        for left in self.last.values() {
            for name in left.objects.keys() {
                let is_of_cluster = name.contains(" /");
                if is_of_cluster && let Ok((api, name)) = objects::find(&self.client, &kinds, name) {
                    // It may be gone with another.
                    let _ = api.delete(&name, &DeleteParams::default()).await;
                }
            }
        }
        Ok(())
    }

    async fn each<'a, F>(&'a self, act: impl Fn(&'a Case) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'a,
    {
        let acts = self.wave.iter().map(|case| {
            let acting = act(case);
            async move { acting.await.with_context(|| case.name.clone()) }
        });
        let acts: Vec<_> = acts.map(futures::FutureExt::boxed).collect();
        futures::stream::iter(acts)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }
}
