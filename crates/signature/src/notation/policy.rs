//! Trust policies: `trustpolicy.json`, its rules, and which of its statements applies. Pure.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;

use super::certificate::Certificate;
use super::distinguished_name::{self, Parts};

const ANY: &str = "*";
const SUBJECT: &str = "x509.subject";
const STORE_TYPES: [&str; 3] = ["ca", "signingAuthority", "tsa"];

/// A trust policy that makes no sense, or does not speak of the artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// Not JSON of the right form.
    #[error("error occurred while parsing trustpolicy.json: {0}")]
    Parse(String),
    /// A rule is broken.
    #[error("{0}")]
    Invalid(String),
    /// No statement is about this artifact.
    #[error(
        "artifact \"{0}\" has no applicable trust policy statement. Trust policy applicability for a given artifact is \
         determined by registryScopes"
    )]
    NotApplicable(String),
}

/// A kind of check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Check {
    Integrity,
    Authenticity,
    AuthenticTimestamp,
    Expiry,
    Revocation,
}

/// Consequence of a failed check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Action {
    Enforce,
    Log,
    Skip,
}

/// Consequences of each check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    actions: BTreeMap<Check, Action>,
    skip: bool,
}

impl Level {
    pub(super) fn action(&self, check: Check) -> Action {
        self.actions.get(&check).copied().unwrap_or(Action::Enforce)
    }

    fn named(name: &str) -> Option<Self> {
        use Action::{Enforce, Log, Skip};
        use Check::{AuthenticTimestamp, Authenticity, Expiry, Integrity, Revocation};
        let [integrity, authenticity, others] = match name {
            "strict" => [Enforce, Enforce, Enforce],
            "permissive" => [Enforce, Enforce, Log],
            "audit" => [Enforce, Log, Log],
            "skip" => [Skip, Skip, Skip],
            _ => return None,
        };
        Some(Self {
            actions: BTreeMap::from([
                (Integrity, integrity),
                (Authenticity, authenticity),
                (AuthenticTimestamp, others),
                (Expiry, others),
                (Revocation, others),
            ]),
            skip: name == "skip",
        })
    }
}

/// A document that keeps the rules.
#[derive(Debug, Clone)]
pub struct TrustPolicy(Vec<Statement>);

/// Trust statement: accepted signers for the artifacts of some repositories.
#[derive(Debug, Clone)]
pub struct Statement {
    name: String,
    scopes: Vec<String>,
    level: Level,
    timestamps_only_after_expiry: bool,
    stores: Vec<String>,
    /// None when everybody may sign whose certificate is trusted.
    identities: Option<Vec<Parts>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    version: String,
    #[serde(default)]
    trust_policies: Vec<Written>,
}

/// A statement as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    name: String,
    #[serde(default)]
    registry_scopes: Vec<String>,
    #[serde(default)]
    signature_verification: SignatureVerification,
    #[serde(default)]
    trust_stores: Vec<String>,
    #[serde(default)]
    trusted_identities: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignatureVerification {
    #[serde(default)]
    level: String,
    #[serde(default, rename = "override")]
    overrides: BTreeMap<String, String>,
    #[serde(default)]
    verify_timestamp: String,
}

impl TrustPolicy {
    /// Reads a document and checks its rules.
    ///
    /// # Errors
    /// When it is none, or breaks a rule.
    pub fn parse(json: &[u8]) -> Result<Self, PolicyError> {
        let document: Document =
            serde_json::from_slice(json).map_err(|error| PolicyError::Parse(error.to_string()))?;
        let statements = match document.version.as_str() {
            "" => Err("trust policy document has empty version, version must be specified".to_owned()),
            "1.0" => statements(document.trust_policies),
            version => Err(format!(
                "trust policy document uses unsupported version \"{version}\""
            )),
        };
        statements.map(Self).map_err(PolicyError::Invalid)
    }

    /// The statement for a repository (`registry/repository`): the one that names it, or the one for all.
    ///
    /// # Errors
    /// When there is neither.
    pub fn statement(&self, repository: &str) -> Result<&Statement, PolicyError> {
        let of = |scope: &str| {
            self.0
                .iter()
                .find(|statement| statement.scopes.iter().any(|s| s == scope))
        };
        of(repository)
            .or_else(|| of(ANY))
            .ok_or_else(|| PolicyError::NotApplicable(repository.to_owned()))
    }
}

impl Statement {
    /// Returns whether nothing at all is verified.
    #[must_use]
    pub fn skips(&self) -> bool {
        self.level.skip
    }

    pub(super) fn level(&self) -> &Level {
        &self.level
    }

    /// Returns whether a trust store of this type is named.
    pub(super) fn has_store(&self, kind: &str) -> bool {
        self.stores
            .iter()
            .any(|store| store.split_once(':').is_some_and(|(of, _)| of == kind))
    }

    pub(super) fn timestamps_only_after_expiry(&self) -> bool {
        self.timestamps_only_after_expiry
    }

    /// Returns whether the owner of this certificate may sign.
    pub(super) fn check_identity(&self, certificate: &Certificate) -> Result<(), String> {
        let Some(identities) = &self.identities else {
            return Ok(());
        };
        if identities.is_empty() {
            return Err(format!(
                "no x509 trusted identities are configured in the trust policy \"{}\"",
                self.name
            ));
        }
        let subject = &certificate.subject;
        let unreadable = |problem| {
            format!(
                "error while parsing the certificate subject from the digital signature. error : {problem}"
            )
        };
        let parts = certificate.subject_parts.clone();
        let parts =
            parts.ok_or_else(|| unreadable(format!("\"{subject}\" has attributes without a name")))?;
        let parts = distinguished_name::collect(subject, parts).map_err(unreadable)?;
        if identities
            .iter()
            .any(|identity| distinguished_name::includes(&parts, identity))
        {
            return Ok(());
        }
        Err(format!(
            "signing certificate from the digital signature does not match the X.509 trusted identities defined in the trust \
             policy \"{}\", its subject is \"{subject}\"",
            self.name
        ))
    }
}

fn statements(written: Vec<Written>) -> Result<Vec<Statement>, String> {
    if written.is_empty() {
        return Err("trust policy document can not have zero trust policy statements".to_owned());
    }
    let mut names = HashSet::new();
    let mut scopes = HashSet::new();
    let mut statements = Vec::new();
    for written in written {
        let name = written.name.clone();
        let statement = statement(written).map_err(|problem| format!("trust policy: {problem}"))?;
        if !names.insert(name.clone()) {
            return Err(format!(
                "multiple trust policy statements use the same name \"{name}\", statement names must be unique"
            ));
        }
        check_scopes(&statement)?;
        if let Some(twice) = statement
            .scopes
            .iter()
            .find(|scope| !scopes.insert((*scope).clone()))
        {
            return Err(format!(
                "registry scope \"{twice}\" is present in multiple trust policy statements, one registry scope value can only \
                 be associated with one statement"
            ));
        }
        statements.push(statement);
    }
    Ok(statements)
}

fn statement(written: Written) -> Result<Statement, String> {
    let Written {
        name,
        registry_scopes: scopes,
        signature_verification: verification,
        trust_stores,
        trusted_identities,
    } = written;
    if name.is_empty() {
        return Err("a trust policy statement is missing a name, every statement requires a name".to_owned());
    }
    let about = |problem: String| format!("trust policy statement \"{name}\" {problem}");
    let level = level(&verification).map_err(|p| about(format!("has invalid signatureVerification: {p}")))?;
    let timestamp = verification.verify_timestamp.as_str();
    if !["", "always", "afterCertExpiry"].contains(&timestamp) {
        return Err(about(format!(
            "has invalid signatureVerification: verifyTimestamp must be \"always\" or \"afterCertExpiry\", but got \
             \"{timestamp}\""
        )));
    }
    // As in Flux, what a statement that verifies nothing says of trust is passed over.
    let (stores, identities) = if level.skip {
        (Vec::new(), None)
    } else if trust_stores.is_empty() || trusted_identities.is_empty() {
        let problem = "is either missing trust stores or trusted identities, both must be specified";
        return Err(about(problem.to_owned()));
    } else {
        check_stores(&trust_stores).map_err(about)?;
        (
            trust_stores,
            self::identities(&trusted_identities).map_err(about)?,
        )
    };
    Ok(Statement {
        scopes,
        level,
        timestamps_only_after_expiry: timestamp == "afterCertExpiry",
        stores,
        identities,
        name,
    })
}

fn level(verification: &SignatureVerification) -> Result<Level, String> {
    let name = verification.level.as_str();
    if name.is_empty() {
        return Err(
            "signature verification level is empty or missing in the trust policy statement".to_owned(),
        );
    }
    let invalid = || format!("invalid signature verification level \"{name}\"");
    let mut level = Level::named(name).ok_or_else(invalid)?;
    if level.skip && !verification.overrides.is_empty() {
        return Err(format!(
            "signature verification level \"{name}\" can't be used to customize signature verification"
        ));
    }
    for (check, action) in &verification.overrides {
        let unknown = |what: &str, value: &str| {
            format!("verification {what} \"{value}\" in custom signature verification is not supported")
        };
        let kind: Check = word(check).ok_or_else(|| unknown("type", check))?;
        let new: Action = word(action).ok_or_else(|| unknown("action", action))?;
        if kind == Check::Integrity {
            return Err(format!(
                "\"{check}\" verification can not be overridden in custom signature verification"
            ));
        }
        if kind != Check::Revocation && new == Action::Skip {
            return Err(format!(
                "\"{check}\" verification can not be skipped in custom signature verification"
            ));
        }
        level.actions.insert(kind, new);
    }
    Ok(level)
}

/// One of the words of an enum.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(text.into()).ok()
}

fn check_stores(stores: &[String]) -> Result<(), String> {
    for store in stores {
        let valid = store.split_once(':').is_some_and(|(kind, name)| {
            let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            STORE_TYPES.contains(&kind) && !name.is_empty() && name.chars().all(word)
        });
        if !valid {
            return Err(format!(
                "uses an unsupported trust store \"{store}\". The required format is <TrustStoreType>:<TrustStoreName>, with \
                 one of the types {}",
                STORE_TYPES.join(", ")
            ));
        }
    }
    Ok(())
}

fn identities(written: &[String]) -> Result<Option<Vec<Parts>>, String> {
    if written.iter().any(|identity| identity == ANY) {
        return match written {
            [_] => Ok(None),
            _ => Err(
                "uses a wildcard trusted identity '*', a wildcard identity cannot be used in conjunction with other values"
                    .to_owned(),
            ),
        };
    }
    let mut parsed: Vec<Parts> = Vec::new();
    for identity in written {
        let (kind, value) = identity
            .split_once(':')
            .ok_or_else(|| format!("has trusted identity \"{identity}\" missing separator"))?;
        if kind != SUBJECT {
            continue; // of other kinds only plugins know something
        }
        if value.is_empty() {
            return Err(format!(
                "has trusted identity \"{identity}\" without an identity value"
            ));
        }
        let name = distinguished_name::parse(value)
            .map_err(|p| format!("has trusted identity \"{identity}\" with invalid identity value: {p}"))?;
        let overlaps = |other: &Parts| {
            distinguished_name::includes(other, &name) || distinguished_name::includes(&name, other)
        };
        if parsed.iter().any(overlaps) {
            return Err(format!(
                "has overlapping x509 trustedIdentities, \"{identity}\" overlaps with another"
            ));
        }
        parsed.push(name);
    }
    Ok(Some(parsed))
}

fn check_scopes(statement: &Statement) -> Result<(), String> {
    let (name, scopes) = (&statement.name, &statement.scopes);
    if scopes.is_empty() {
        return Err(format!(
            "trust policy statement \"{name}\" has zero registry scopes, it must specify registry scopes with at least one \
             value"
        ));
    }
    if scopes.len() > 1 && scopes.iter().any(|scope| scope == ANY) {
        return Err(format!(
            "trust policy statement \"{name}\" uses wildcard registry scope '*', a wildcard scope cannot be used in \
             conjunction with other scope values"
        ));
    }
    // What is no repository would never apply; said now, it can be fixed.
    let valid = |scope: &&String| *scope == ANY || is_repository(scope);
    match scopes.iter().find(|scope| !valid(scope)) {
        Some(scope) => Err(format!(
            "registry scope \"{scope}\" is not valid, make sure it is a fully qualified repository without the scheme, \
             protocol or tag. For example domain.com/my/repository or a local scope like local/myOCILayout"
        )),
        None => Ok(()),
    }
}

fn is_repository(scope: &str) -> bool {
    let domain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    let path = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_' | '/');
    scope.split_once('/').is_some_and(|(registry, repository)| {
        let parts = !repository.split('/').any(str::is_empty);
        !registry.is_empty() && registry.chars().all(domain) && parts && repository.chars().all(path)
    })
}

#[cfg(test)]
mod tests;
