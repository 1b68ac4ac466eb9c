//! What an attestation must say: a CEL expression over its predicate. Pure.

use cel_expression::Expression;
use serde_json::{Value, json};

/// The variable of an expression.
pub const PREDICATE: &str = "predicate";

/// The expression of a demanded attestation, if it has one.
pub struct Statement(Option<Expression>);

impl Statement {
    /// Reads the expression of a demand.
    ///
    /// # Errors
    /// When it is no expression over [`PREDICATE`].
    pub fn read(expression: Option<&str>) -> Result<Self, cel_expression::Error> {
        let expression = expression.map(|text| Expression::parse_with_variables(text, &[PREDICATE]));
        expression.transpose().map(Self)
    }

    /// Judges what a good attestation says.
    ///
    /// # Errors
    /// With the reason if that is not enough.
    pub fn judge(&self, predicate: &Value) -> Result<(), String> {
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

    #[test]
    fn attestations_are_judged_by_what_they_say() {
        let built = Statement::read(Some("predicate.builder.id.startsWith('https://ci.')")).unwrap();
        let by = |id: &str| built.judge(&json!({"builder": {"id": id}}));
        assert_eq!(by("https://ci.example.com"), Ok(()));
        assert_eq!(
            by("https://other").unwrap_err(),
            "it does not meet the expression 'predicate.builder.id.startsWith('https://ci.')'"
        );
        assert!(built.judge(&json!({})).is_err() && built.judge(&Value::Null).is_err());
        assert_eq!(Statement::read(None).unwrap().judge(&Value::Null), Ok(()));
        assert!(Statement::read(Some("subject == 1")).is_err());
    }
}
