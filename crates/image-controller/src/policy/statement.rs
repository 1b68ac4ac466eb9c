//! What an attestation must say: a CEL expression over its predicate. Pure.

use cel_expression::Expression;
use image_policy::demand::{Attestation, PREDICATE};
use serde_json::{Value, json};

/// The expression of a demanded attestation, if it has one.
pub(super) struct Statement(Option<Expression>);

impl Statement {
    /// Reads the expression of a demand.
    pub(super) fn read(wanted: &Attestation) -> Result<Self, cel_expression::Error> {
        let expression = wanted.expression.as_deref();
        let expression = expression.map(|text| Expression::parse_with_variables(text, &[PREDICATE]));
        expression.transpose().map(Self)
    }

    /// Judges what a good attestation says: Err with the reason if that is not enough.
    pub(super) fn judge(&self, predicate: &Value) -> Result<(), String> {
        let Some(expression) = &self.0 else {
            return Ok(());
        };
        match expression.evaluate_boolean(&json!({PREDICATE: predicate})) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("it does not meet the expression '{}'", expression.text())),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(expression: Option<&str>) -> Result<Statement, cel_expression::Error> {
        Statement::read(&Attestation {
            predicate_type: "https://slsa.dev/provenance/v1".to_owned(),
            verification: Default::default(),
            expression: expression.map(str::to_owned),
        })
    }

    #[test]
    fn attestations_are_judged_by_what_they_say() {
        let built = statement(Some("predicate.builder.id.startsWith('https://ci.')")).unwrap();
        let by = |id: &str| built.judge(&json!({"builder": {"id": id}}));
        assert_eq!(by("https://ci.example.com"), Ok(()));
        assert_eq!(
            by("https://other").unwrap_err(),
            "it does not meet the expression 'predicate.builder.id.startsWith('https://ci.')'"
        );
        assert!(built.judge(&json!({})).is_err() && built.judge(&Value::Null).is_err());
        assert_eq!(statement(None).unwrap().judge(&Value::Null), Ok(()));
        assert!(statement(Some("subject == 1")).is_err());
    }
}
