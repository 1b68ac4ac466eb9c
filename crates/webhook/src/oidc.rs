//! generic-oidc: anyone with a token of a trusted issuer of which the Receiver's expressions are true.

use cel_expression::{Expression, Scope};

use crate::keys::{KeySource, Keys, Place};
use crate::token::Token;
use crate::{Accepted, Call, Evaluator, Refused, Rules};

/// Audience of tokens unless the spec names another.
const DEFAULT_AUDIENCE: &str = "notification-controller";
/// Variables of expressions.
const VARIABLES: [&str; 2] = ["claims", "vars"];

/// An issuer whose tokens are trusted, and which of them.
#[derive(Debug, Clone)]
pub struct OidcProvider {
    issuer: String,
    audience: String,
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
    fn check_claims(&self, claims: &serde_json::Value) -> Result<(), String> {
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

/// Decides on a call. What needs no request is looked at first, so that a stranger cannot have issuers asked.
pub(crate) async fn verify<S: KeySource>(
    call: &Call<'_>,
    rules: &Rules<'_>,
    keys: &Keys<S>,
    evaluator: &Evaluator,
) -> Result<Accepted, Refused> {
    if rules.oidc.is_empty() {
        return Err(Refused::new(
            "generic-oidc receiver has no oidcProviders configured",
        ));
    }
    let token = Token::of_call(call)?;
    let issuer = token.text("iss");
    let provider = rules.oidc.iter().find(|provider| provider.issuer == issuer);
    let provider =
        provider.ok_or_else(|| Refused::new(format!("no oidcProvider configured for issuer {issuer:?}")))?;
    let failed = |reason: String| Refused::new(format!("failed to verify OIDC token: {reason}"));
    if !token.is_for(&provider.audience) {
        return Err(failed(format!("expected audience {:?}", provider.audience)));
    }
    token
        .check_time(rules.now)
        .map_err(|refused| failed(refused.to_string()))?;
    keys.check(Place::Issuer(provider.issuer.clone()), &token, rules.now)
        .await
        .map_err(failed)?;
    let (provider, claims) = (provider.clone(), token.claims().clone());
    let checked = evaluator.run(move || provider.check_claims(&claims).map(|()| claims));
    let checked = checked
        .await
        .unwrap_or_else(|| Err("failed to check the claims".to_owned()));
    Ok(Accepted {
        claims: Some(checked.map_err(Refused::new)?),
        ..Accepted::default()
    })
}
