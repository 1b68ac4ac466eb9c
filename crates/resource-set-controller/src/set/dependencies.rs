//! Objects of any kind that must exist, or be ready, before anything is applied. They are read as the account that applies.

use api::flux_operator::{Dependency, ResourceSet};
use cel_expression::Expression;
use cluster_access::targets::Target;
use kube_health::Status;
use manifest::{GroupVersionKind, ObjectId};
use serde_json::Value;

use super::Error;

/// Checks them in their order, and says which is not met.
pub(super) async fn check(object: &ResourceSet, target: &Target) -> Result<(), Error> {
    for dependency in &object.spec.depends_on {
        let expression = match dependency.ready_expr.as_str() {
            "" => None,
            text => {
                let parsed = Expression::parse(text);
                Some(parsed.map_err(|error| Error::Expression(name(dependency), error.to_string()))?)
            }
        };
        let found = find(dependency, target).await.map_err(Error::Dependency)?;
        if !dependency.ready {
            continue;
        }
        let problem = match expression {
            None => {
                let verdict = kube_health::verdict::compute(&found);
                (verdict.status != Status::Current).then(|| format!("is not ready: {}", verdict.message))
            }
            Some(expression) => match expression.evaluate_boolean(&found) {
                Ok(true) => None,
                Ok(false) => Some("is not ready by its readyExpr".to_owned()),
                Err(error) => Some(format!("is not ready: its readyExpr fails: {error}")),
            },
        };
        if let Some(problem) = problem {
            return Err(Error::Dependency(format!(
                "dependency {} {problem}",
                name(dependency)
            )));
        }
    }
    Ok(())
}

async fn find(dependency: &Dependency, target: &Target) -> Result<Value, String> {
    let gvk = GroupVersionKind::new(&dependency.api_version, &dependency.kind);
    let id = ObjectId {
        group: gvk.group,
        kind: gvk.kind,
        namespace: dependency.namespace.clone(),
        name: dependency.name.clone(),
    };
    match super::read(target, &id, &gvk.version).await {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(format!("dependency {} does not exist", name(dependency))),
        Err(problem) => Err(format!(
            "dependency {} cannot be read: {problem}",
            name(dependency)
        )),
    }
}

fn name(dependency: &Dependency) -> String {
    let Dependency {
        kind,
        namespace,
        name,
        ..
    } = dependency;
    match namespace.as_str() {
        "" => format!("{kind}/{name}"),
        namespace => format!("{kind}/{namespace}/{name}"),
    }
}
