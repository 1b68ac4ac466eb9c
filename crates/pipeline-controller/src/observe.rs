//! How the targets of a pipeline are, as far as its owner may see them.

use std::sync::Arc;

use access_review::{Caller, Target};
use api::delivery::{AppReference, Pipeline};
use controller_kit::ObjectKey;
use promotion::Values;
use promotion::observe::{Health, Seen};
use promotion::values::values;

use crate::context::Context;

/// ServiceAccount whose rights count where the pipeline names none.
pub(crate) const DEFAULT_ACCOUNT: &str = "default";

/// Bytes that the applications of one target may carry: releases stand in the status.
const MAX_CARRIED: usize = 32 * 1024;

/// Looks at all targets: a list for each environment.
pub(crate) async fn targets(pipeline: &Pipeline, context: &Context) -> Vec<Vec<Seen>> {
    let owner = Owner::new(pipeline);
    let mut all = Vec::new();
    for environment in &pipeline.spec.environments {
        let mut seen = Vec::new();
        for target in &environment.targets {
            let namespace = target.namespace.as_deref().unwrap_or(&owner.namespace);
            seen.push(one(pipeline, namespace, &owner, context).await);
        }
        all.push(seen);
    }
    all
}

async fn one(pipeline: &Pipeline, namespace: &str, owner: &Owner, context: &Context) -> Seen {
    let mut size = 0;
    let mut seen = Seen {
        values: Values::new(),
        health: Health::Ready,
    };
    for app in &pipeline.spec.apps {
        // First the right: who may not look does not learn what is there.
        let health = match owner.check(app, namespace, context).await {
            Err(problem) => Health::Unknown(problem),
            Ok(()) => match context.app(app.kind, &ObjectKey::new(namespace, &*app.name)) {
                Some(facts) => {
                    let carried = values(app, &facts.fields, &pipeline.spec.carry);
                    size += carried
                        .iter()
                        .map(|(field, value)| field.len() + value.len())
                        .sum::<usize>();
                    seen.values.extend(carried);
                    facts.health
                }
                None => Health::Unknown(format!("there is no {} in namespace {namespace}", named(app))),
            },
        };
        let is_unknown = matches!(health, Health::Unknown(_));
        seen.health = worse(seen.health, health, app);
        if is_unknown {
            break;
        }
        if size > MAX_CARRIED {
            let problem = format!("it carries more than {MAX_CARRIED} bytes: .spec.carry says what is meant");
            seen.health = Health::Unknown(problem);
            break;
        }
    }
    seen
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
struct Owner {
    namespace: String,
    account: String,
    caller: Arc<Caller>,
}

impl Owner {
    fn new(pipeline: &Pipeline) -> Self {
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

    /// Returns why an application must not be looked at, if so.
    async fn check(&self, app: &AppReference, namespace: &str, context: &Context) -> Result<(), String> {
        if namespace == self.namespace {
            return Ok(());
        }
        let resource = app.kind.plural();
        let target = Target {
            group: app.kind.group(),
            resource,
            namespace: namespace.to_owned(),
            name: app.name.clone(),
        };
        match context.reviews.may_get(&self.caller, &target).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!(
                "the ServiceAccount {}/{} must be allowed to get {resource} '{}' in namespace {namespace}",
                self.namespace, self.account, app.name
            )),
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
