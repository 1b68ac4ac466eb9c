//! The steps of a run: fetch, build, apply, prune, and the beginning of the wait for health.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::kustomize::Kustomization;
use api::meta::ValuesKind;
use artifact::client::RemoteTree;
use cluster_access::targets::Target;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube_apply::{Applied, ApplyOptions, CommonMetadata, Prepared};
use manifest::{Object, ObjectId};
use reconcile_kit::base::placement;
use remote_base::Fetched;
use verification_policy::images::Judged;

use super::build::{self, Freshness, Means, Output};
use super::decrypt::Hidden;
use super::ended::{CutOff, Ended, Failed};
use super::inventory::{managed_before, recorded};
use super::pass::Pass;
use super::plan::{Content, Kept, Plan, Trigger};
use super::remote::Remote;
use super::report::{self, Reports};
use super::source_tree::{fetch, fetch_error, folder};
use super::status::Health;
use super::variables::{self, Variables};
use super::{fights, frozen, health, ignore, prune, rivals, rollback, statement};
use crate::decryption::Keyring;
use crate::error::Error;
use crate::good;
use crate::memory::{self, Run};

impl From<Error> for Box<Failed> {
    fn from(error: Error) -> Self {
        Box::new(Failed::before_build(error))
    }
}

/// One run: a pass with its plan.
struct Job<'p, 'a> {
    pass: &'p mut Pass<'a>,
    plan: &'p Plan,
    began: Timestamp,
}

/// Inputs of a build other than the spec.
struct Inputs {
    tree: Arc<RemoteTree>,
    variables: Variables,
    keys: Option<Keyring>,
}

/// Objects to apply, and what to remember of their build.
struct Made {
    objects: Vec<Object>,
    /// The same, to be kept if they become healthy.
    packed: Option<Arc<[u8]>>,
    /// Objects that stay as they are.
    stays: BTreeSet<ObjectId>,
    /// Values that must be masked.
    hidden: Hidden,
    /// What was fetched from elsewhere for them.
    fetched: Fetched,
    /// True if a value that came from a Secret may be anywhere in them.
    confidential: bool,
    applied: memory::Applied,
}

/// Carries a plan out, up to where health is waited for.
pub(super) async fn carry_out(
    pass: &mut Pass<'_>,
    plan: &Plan,
    began: Timestamp,
) -> Result<Ended, Box<Failed>> {
    pass.recorder.ensure_finalizer().await?;
    let target = pass.context.base.targets.target_of(placement(pass.object()));
    let target = target.await.map_err(Error::from)?;
    let mut job = Job { pass, plan, began };
    if let Content::Good(kept) | Content::Delivered(kept) = &plan.content {
        rollback::begin(job.pass, plan).await?;
        let made = job.make_of_kept(&target, kept).await?;
        let (run, applied) = job.apply(&target, made, true).await?;
        return health::begin(job.pass, &target, run, applied).await;
    }
    if plan.guard.is_none() {
        rollback::let_go(job.pass).await?;
    }
    let inputs = job.gather().await?;
    let before = job.pass.remembered(|entry| entry.applied.clone());
    // Elsewhere, or by someone else, nothing that is remembered is true: a tenant must be allowed what it takes over.
    let before = before.filter(|applied| applied.place == target.place);
    if let Some(run) = job.moved_on(before.as_ref(), &inputs).await? {
        return Ok(Ended::Done {
            run: Box::new(run),
            health: Health::Unchanged,
        });
    }
    let made = job.make(&target, inputs).await?;
    if let Some(guard) = &plan.guard {
        if made.applied.checksum != guard.delivered {
            return Ok(Ended::Frozen);
        }
        if !guard.corrects_drift {
            return Ok(Ended::Done {
                run: Box::new(job.unchanged(made.applied.checksum)),
                health: Health::Unchanged,
            });
        }
    }
    // Who asks for a reconcile wants everything applied, whatever is remembered of it.
    let afresh = plan.trigger == Trigger::Requested || before.is_none();
    let (run, applied) = job.apply(&target, made, afresh).await?;
    health::begin(job.pass, &target, run, applied).await
}

impl Job<'_, '_> {
    fn object(&self) -> &Kustomization {
        self.pass.object()
    }

    async fn gather(&self) -> Result<Inputs, Error> {
        let Pass { context, key, .. } = &*self.pass;
        Ok(Inputs {
            tree: Arc::new(fetch(context, &self.plan.artifact()).await?),
            variables: Variables::read(&context.base.client, &key.namespace, self.object()).await?,
            keys: context.decryption.keys_of(self.object()).await?,
        })
    }

    /// A new revision that touched nothing which the last build looked at, or a ConfigMap or Secret that was touched and
    /// holds the same variables: the revision moves on, nothing else happens.
    async fn moved_on(
        &self,
        before: Option<&memory::Applied>,
        inputs: &Inputs,
    ) -> Result<Option<Run>, Error> {
        let (observed, plan) = (&self.pass.observed, self.plan);
        let attempt = observed.attempt.as_ref();
        let succeeded = attempt.is_some_and(|attempt| attempt.outcome == memory::Outcome::Succeeded);
        let may_be_same = matches!(plan.trigger, Trigger::Revision | Trigger::Variables);
        if !succeeded || !may_be_same || observed.drifted {
            return Ok(None);
        }
        let is_same = |before: &&memory::Applied| {
            before.generation == plan.inputs.generation
                && before.content == plan.content
                && before.variables.as_ref() == inputs.variables.digest()
                && before.keys == inputs.keys.as_ref().map(|keys| keys.digest)
                && before.policies == self.pass.context.images.digest(&self.pass.key.namespace)
        };
        let Some(before) = before.filter(is_same) else {
            return Ok(None);
        };
        let holds = before.closure.holds_in(&*inputs.tree).await;
        let holds = holds.map_err(|source| fetch_error(&plan.artifact(), source))?;
        Ok(holds.then(|| self.unchanged(before.checksum.clone())))
    }

    /// A run that leaves everything as it is.
    fn unchanged(&self, checksum: String) -> Run {
        Run {
            plan: self.plan.clone(),
            began: self.began,
            checksum,
            inventory: recorded(&managed_before(self.object())),
            changed: false,
            reports: Reports::new(),
            contents: None,
            packed: None,
            stays: Vec::new(),
        }
    }

    async fn make(&self, target: &Target, inputs: Inputs) -> Result<Made, Error> {
        let Inputs {
            tree,
            variables,
            keys,
        } = inputs;
        let (context, plan) = (self.pass.context, self.plan);
        let artifact = plan.artifact();
        let folder = folder(&tree, self.object(), &artifact).await?;
        let spec = Arc::new(self.object().spec.clone());
        let freshness = match plan.trigger {
            Trigger::Requested => Freshness::New,
            _ => Freshness::MayBeKept,
        };
        let means = Means {
            keys: keys.as_ref(),
            freshness,
            remote: Remote::of(context, &self.pass.key.namespace),
        };
        let build = build::build(&context.builds, &tree, &folder, &spec, &artifact, means).await?;
        drop(tree);
        let built = build.result.clone().map_err(Error::Build)?;
        let mut references = variables::references(self.object()).iter();
        let confidential = keys.is_some() || references.any(|reference| reference.kind == ValuesKind::Secret);
        let digest = variables.digest().copied();
        let strict = context.policy.strict_substitutions;
        let output = build::output(built, &spec, variables, strict, keys.as_ref()).await;
        let output = output.map_err(|error| Error::Build(Arc::new(error)))?;
        let policies = context.images.digest(&self.pass.key.namespace);
        let Output {
            objects,
            checksum,
            hidden,
        } = self.verified(output).await?;
        Ok(Made {
            packed: self.packed(&objects, &hidden, &checksum),
            stays: BTreeSet::new(),
            objects,
            hidden,
            fetched: build.fetched.clone(),
            confidential,
            applied: memory::Applied {
                generation: plan.inputs.generation,
                content: plan.content.clone(),
                closure: Arc::clone(&build.closure),
                variables: digest,
                keys: keys.as_ref().map(|keys| keys.digest),
                policies,
                checksum,
                place: target.place.clone(),
            },
        })
    }

    /// Holds the images of what was built against the policies of the cluster, and names them by digests where those want it.
    async fn verified(&self, output: Output) -> Result<Output, Error> {
        let judged = self.judge(&output.objects, &output.hidden).await?;
        if !judged.pins() {
            return Ok(output);
        }
        let pinned = move || {
            let Output {
                mut objects, hidden, ..
            } = output;
            for object in &mut objects {
                judged.pin(object);
            }
            Output {
                checksum: build::checksum(&objects),
                objects,
                hidden,
            }
        };
        let pinned = tokio::task::spawn_blocking(pinned).await;
        pinned.map_err(|error| Error::Build(Arc::new(error.into())))
    }

    async fn judge(&self, objects: &[Object], hidden: &Hidden) -> Result<Judged, Error> {
        let Pass { context, key, .. } = &*self.pass;
        let home = self.object().spec.target_namespace.as_deref();
        let judged = context
            .images
            .judge(&key.namespace, home.unwrap_or_default(), objects);
        let judged = judged.await.map_err(|error| {
            let message = error.to_string();
            Error::Images(hidden.without_secrets(&message))
        })?;
        let warnings = judged.warnings.iter();
        let warnings: Vec<_> = warnings.map(|one| hidden.without_secrets(one)).collect();
        let before = self
            .pass
            .remembered(|entry| std::mem::replace(&mut entry.warned, warnings.clone()));
        if before != warnings && !warnings.is_empty() {
            self.pass.recorder.images(self.plan, &warnings.join("\n"));
        }
        Ok(judged)
    }

    /// The objects as they are kept, if they are to be and are not yet.
    fn packed(&self, objects: &[Object], hidden: &Hidden, checksum: &str) -> Option<Arc<[u8]>> {
        let known = self.pass.observed.record.kept.first();
        let is_known = known.is_some_and(|good| {
            good.has_objects() && frozen::is_of_spec(good, self.object()) && good.checksum == checksum
        });
        let is_unkept = self
            .pass
            .remembered(|entry| entry.unkept.as_deref() == Some(checksum));
        if is_known || is_unkept || !rollback::is_recorded(&self.pass.observed) {
            return None;
        }
        let content = good::Content {
            objects: objects.to_vec(),
            hidden: hidden.texts().clone(),
        };
        let packed = content.pack();
        if packed.is_none() {
            let why = "its objects are too large";
            rollback::is_not_kept(self.pass, self.plan, checksum, why);
        }
        packed
    }

    /// What is kept of a revision that was healthy, without the objects that cannot go back.
    async fn make_of_kept(&self, target: &Target, kept: &Kept) -> Result<Made, Error> {
        let context = self.pass.context;
        let uid = self.object().uid().unwrap_or_default();
        let content = match context.good.content(&uid, &kept.checksum).await {
            Ok(content) => content,
            Err(error) => {
                // What is damaged holds nothing.
                if matches!(error, good::Error::Damaged) {
                    context.good.forget(&uid).await?;
                    self.pass.remembered(|entry| entry.record = None);
                }
                return Err(error.into());
            }
        };
        let hidden = Hidden::of_texts(content.hidden);
        if matches!(self.plan.content, Content::Good(_)) {
            // They were named by digests when they were kept.
            self.judge(&content.objects, &hidden).await?;
        }
        let prepared = self.prepare(target, content.objects.clone()).await;
        let prepared = prepared.map_err(|error| hidden.masked(error))?;
        let managed = managed_before(self.object());
        let stays = rollback::stay(target, &prepared, &managed, self.object().spec.force).await;
        if self.plan.trigger == Trigger::Rollback {
            self.pass.recorder.goes_back(self.plan, &stays);
        }
        Ok(Made {
            objects: content.objects,
            packed: None,
            stays,
            hidden,
            fetched: Fetched::new(),
            confidential: true,
            applied: memory::Applied {
                generation: self.plan.inputs.generation,
                content: self.plan.content.clone(),
                closure: Arc::default(),
                variables: None,
                keys: None,
                policies: context.images.digest(&self.pass.key.namespace),
                checksum: kept.checksum.clone(),
                place: target.place.clone(),
            },
        })
    }

    /// Applies what was made, and deletes what is not made any more.
    async fn apply(
        &mut self,
        target: &Target,
        made: Made,
        afresh: bool,
    ) -> Result<(Run, Applied), Box<Failed>> {
        let (plan, built) = (self.plan, Timestamp::now());
        let Made {
            objects,
            packed,
            stays,
            hidden,
            fetched,
            confidential,
            applied: known,
        } = made;
        let failed = |error, inventory| {
            Box::new(Failed {
                error,
                checksum: Some(known.checksum.clone()),
                inventory,
                cut_off: CutOff::default(),
            })
        };
        let prepared = self.prepare(target, objects).await;
        let prepared = prepared.map_err(|error| failed(hidden.masked(error), None))?;
        let prepared = prepared.confidential(|_| confidential).without(&stays);
        let old = managed_before(self.object());
        let staying = old.sorted().into_iter().filter(|(id, _)| stays.contains(id));
        let new = prepared.inventory().union(&staying.collect());
        if afresh {
            let (owner, managed) = (self.pass.owner(), target.engine.managed());
            new.iter().for_each(|(id, _)| managed.forget_record(&owner, id));
        }
        let all = recorded(&old.union(&new));
        let recorded_first = self.pass.recorder.applying(plan, all.clone()).await;
        recorded_first.map_err(|error| failed(error, None))?;

        let is_signed = self.pass.context.statements.is_some();
        let contents = is_signed.then(|| statement::contents(&prepared).with_fetched(fetched.clone()));
        let applied = target.engine.apply(prepared, &options(self.object())).await;
        let applied = applied.map_err(|error| {
            // What no one was allowed to make is not managed: it would be deleted later, in vain.
            let managed = match error.wrote_nothing() {
                true => recorded(&old),
                false => all.clone(),
            };
            let cut_off = CutOff {
                objects: error.cut_off(&new),
                own: new.clone(),
            };
            Box::new(Failed {
                cut_off,
                ..*failed(hidden.masked(error), Some(managed))
            })
        })?;
        let applied_at = Timestamp::now();
        let changes = report::changes(&applied);
        self.pass.recorder.changes(plan, &applied, changes.as_deref());
        rivals::took(self.pass, &applied);
        fights::corrected(self.pass, plan, &applied);
        let pruned = prune::prune(self.pass, target, plan, &old, &new).await;
        let inventory = pruned.map_err(|(error, inventory)| failed(error, Some(inventory)))?;
        let mut reports = report::of_apply(&applied, changes, built, applied_at);
        reports.extend(report::of_fetched(&fetched));
        let run = Run {
            plan: plan.clone(),
            began: self.began,
            checksum: known.checksum.clone(),
            inventory,
            changed: applied.changed().next().is_some(),
            reports,
            contents,
            packed,
            stays: stays.iter().map(ToString::to_string).collect(),
        };
        self.pass.remembered(|entry| entry.applied = Some(known));
        Ok((run, applied))
    }

    async fn prepare(
        &self,
        target: &Target,
        objects: Vec<Object>,
    ) -> Result<Prepared, kube_apply::ApplyError> {
        let common = common_metadata(self.object());
        let prepared = target
            .engine
            .prepare(&self.pass.owner(), objects, &common)
            .await?;
        Ok(match ignore::rules(self.object()) {
            Ok(rules) => prepared.ignoring(&rules),
            // Stalled, or it would not run.
            Err(_) => prepared,
        })
    }
}

fn options(object: &Kustomization) -> ApplyOptions {
    ApplyOptions {
        force: object.spec.force,
        want_live: object.spec.wait,
        want_changes: true,
        ..ApplyOptions::default()
    }
}

fn common_metadata(object: &Kustomization) -> CommonMetadata {
    let common = object.spec.common_metadata.clone().unwrap_or_default();
    CommonMetadata {
        labels: common.labels,
        annotations: common.annotations,
    }
}
