//! The name of the status that an event gives a commit.

use api::notification::{Alert, Provider};
use cel_expression::Expression;
use event::Event;
use kube::ResourceExt as _;
use serde_json::json;

/// Names the status: by `spec.commitStatusExpr`, or after the object and the Provider, as in Flux.
pub fn name(event: &Event, alert: &Alert, provider: &Provider) -> Result<String, String> {
    let Some(expression) = &provider.spec.commit_status_expr else {
        return Ok(default_name(event, provider));
    };
    evaluate(expression, event, alert, provider).map_err(|error| {
        format!(
            "failed to create commit status: failed to evaluate the spec.commitStatusExpr CEL expression for the event: {error}"
        )
    })
}

fn evaluate(
    expression: &str,
    event: &Event,
    alert: &Alert,
    provider: &Provider,
) -> Result<String, cel_expression::Error> {
    let expression = Expression::parse_with_variables(expression, &["event", "alert", "provider"])?;
    expression.evaluate_string(&json!({"event": event, "alert": alert, "provider": provider}))
}

fn default_name(event: &Event, provider: &Provider) -> String {
    let uid = provider.uid().unwrap_or_default();
    let begin = uid.split('-').next().unwrap_or_default();
    let object = &event.involved_object;
    format!("{}/{}/{begin}", object.kind, object.name).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(expression: Option<&str>) -> Result<String, String> {
        let event = json!({
            "involvedObject": {"kind": "Kustomization", "name": "Web", "namespace": "apps"},
            "metadata": {"cluster": "prod"},
        });
        let alert = json!({
            "metadata": {"name": "a", "namespace": "apps"},
            "spec": {"providerRef": {"name": "p"}, "eventSources": []},
        });
        let provider = json!({
            "metadata": {"name": "p", "uid": "0c9c2e41-d2f9-4f9b-9c41-bebc1984d67a"},
            "spec": {"type": "github", "commitStatusExpr": expression},
        });
        name(
            &serde_json::from_value(event).unwrap(),
            &serde_json::from_value(alert).unwrap(),
            &serde_json::from_value(provider).unwrap(),
        )
    }

    #[test]
    fn a_status_is_named_after_object_and_provider_or_by_an_expression() {
        assert_eq!(named(None).unwrap(), "kustomization/web/0c9c2e41");
        let expression = "(event.involvedObject.kind + '/' + event.metadata.cluster + '/' + alert.metadata.name + \
                          '/' + provider.metadata.name)";
        assert_eq!(named(Some(expression)).unwrap(), "Kustomization/prod/a/p");
    }

    #[test]
    fn an_expression_that_gives_no_text_is_refused() {
        for expression in ["1 + 1", "event.metadata.nothing", "nobody.knows", "("] {
            let refused = named(Some(expression)).unwrap_err();
            assert!(
                refused.starts_with(
                    "failed to create commit status: failed to evaluate the spec.commitStatusExpr"
                ),
                "{refused}"
            );
        }
    }
}
