//! How the targets of a pipeline are, as far as its owner may see them.

use std::sync::Arc;

use access_review::Caller;
use api::delivery::{AppReference, Pipeline, Target};
use cluster_access::targets::Target as Cluster;
use controller_kit::ObjectKey;
use futures::{StreamExt as _, stream};
use promotion::Values;
use promotion::observe::{Health, Seen};
use promotion::values::values;

use crate::app::Facts;
use crate::apps;
use crate::context::Context;
use crate::remote::{Clusters, called};

/// ServiceAccount whose rights count where the pipeline names none.
pub(crate) const DEFAULT_ACCOUNT: &str = "default";

/// Bytes that the applications of one target may carry: releases stand in the status.
const MAX_CARRIED: usize = 32 * 1024;
/// Targets that are looked at beside each other.
const AT_ONCE: usize = 16;

/// A target, as it was looked at.
#[derive(Clone)]
pub(crate) struct Looked {
    /// What it is called.
    pub(crate) name: String,
    /// Namespace of its applications.
    pub(crate) namespace: String,
    /// What the planner needs.
    pub(crate) seen: Seen,
    /// What is known of each of the pipeline's applications, in their order.
    pub(crate) apps: Vec<Option<Facts>>,
    /// Its cluster, if that is another one.
    pub(crate) cluster: Option<Arc<Cluster>>,
}

/// Looks at all targets: a list for each environment.
pub(crate) async fn targets(pipeline: &Pipeline, context: &Context) -> Vec<Vec<Looked>> {
    let owner = Owner::new(pipeline);
    let clusters = context.remotes.clusters(pipeline).await;
    let mut looking = Vec::new();
    for target in pipeline.spec.environments.iter().flat_map(|one| &one.targets) {
        looking.push(one(pipeline, target, &owner, &clusters, context));
    }
    // Those of other clusters may be waited for.
    let mut looked = stream::iter(looking)
        .buffered(AT_ONCE)
        .collect::<Vec<_>>()
        .await
        .into_iter();
    let all: Vec<Vec<Looked>> = pipeline
        .spec
        .environments
        .iter()
        .map(|environment| looked.by_ref().take(environment.targets.len()).collect())
        .collect();
    forget_others(pipeline, &all, context);
    all
}

/// Ends the watches of applications in other clusters that are no targets any more.
fn forget_others(pipeline: &Pipeline, all: &[Vec<Looked>], context: &Context) {
    let mut used = Vec::new();
    for looked in all.iter().flatten() {
        let Some(cluster) = &looked.cluster else {
            continue;
        };
        let app = |app: &AppReference| {
            let key = ObjectKey::new(&*looked.namespace, &*app.name);
            (cluster.place.clone(), app.kind, key)
        };
        used.extend(pipeline.apps().iter().map(app));
    }
    context.remotes.retain(&ObjectKey::from_object(pipeline), &used);
}

async fn one(
    pipeline: &Pipeline,
    target: &Target,
    owner: &Owner,
    clusters: &Clusters,
    context: &Context,
) -> Looked {
    let namespace = target.namespace.as_deref().unwrap_or(&owner.namespace);
    let named_fully = Target {
        namespace: Some(namespace.to_owned()),
        ..target.clone()
    };
    let mut looked = Looked {
        name: named_fully.called(),
        namespace: namespace.to_owned(),
        seen: Seen {
            values: Values::new(),
            health: Health::Ready,
        },
        apps: Vec::new(),
        cluster: None,
    };
    if let Some(reference) = &target.kube_config {
        match clusters.get(&called(reference)) {
            Some(Ok(cluster)) => looked.cluster = Some(cluster.clone()),
            problem => {
                let problem = problem.and_then(|found| found.as_ref().err().cloned());
                let problem = problem.unwrap_or_else(|| "its cluster is not known".to_owned());
                looked.seen.health = Health::Unknown(problem);
                return looked;
            }
        }
    }
    let mut size = 0;
    for app in pipeline.apps() {
        let key = ObjectKey::new(namespace, &*app.name);
        let found = match &looked.cluster {
            Some(cluster) => {
                let user = ObjectKey::from_object(pipeline);
                let waking = (&user, &context.queue);
                context.remotes.app(cluster, app.kind, &key, waking).await
            }
            // First the right: who may not look does not learn what is there.
            None => owner
                .check(app, namespace, context)
                .await
                .map(|()| context.app(app.kind, &key)),
        };
        let health = match &found {
            Err(problem) => Health::Unknown(problem.clone()),
            Ok(Some(facts)) if let Some(problem) = apps::stranger(app, facts) => {
                Health::Unknown(format!("{problem} in namespace {namespace}"))
            }
            Ok(Some(facts)) => {
                let carried = values(app, &facts.fields, &pipeline.spec.carry);
                size += carried
                    .iter()
                    .map(|(field, value)| field.len() + value.len())
                    .sum::<usize>();
                looked.seen.values.extend(carried);
                facts.health.clone()
            }
            Ok(None) => Health::Unknown(format!("there is no {} in namespace {namespace}", named(app))),
        };
        looked.apps.push(found.ok().flatten());
        let is_unknown = matches!(health, Health::Unknown(_));
        let so_far = std::mem::replace(&mut looked.seen.health, Health::Ready);
        looked.seen.health = worse(so_far, health, app);
        if is_unknown {
            break;
        }
        if size > MAX_CARRIED {
            let problem = format!("it carries more than {MAX_CARRIED} bytes: .spec.carry says what is meant");
            looked.seen.health = Health::Unknown(problem);
            break;
        }
    }
    let behind = behind(pipeline.apps(), namespace, &looked.apps);
    for (app, health) in behind {
        let so_far = std::mem::replace(&mut looked.seen.health, Health::Ready);
        looked.seen.health = worse(so_far, health, app);
    }
    looked
}

/// Applications that are made of a source of the pipeline, and have not tried its artifact yet: until then they are ready with
/// what was there before.
fn behind<'a>(
    apps: &'a [AppReference],
    namespace: &str,
    facts: &[Option<Facts>],
) -> Vec<(&'a AppReference, Health)> {
    let known = || {
        let known = apps.iter().zip(facts);
        known.filter_map(|(app, facts)| Some((app, facts.as_ref()?)))
    };
    let behind = known().flat_map(|(app, user)| {
        known().filter_map(move |(source, facts)| {
            let key = ObjectKey::new(namespace, &*source.name);
            let is_behind = user.is_behind(source.kind.as_str(), &key, facts);
            let text = || format!("has not applied {} of {} yet", facts.artifact(), named(source));
            is_behind.then(|| (app, Health::Progressing(text())))
        })
    });
    behind.collect()
}

/// How an application is called in messages.
pub(crate) fn named(app: &AppReference) -> String {
    format!("{}/{}", app.kind.as_str(), app.name)
}

/// The health of all, of which the worst counts.
fn worse(so_far: Health, next: Health, app: &AppReference) -> Health {
    let rank = |health: &Health| match health {
        Health::Ready => 0,
        Health::Progressing(_) => 1,
        Health::Failed(_) => 2,
        Health::Unknown(_) => 3,
    };
    if rank(&next) <= rank(&so_far) {
        return so_far;
    }
    let name = named(app);
    match next {
        Health::Ready | Health::Unknown(_) => next,
        Health::Progressing(text) => Health::Progressing(format!("{name}: {text}")),
        Health::Failed(text) => Health::Failed(format!("{name}: {text}")),
    }
}

/// As whom a pipeline looks at other namespaces.
pub(crate) struct Owner {
    namespace: String,
    account: String,
    caller: Arc<Caller>,
}

impl Owner {
    pub(crate) fn new(pipeline: &Pipeline) -> Self {
        let namespace = pipeline.metadata.namespace.clone().unwrap_or_default();
        let account = pipeline
            .spec
            .service_account_name
            .as_deref()
            .unwrap_or(DEFAULT_ACCOUNT);
        let username = format!("system:serviceaccount:{namespace}:{account}");
        let groups = [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
        Self {
            account: account.to_owned(),
            caller: Arc::new(Caller::new(&username, &groups)),
            namespace,
        }
    }

    /// Returns why an application must not be looked at, if so; without a name, all of the kind.
    pub(crate) async fn check(
        &self,
        app: &AppReference,
        namespace: &str,
        context: &Context,
    ) -> Result<(), String> {
        if namespace == self.namespace {
            return Ok(());
        }
        let resource = app.kind.plural();
        let target = access_review::Target {
            group: app.kind.group(),
            resource,
            namespace: namespace.to_owned(),
            name: app.name.clone(),
        };
        match context.reviews.may_get(&self.caller, &target).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let which = match app.name.as_str() {
                    "" => format!("all {resource}"),
                    name => format!("{resource} '{name}'"),
                };
                let account = &self.account;
                Err(format!(
                    "the ServiceAccount {}/{account} must be allowed to get {which} in namespace {namespace}",
                    self.namespace
                ))
            }
            Err(error) => Err(error_chain::chain(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use api::delivery::AppKind;

    use super::*;

    #[test]
    fn the_worst_counts_and_is_named() {
        let app = |name: &str| AppReference {
            kind: AppKind::HelmRelease,
            name: name.to_owned(),
            selector: None,
        };
        let text = |text: &str| text.to_owned();
        let mut health = Health::Ready;
        for (name, next, expected) in [
            ("a", Health::Ready, Health::Ready),
            (
                "b",
                Health::Progressing(text("x")),
                Health::Progressing(text("HelmRelease/b: x")),
            ),
            (
                "c",
                Health::Failed(text("y")),
                Health::Failed(text("HelmRelease/c: y")),
            ),
            (
                "d",
                Health::Progressing(text("z")),
                Health::Failed(text("HelmRelease/c: y")),
            ),
            ("e", Health::Unknown(text("w")), Health::Unknown(text("w"))),
        ] {
            health = worse(health, next, &app(name));
            assert_eq!(health, expected);
        }
    }
}
