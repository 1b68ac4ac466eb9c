//! Compiles the spec of a Receiver: checked and parsed once. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::meta::reasons;
use api::notification::{OIDCProvider, Receiver, ReceiverResource, ReceiverType as SpecType};
use kube::ResourceExt as _;
use sha2::{Digest as _, Sha256};
use webhook::filter::Filter;
use webhook::{OidcProvider, ReceiverType};

/// Expressions that a Receiver may have: a call has them evaluated one after the other.
const MOST_EXPRESSIONS: usize = 32;
/// The reason of a spec that contradicts itself.
const VALIDATION_FAILED: &str = "ValidationFailed";

/// A Receiver that can take calls.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Its UID.
    pub uid: String,
    /// The generation of its spec.
    pub generation: i64,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Service that calls.
    pub type_: ReceiverType,
    /// The events that count.
    pub events: Vec<String>,
    /// Trusted issuers of tokens.
    pub oidc: Vec<OidcProvider>,
    /// Resources to wake, with their filters.
    pub resources: Vec<(ReceiverResource, Filter)>,
    /// The name of the Secret.
    pub secret_name: Option<String>,
    /// The Secret as it was read; None if it is to be read at each call, or there is none.
    pub secret: Option<Arc<BTreeMap<String, Vec<u8>>>>,
}

impl Default for Compiled {
    fn default() -> Self {
        Self {
            uid: String::new(),
            generation: 0,
            name: String::new(),
            namespace: String::new(),
            type_: ReceiverType::Generic,
            events: Vec::new(),
            oidc: Vec::new(),
            resources: Vec::new(),
            secret_name: None,
            secret: None,
        }
    }
}

impl Compiled {
    /// Returns whether some of its objects pass only if expressions say so.
    pub fn has_filters(&self) -> bool {
        self.resources.iter().any(|(_, filter)| !filter.is_empty())
    }

    /// Returns whether anything looks at the body of a call.
    pub fn needs_body(&self) -> bool {
        self.type_.looks_at_body() || self.has_filters()
    }
}

/// Why a spec is of no use until it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The reason of the conditions.
    pub reason: &'static str,
    /// The problem.
    pub message: String,
}

/// Checks and parses a Receiver, in the order of Flux, which decides what is told first.
pub fn compile(receiver: &Receiver) -> Result<Compiled, Invalid> {
    let spec = &receiver.spec;
    let has_claims = spec.type_ == SpecType::GenericOidc;
    check_expressions(receiver)?;
    let common = match &spec.resource_filter {
        Some(text) => Filter::parse(text, has_claims)
            .map_err(|error| invalid_expression(format!("invalid resourceFilter expression: {error}")))?,
        None => Filter::default(),
    };
    let mut resources = Vec::new();
    for (number, resource) in spec.resources.iter().enumerate() {
        let filter = match &resource.filter {
            Some(text) => Filter::parse(text, has_claims).map_err(|error| {
                invalid_expression(format!(
                    "invalid filter expression for resources[{number}] (kind=\"{}\", name={:?}): {error}",
                    kind(resource),
                    resource.name
                ))
            })?,
            None => Filter::default(),
        };
        resources.push((resource.clone(), common.clone().and(filter)));
    }
    check_references(receiver)?;
    check_providers(&spec.oidc_providers)?;
    Ok(Compiled {
        uid: receiver.uid().unwrap_or_default(),
        generation: receiver.metadata.generation.unwrap_or_default(),
        name: receiver.name_any(),
        namespace: receiver.namespace().unwrap_or_default(),
        type_: type_of(spec.type_),
        events: spec.events.clone(),
        oidc: providers(&spec.oidc_providers)?,
        resources,
        secret_name: spec.secret_ref.as_ref().map(|secret| secret.name.clone()),
        secret: None,
    })
}

/// The path of a Receiver: no one guesses it who does not know the token.
pub fn path(token: &[u8], name: &str, namespace: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(token);
    hash.update(name.as_bytes());
    hash.update(namespace.as_bytes());
    format!("/hook/{}", hex::encode(hash.finalize()))
}

/// The kind that a resource names.
pub fn kind(resource: &ReceiverResource) -> String {
    let text = serde_json::to_value(resource.kind).ok();
    let text = text.as_ref().and_then(serde_json::Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn check_expressions(receiver: &Receiver) -> Result<(), Invalid> {
    let spec = &receiver.spec;
    let filters = spec.resources.iter().filter(|resource| resource.filter.is_some());
    let providers = spec.oidc_providers.iter();
    let checks: usize = providers
        .map(|provider| provider.variables.len() + provider.validations.len())
        .sum();
    let count = usize::from(spec.resource_filter.is_some()) + filters.count() + checks;
    if count <= MOST_EXPRESSIONS {
        return Ok(());
    }
    Err(validation(format!(
        "the spec has {count} CEL expressions (filters, variables and validations), and may have {MOST_EXPRESSIONS}"
    )))
}

fn check_references(receiver: &Receiver) -> Result<(), Invalid> {
    let spec = &receiver.spec;
    let is_oidc = spec.type_ == SpecType::GenericOidc;
    let problem = match (is_oidc, spec.oidc_providers.is_empty(), spec.secret_ref.is_some()) {
        (true, true, _) => "generic-oidc receiver requires at least one oidcProvider",
        (false, false, _) => "oidcProviders can only be set when type is generic-oidc",
        (true, _, true) => "secretRef cannot be set when type is generic-oidc",
        (false, _, false) => "secretRef is required when type is not generic-oidc",
        _ => return Ok(()),
    };
    Err(validation(problem.to_owned()))
}

/// Repeats checks of the CRD, for API servers that do not make them.
fn check_providers(providers: &[OIDCProvider]) -> Result<(), Invalid> {
    for (number, provider) in providers.iter().enumerate() {
        let url = &provider.issuer_url;
        let named = format!("oidcProviders[{number}] (issuerURL={url:?})");
        let problem = if url.is_empty() {
            format!("oidcProviders[{number}]: issuerURL is required")
        } else if !url.starts_with("http://") && !url.starts_with("https://") {
            format!("oidcProviders[{number}]: issuerURL {url:?} must start with http:// or https://")
        } else if providers[..number].iter().any(|other| other.issuer_url == *url) {
            format!("oidcProviders[{number}]: duplicate issuerURL {url:?}")
        } else if provider.validations.is_empty() {
            format!(
                "{named}: at least one validation is required; without validations any caller able to obtain a token from this issuer can trigger the Receiver"
            )
        } else if let Some(problem) = empty_field(provider) {
            format!("{named}: {problem}")
        } else {
            continue;
        };
        return Err(validation(problem));
    }
    Ok(())
}

fn empty_field(provider: &OIDCProvider) -> Option<String> {
    let variables = provider
        .variables
        .iter()
        .enumerate()
        .find_map(|(number, variable)| {
            if variable.name.is_empty() {
                Some(format!("variables[{number}]: name is required"))
            } else if variable.expression.is_empty() {
                Some(format!(
                    "variables[{number}] (name={:?}): expression is required",
                    variable.name
                ))
            } else {
                None
            }
        });
    variables.or_else(|| {
        provider
            .validations
            .iter()
            .enumerate()
            .find_map(|(number, validation)| {
                if validation.expression.is_empty() {
                    Some(format!("validations[{number}]: expression is required"))
                } else if validation.message.is_empty() {
                    Some(format!("validations[{number}]: message is required"))
                } else {
                    None
                }
            })
    })
}

fn providers(providers: &[OIDCProvider]) -> Result<Vec<OidcProvider>, Invalid> {
    let parse = |(number, provider): (usize, &OIDCProvider)| {
        let variables = provider.variables.iter();
        let validations = provider.validations.iter();
        OidcProvider::parse(
            &provider.issuer_url,
            provider.audience.as_deref(),
            variables.map(|variable| (variable.name.as_str(), variable.expression.as_str())),
            validations.map(|validation| (validation.expression.as_str(), validation.message.as_str())),
        )
        .map_err(|problem| {
            let url = &provider.issuer_url;
            invalid_expression(format!("oidcProviders[{number}] (issuerURL={url:?}): {problem}"))
        })
    };
    providers.iter().enumerate().map(parse).collect()
}

fn invalid_expression(message: String) -> Invalid {
    Invalid {
        reason: reasons::INVALID_CEL_EXPRESSION,
        message,
    }
}

fn validation(message: String) -> Invalid {
    Invalid {
        reason: VALIDATION_FAILED,
        message,
    }
}

fn type_of(type_: SpecType) -> ReceiverType {
    match type_ {
        SpecType::Generic => ReceiverType::Generic,
        SpecType::GenericHmac => ReceiverType::GenericHmac,
        SpecType::GenericOidc => ReceiverType::GenericOidc,
        SpecType::Github => ReceiverType::GitHub,
        SpecType::Gitlab => ReceiverType::GitLab,
        SpecType::Bitbucket => ReceiverType::Bitbucket,
        SpecType::Harbor => ReceiverType::Harbor,
        SpecType::Dockerhub => ReceiverType::DockerHub,
        SpecType::Quay => ReceiverType::Quay,
        SpecType::Gcr => ReceiverType::Gcr,
        SpecType::Nexus => ReceiverType::Nexus,
        SpecType::Acr => ReceiverType::Acr,
        SpecType::Cdevents => ReceiverType::CdEvents,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn compiled(spec: Value) -> Result<Compiled, (&'static str, String)> {
        let receiver: Receiver = serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1",
            "kind": "Receiver",
            "metadata": {"name": "hook", "namespace": "apps"},
            "spec": spec,
        }))
        .unwrap();
        compile(&receiver).map_err(|invalid| (invalid.reason, invalid.message))
    }

    fn oidc(provider: Value) -> Value {
        json!({"type": "generic-oidc", "resources": [], "oidcProviders": [provider]})
    }

    #[test]
    fn the_path_is_that_of_flux() {
        // printf 'tokenhookapps' | sha256sum
        let path = path(b"token", "hook", "apps");
        assert_eq!(
            path,
            "/hook/".to_owned() + &hex::encode(Sha256::digest(b"tokenhookapps"))
        );
        assert_eq!(
            super::path(b"", "test", "default"),
            "/hook/".to_owned() + &hex::encode(Sha256::digest(b"testdefault"))
        );
    }

    #[test]
    fn what_is_wrong_is_told_in_the_words_of_flux() {
        let good = json!({"issuerURL": "https://a", "validations": [{"expression": "true", "message": "m"}]});
        for (spec, reason, message) in [
            (
                json!({"type": "github", "resources": []}),
                "ValidationFailed",
                "secretRef is required when type is not generic-oidc",
            ),
            (
                json!({"type": "generic-oidc", "resources": []}),
                "ValidationFailed",
                "generic-oidc receiver requires at least one oidcProvider",
            ),
            (
                json!({"type": "github", "resources": [], "secretRef": {"name": "a"}, "oidcProviders": [good]}),
                "ValidationFailed",
                "oidcProviders can only be set when type is generic-oidc",
            ),
            (
                oidc(json!({"issuerURL": "ftp://a", "validations": []})),
                "ValidationFailed",
                "oidcProviders[0]: issuerURL \"ftp://a\" must start with http:// or https://",
            ),
            (
                oidc(json!({"issuerURL": "https://a", "validations": [{"expression": "", "message": "m"}]})),
                "ValidationFailed",
                "oidcProviders[0] (issuerURL=\"https://a\"): validations[0]: expression is required",
            ),
        ] {
            let (told_reason, told) = compiled(spec).unwrap_err();
            assert_eq!((told_reason, told.as_str()), (reason, message));
        }
        for (spec, message) in [
            (
                json!({"type": "github", "resources": [], "resourceFilter": "res.("}),
                "invalid resourceFilter expression: failed to parse the CEL expression 'res.('",
            ),
            (
                json!({"type": "github", "resources": [{"kind": "GitRepository", "name": "a", "filter": "claims.a == 'b'"}]}),
                "invalid filter expression for resources[0] (kind=\"GitRepository\", name=\"a\"): failed to parse",
            ),
            (
                oidc(
                    json!({"issuerURL": "https://a", "validations": [{"expression": "claim.a", "message": "m"}]}),
                ),
                "oidcProviders[0] (issuerURL=\"https://a\"): invalid expression for validation \"m\": failed to parse",
            ),
        ] {
            let (reason, told) = compiled(spec).unwrap_err();
            assert_eq!(reason, "InvalidCELExpression");
            assert!(told.starts_with(message), "{told}");
        }
        assert!(compiled(oidc(good)).is_ok());
    }

    #[test]
    fn a_spec_has_so_many_expressions_at_most() {
        let spec = |filters: usize, checks: usize| {
            let resource = json!({"kind": "Bucket", "name": "a", "filter": "true"});
            let variables = vec![json!({"name": "a", "expression": "1"}); checks - 1];
            let validations = json!([{"expression": "true", "message": "m"}]);
            json!({
                "type": "generic-oidc", "resourceFilter": "true", "resources": vec![resource; filters],
                "oidcProviders": [{"issuerURL": "https://a", "variables": variables, "validations": validations}],
            })
        };
        assert!(compiled(spec(21, 10)).is_ok());
        let message = "the spec has 33 CEL expressions (filters, variables and validations), and may have 32";
        for spec in [spec(22, 10), spec(21, 11)] {
            let (reason, told) = compiled(spec).unwrap_err();
            assert_eq!((reason, told.as_str()), ("ValidationFailed", message));
        }
    }

    #[test]
    fn a_body_is_needed_where_something_looks_at_it() {
        let needs = |type_: &str, filter: Option<&str>| {
            let spec = json!({
                "type": type_, "secretRef": {"name": "a"},
                "resources": [{"kind": "Bucket", "name": "a", "filter": filter}],
            });
            compiled(spec).unwrap().needs_body()
        };
        assert!(needs("github", None) && needs("quay", None) && needs("generic", Some("true")));
        assert!(!needs("generic", None) && !needs("gitlab", None) && !needs("harbor", None));
    }
}
