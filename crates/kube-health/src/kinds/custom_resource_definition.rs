//! CustomResourceDefinitions: established, or refused for its names.

use serde_json::Value;

use crate::conditions;
use crate::fields::FieldError;
use crate::verdict::Verdict;

pub(crate) fn verdict(object: &Value) -> Result<Verdict, FieldError> {
    for condition in conditions::read(object)? {
        match (condition.kind, condition.status) {
            ("NamesAccepted", "False") => {
                return Ok(Verdict::failed(condition.explained("its names are not accepted")));
            }
            // "Installing" is the API server's own short wait before it serves the kind.
            ("Established", "False") if condition.reason != "Installing" => {
                return Ok(Verdict::failed(condition.explained("not established")));
            }
            ("Established", "True") => return Ok(Verdict::current("established")),
            _ => {}
        }
    }
    Ok(Verdict::in_progress("not yet established"))
}
