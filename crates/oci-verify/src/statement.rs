//! What an attestation must say: a CEL expression over its predicate. Pure.

use cel_expression::Expression;
use serde_json::{Value, json};

/// Largest number of values in a predicate that an expression looks at. Each takes about half a kilobyte while it is evaluated, and who
/// owns the registry may send millions.
const MAX_VALUES: usize = 200_000;

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
        if has_more_values(predicate, MAX_VALUES) {
            return Err(format!(
                "it has more than {MAX_VALUES} values, too many for an expression"
            ));
        }
        match expression.evaluate_boolean(&json!({PREDICATE: predicate})) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("it does not meet the expression '{}'", expression.text())),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn has_more_values(value: &Value, most: usize) -> bool {
    let (mut left, mut count) = (vec![value], 0);
    while let Some(value) = left.pop() {
        count += 1;
        if count + left.len() > most {
            return true;
        }
        match value {
            Value::Array(items) => left.extend(items.iter().take(most)),
            Value::Object(fields) => left.extend(fields.values().take(most)),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_refused() {
        let statement = Statement::read(Some("predicate.size() > 0")).unwrap();
        let of = |count: usize| statement.judge(&Value::Array(vec![1.into(); count]));
        assert_eq!(of(1000), Ok(()));
        assert!(of(MAX_VALUES).unwrap_err().contains("too many for an expression"));
        let nested = json!({"a": [[1, 2], {"b": 3}]});
        assert!(!has_more_values(&nested, 7) && has_more_values(&nested, 6));
    }

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
