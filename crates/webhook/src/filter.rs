//! Which objects a call wakes: CEL over the object's metadata (`res`), the body (`req`) and, for generic-oidc, the claims
//! of the token (`claims`).

use cel_expression::{Expression, Scope};
use serde_json::{Value, json};

use crate::call::{Accepted, Call};
use crate::{content_type, json};

pub use crate::json::MOST_VALUES;
pub use cel_expression::Error;

/// Expressions that must all be true of an object.
#[derive(Debug, Clone, Default)]
pub struct Filter(Vec<Expression>);

impl Filter {
    /// Parses one expression. Only generic-oidc has claims.
    pub fn parse(expression: &str, has_claims: bool) -> Result<Self, Error> {
        let variables: &[&str] = if has_claims {
            &["res", "req", "claims"]
        } else {
            &["res", "req"]
        };
        Expression::parse_with_variables(expression, variables).map(|expression| Self(vec![expression]))
    }

    /// This one, and another one too.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns whether every object passes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether an object passes, given as Kubernetes writes it.
    pub fn matches(&self, called: &Called, object: &Value) -> Result<bool, Error> {
        let scope = called.0.clone().decoded("res", object);
        for expression in &self.0 {
            if !expression.evaluate_boolean_in(&scope)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The parts of a call that filters see.
#[derive(Debug, Clone, Default)]
pub struct Called(Scope);

impl Called {
    /// How many values the body has at most that [`read`](Self::read) makes values of, each of which takes memory; more
    /// than [`MOST_VALUES`] are refused.
    pub fn values(call: &Call<'_>, accepted: &Accepted) -> usize {
        json_of(call, accepted).map_or(0, json::values)
    }

    /// Reads the body. One that does not say that it is JSON has no fields; one that says so and is not is an error.
    pub fn read(call: &Call<'_>, accepted: &Accepted) -> Result<Self, String> {
        let request = json_of(call, accepted).map_or_else(|| Ok(json!({})), json::parse);
        let failed = |reason: &str| format!("failed to parse request body as JSON: {reason}");
        let request = match request.map_err(|reason| failed(&reason))? {
            Value::Null => json!({}),
            request @ Value::Object(_) => request,
            _ => return Err(failed("it is no object")),
        };
        let scope = Scope::default().decoded("req", &request);
        Ok(Self(match &accepted.claims {
            Some(claims) => scope.decoded("claims", claims),
            None => scope,
        }))
    }
}

/// The body that filters see, if it is JSON: that of the call, or what was inside of it.
fn json_of<'a>(call: &'a Call<'_>, accepted: &'a Accepted) -> Option<&'a [u8]> {
    let is_json = content_type::is_json(call.header("Content-Type"))
        || accepted.payload.is_some() && accepted.event.is_some();
    is_json.then(|| accepted.payload.as_deref().unwrap_or(call.body))
}
