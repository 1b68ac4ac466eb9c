//! A call, the rules for it, and the verdict.

use std::collections::BTreeMap;

use cel_expression::{Expression, Scope};
use http::HeaderMap;
use jiff::Timestamp;

use crate::oidc_rules::{DEFAULT_AUDIENCE, VARIABLES};
use crate::receiver_type::ReceiverType;

/// A call as it came.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The whole body.
    pub body: &'a [u8],
}

impl Call<'_> {
    /// The first value of a header; empty if there is none.
    pub(super) fn header(&self, name: &str) -> &[u8] {
        self.headers.get(name).map_or(&[], |value| value.as_bytes())
    }

    /// As [`header`](Self::header), as text.
    pub(super) fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(self.header(name)).into_owned()
    }
}

/// Rules of a Receiver.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    /// Service that calls.
    pub type_: ReceiverType,
    /// The events that count; all if there are none.
    pub events: &'a [String],
    /// The Receiver's Secret: `token`, and for some types more.
    pub secret: Option<&'a BTreeMap<String, Vec<u8>>>,
    /// Trusted issuers of tokens, for generic-oidc.
    pub oidc: &'a [OidcProvider],
    /// The time.
    pub now: Timestamp,
}

impl Rules<'_> {
    /// Returns the value of a key of the Secret; None if there is none.
    pub(super) fn secret(&self, key: &str) -> Option<&[u8]> {
        let value = self.secret?.get(key)?;
        (!value.is_empty()).then_some(value.as_slice())
    }
}

/// A call that its Receiver allows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accepted {
    /// The event, in the words of the caller: as much of it as a log should hold, since no one signed it.
    pub event: Option<String>,
    /// Claims of a verified token, for generic-oidc.
    pub claims: Option<serde_json::Value>,
    /// Payload that filters see instead of the body: the content of an envelope or a form.
    pub payload: Option<Vec<u8>>,
    /// Identity of a call: two calls share it only if one repeats the other. None where callers may repeat a
    /// call on purpose.
    pub identity: Option<Vec<u8>>,
}

/// Why a call is refused: for the log only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub(crate) String);

impl Refused {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        let mut reason = reason.into();
        // Parts of it may be what the caller sent.
        reason.truncate(reason.floor_char_boundary(500));
        Self(reason)
    }
}

/// An issuer whose tokens are trusted, and which of them.
#[derive(Debug, Clone)]
pub struct OidcProvider {
    pub(super) issuer: String,
    pub(super) audience: String,
    variables: Vec<(String, Expression)>,
    validations: Vec<(Expression, String)>,
}

impl OidcProvider {
    /// Parses the expressions: variables by name, validations with what is said when they are false.
    pub fn parse<'a>(
        issuer: &str,
        audience: Option<&str>,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
        validations: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        let parse = |text: &str| Expression::parse_with_variables(text, &VARIABLES);
        let variable = |(name, text): (&'a str, &'a str)| {
            let parsed =
                parse(text).map_err(|error| format!("invalid expression for variable {name:?}: {error}"))?;
            Ok((name.to_owned(), parsed))
        };
        let validation = |(text, message): (&'a str, &'a str)| {
            let parsed = parse(text)
                .map_err(|error| format!("invalid expression for validation {message:?}: {error}"))?;
            Ok((parsed, message.to_owned()))
        };
        Ok(Self {
            issuer: issuer.to_owned(),
            audience: audience.unwrap_or(DEFAULT_AUDIENCE).to_owned(),
            variables: variables
                .into_iter()
                .map(variable)
                .collect::<Result<_, String>>()?,
            validations: validations
                .into_iter()
                .map(validation)
                .collect::<Result<_, String>>()?,
        })
    }

    /// Returns whether the owner of these claims may call.
    pub(super) fn check_claims(&self, claims: &serde_json::Value) -> Result<(), String> {
        let mut scope = Scope::default().decoded("claims", claims).empty_map("vars");
        for (name, expression) in &self.variables {
            scope
                .define("vars", name, expression)
                .map_err(|error| format!("failed to evaluate variable {name:?}: {error}"))?;
        }
        let mut failures = Vec::new();
        for (expression, message) in &self.validations {
            let holds = expression
                .evaluate_boolean_in(&scope)
                .map_err(|error| format!("failed to evaluate validation: {error}"))?;
            if !holds {
                failures.push(message.as_str());
            }
        }
        // Without a validation everybody on the issuer's platform could call.
        if self.validations.is_empty() {
            failures.push("there is no validation");
        }
        if failures.is_empty() {
            Ok(())
        } else {
            Err(format!("token validation failed: {}", failures.join("; ")))
        }
    }
}
