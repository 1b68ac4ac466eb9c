//! What a tag must meet before it is chosen: its age, its signature, its attestations, the platforms that it runs on.
//!
//! Annotations of an ImagePolicy, as Flux's definition has no fields for them. Here they are read; who asks the registry
//! judges.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use api::source::{ArtifactVerification, SignatureProvider};
use serde_json::Value;

/// Annotation with the time that must have passed since the controller saw a tag first: a duration, such as `24h`.
pub const MINIMUM_AGE: &str = "windlass.dev/minimum-age";
/// Annotation with the signature that an image must have: JSON in the shape of an OCIRepository's `spec.verify`.
pub const VERIFY: &str = "windlass.dev/verify";
/// Annotation with the attestations that an image must have: a JSON list of objects in the same shape, with `predicateType`
/// and, optionally, a CEL `expression` over `predicate`.
pub const VERIFY_ATTESTATIONS: &str = "windlass.dev/verify-attestations";
/// Annotation with the platforms that an image must have, separated by commas, such as `linux/amd64,linux/arm64`.
pub const PLATFORMS: &str = "windlass.dev/platforms";

/// More platforms are refused.
const MAX_PLATFORMS: usize = 20;
/// More attestations are refused.
const MAX_ATTESTATIONS: usize = 10;

/// What a tag must meet before it is chosen.
#[derive(Debug, Clone, Default)]
pub struct Demands {
    /// The time that must have passed since it was seen first.
    pub minimum_age: Option<Duration>,
    /// The signature that it must have.
    pub verification: Option<ArtifactVerification>,
    /// The attestations that it must have.
    pub attestations: Vec<Attestation>,
    /// The platforms that it must have.
    pub platforms: Vec<Platform>,
}

/// An attestation that is demanded.
#[derive(Debug, Clone)]
pub struct Attestation {
    /// Its type, such as `https://slsa.dev/provenance/v1`.
    pub predicate_type: String,
    /// By whom.
    pub verification: ArtifactVerification,
    /// What it must say: CEL over `predicate`, which is not understood here.
    pub expression: Option<String>,
}

/// A platform that is demanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    os: String,
    architecture: String,
    /// Any, if it is empty.
    variant: String,
}

/// An annotation cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the annotation {annotation} {problem}")]
pub struct Error {
    annotation: &'static str,
    problem: String,
}

impl Demands {
    /// Reads the annotations of a policy.
    ///
    /// # Errors
    /// When one of them cannot be read: a demand that is misunderstood must not count as met.
    pub fn parse<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Result<Self, Error> {
        let of = |name: &'static str| annotation(name).map(|text| (name, text));
        let failed = |annotation| move |problem| Error { annotation, problem };
        let minimum_age = of(MINIMUM_AGE).map(|(name, text)| age(text).map_err(failed(name)));
        let verification = of(VERIFY).map(|(name, text)| verification(text).map_err(failed(name)));
        let attestations = of(VERIFY_ATTESTATIONS);
        let attestations = attestations.map(|(name, text)| attestations_of(text).map_err(failed(name)));
        let platforms = of(PLATFORMS).map(|(name, text)| platforms(text).map_err(failed(name)));
        Ok(Self {
            minimum_age: minimum_age.transpose()?,
            verification: verification.transpose()?,
            attestations: attestations.transpose()?.unwrap_or_default(),
            platforms: platforms.transpose()?.unwrap_or_default(),
        })
    }

    /// Returns whether nothing is demanded.
    pub fn is_empty(&self) -> bool {
        self.minimum_age.is_none() && !self.are_about_content()
    }

    /// Returns whether what the tag points to is judged, and not only its name.
    pub fn are_about_content(&self) -> bool {
        self.verifications().next().is_some() || !self.platforms.is_empty()
    }

    /// Who must have signed or attested.
    pub fn verifications(&self) -> impl Iterator<Item = &ArtifactVerification> {
        let attestations = self.attestations.iter();
        let attestations = attestations.map(|attestation| &attestation.verification);
        self.verification.iter().chain(attestations)
    }

    /// The annotation that is about the content of an image, for messages.
    pub fn about_content(&self) -> &'static str {
        if self.verification.is_some() {
            VERIFY
        } else if !self.attestations.is_empty() {
            VERIFY_ATTESTATIONS
        } else {
            PLATFORMS
        }
    }
}

impl Platform {
    /// Returns whether an image for this platform meets the demand.
    pub fn is_met_by(&self, os: &str, architecture: &str, variant: &str) -> bool {
        self.os == os
            && self.architecture == architecture
            && (self.variant.is_empty() || self.variant == variant)
    }
}

/// As in `docker --platform`: the system, the architecture, and a variant if it matters.
impl FromStr for Platform {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_word = |word: &&str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            !word.is_empty() && word.len() <= 32 && word.chars().all(is_plain)
        };
        let words: Vec<&str> = text.split('/').collect();
        let (os, architecture, variant) = match words[..] {
            [os, architecture] => (os, architecture, ""),
            [os, architecture, variant] if is_word(&variant) => (os, architecture, variant),
            _ => return Err(()),
        };
        if ![os, architecture].iter().all(is_word) {
            return Err(());
        }
        Ok(Self {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.to_owned(),
        })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        if !self.variant.is_empty() {
            write!(f, "/{}", self.variant)?;
        }
        Ok(())
    }
}

fn age(text: &str) -> Result<Duration, String> {
    let age: api::meta::Duration = text
        .parse()
        .map_err(|error| format!("is no duration such as 24h: {error}"))?;
    if age.to_std().is_zero() {
        return Err("must be longer than nothing".to_owned());
    }
    Ok(age.to_std())
}

fn verification(text: &str) -> Result<ArtifactVerification, String> {
    let broken =
        |error: serde_json::Error| format!("is not in the shape of spec.verify of an OCIRepository: {error}");
    verification_of(serde_json::from_str(text).map_err(broken)?)
}

fn verification_of(given: Value) -> Result<ArtifactVerification, String> {
    let broken =
        |error: serde_json::Error| format!("is not in the shape of spec.verify of an OCIRepository: {error}");
    let wanted: ArtifactVerification = serde_json::from_value(given.clone()).map_err(broken)?;
    // A field with a spelling mistake would make the demand weaker, and no one would notice.
    let understood = serde_json::to_value(&wanted).map_err(broken)?;
    if let Some(field) = unknown_field(&given, &understood) {
        return Err(format!(
            "has the field '{field}', which spec.verify of an OCIRepository does not have"
        ));
    }
    match wanted.provider {
        SignatureProvider::Cosign if wanted.secret_ref.is_none() && wanted.match_oidc_identity.is_empty() => {
            Err("lets anyone sign: it needs matchOIDCIdentity, or secretRef with public keys".to_owned())
        }
        SignatureProvider::Notation if wanted.secret_ref.is_none() => {
            Err("needs secretRef, with certificates and a trust policy, for notation".to_owned())
        }
        _ => Ok(wanted),
    }
}

fn attestations_of(text: &str) -> Result<Vec<Attestation>, String> {
    let given: Vec<serde_json::Map<String, Value>> =
        serde_json::from_str(text).map_err(|error| format!("is no list of attestations: {error}"))?;
    if given.is_empty() || given.len() > MAX_ATTESTATIONS {
        return Err(format!("needs one to {MAX_ATTESTATIONS} attestations"));
    }
    given.into_iter().map(attestation).collect()
}

fn attestation(mut given: serde_json::Map<String, Value>) -> Result<Attestation, String> {
    let mut text = |name: &str| match given.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(_) => Err(format!("has a '{name}' that is no text")),
    };
    let predicate_type = text("predicateType")?;
    let predicate_type = predicate_type.ok_or("has an attestation without 'predicateType'")?;
    let expression = text("expression")?;
    given.entry("provider").or_insert_with(|| "cosign".into());
    let verification = verification_of(Value::Object(given))?;
    if verification.provider != SignatureProvider::Cosign {
        return Err("has a provider other than cosign, of which attestations are read".to_owned());
    }
    Ok(Attestation {
        predicate_type,
        verification,
        expression,
    })
}

/// A field of the given value that the understood one does not have.
fn unknown_field(given: &Value, understood: &Value) -> Option<String> {
    match (given, understood) {
        (Value::Object(given), Value::Object(understood)) => given.iter().find_map(|(key, value)| {
            match understood.get(key) {
                Some(known) => unknown_field(value, known),
                // Nothing was said by it.
                None if value.is_null() || value.as_array().is_some_and(Vec::is_empty) => None,
                None => Some(key.clone()),
            }
        }),
        (Value::Array(given), Value::Array(understood)) => given
            .iter()
            .zip(understood)
            .find_map(|(given, understood)| unknown_field(given, understood)),
        _ => None,
    }
}

fn platforms(text: &str) -> Result<Vec<Platform>, String> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    if names.len() > MAX_PLATFORMS {
        return Err(format!("has more than {MAX_PLATFORMS} platforms"));
    }
    let all = names.into_iter().map(|name| {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
        name.parse()
            .map_err(|()| format!("has '{shown}', which is no platform such as linux/arm64"))
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, text: &str) -> Result<Demands, String> {
        let demands = Demands::parse(|asked| (asked == name).then_some(text));
        demands.map_err(|error| error.to_string())
    }

    #[test]
    fn what_no_annotation_demands_is_not_demanded() {
        let demands = Demands::parse(|_| None).unwrap();
        assert!(demands.is_empty());
    }

    #[test]
    fn annotations_are_read() {
        let demands = parsed(MINIMUM_AGE, "1h30m").unwrap();
        assert_eq!(demands.minimum_age, Some(Duration::from_secs(5400)));
        assert!(!demands.is_empty() && !demands.are_about_content());
        let demands = parsed(PLATFORMS, "linux/amd64, linux/arm/v7").unwrap();
        let [amd64, arm] = &demands.platforms[..] else {
            panic!("{demands:?}")
        };
        assert_eq!(
            (amd64.to_string(), arm.to_string()),
            ("linux/amd64".to_owned(), "linux/arm/v7".to_owned())
        );
        assert!(amd64.is_met_by("linux", "amd64", "v2") && !amd64.is_met_by("linux", "arm64", ""));
        assert!(arm.is_met_by("linux", "arm", "v7") && !arm.is_met_by("linux", "arm", "v6"));
        let demands = parsed(VERIFY, r#"{"provider": "cosign", "secretRef": {"name": "keys"}}"#).unwrap();
        assert_eq!(demands.verification.unwrap().secret_ref.unwrap().name, "keys");
        assert_eq!(demands.platforms, []);
    }

    #[test]
    fn attestations_say_of_which_type_by_whom_and_what() {
        let text = r#"[
            {"predicateType": "https://slsa.dev/provenance/v1", "matchOIDCIdentity": [{"issuer": "i", "subject": "s"}],
             "expression": "predicate.builder.id.startsWith('https://ci.')"},
            {"predicateType": "scan", "secretRef": {"name": "keys"}}
        ]"#;
        let demands = parsed(VERIFY_ATTESTATIONS, text).unwrap();
        assert!(!demands.is_empty() && demands.are_about_content());
        assert_eq!(demands.about_content(), VERIFY_ATTESTATIONS);
        assert_eq!(demands.verifications().count(), 2);
        let [built, scanned] = &demands.attestations[..] else {
            panic!("{demands:?}")
        };
        assert_eq!(
            built.expression.as_deref(),
            Some("predicate.builder.id.startsWith('https://ci.')")
        );
        assert_eq!(scanned.expression, None);
    }

    #[test]
    fn what_cannot_be_read_is_no_demand_that_is_met() {
        for (name, text, expected) in [
            (MINIMUM_AGE, "1 day", "is no duration such as 24h"),
            (MINIMUM_AGE, "0s", "must be longer than nothing"),
            (MINIMUM_AGE, "-1h", "must be longer than nothing"),
            (PLATFORMS, "", "has '', which is no platform"),
            (PLATFORMS, "linux", "has 'linux', which is no platform"),
            (PLATFORMS, "linux/amd64,", "has '', which is no platform"),
            (
                PLATFORMS,
                "linux/a/b/c",
                "has 'linux/a/b/c', which is no platform",
            ),
            (PLATFORMS, "linux//v7", "has 'linux//v7', which is no platform"),
            (VERIFY, "", "is not in the shape of spec.verify"),
            (VERIFY, "{}", "is not in the shape of spec.verify"),
            (
                VERIFY,
                r#"{"provider": "gpg"}"#,
                "is not in the shape of spec.verify",
            ),
            (VERIFY, r#"{"provider": "cosign"}"#, "lets anyone sign"),
            (VERIFY, r#"{"provider": "notation"}"#, "needs secretRef"),
            (
                VERIFY,
                r#"{"provider": "cosign", "secretRef": {"name": "a"}, "matchOidcIdentity": [{}]}"#,
                "has the field 'matchOidcIdentity'",
            ),
            (
                VERIFY,
                r#"{"provider": "cosign", "matchOIDCIdentity": [{"issuer": "i", "subject": "s", "subjects": "t"}]}"#,
                "has the field 'subjects'",
            ),
            (VERIFY_ATTESTATIONS, "{}", "is no list of attestations"),
            (VERIFY_ATTESTATIONS, "[]", "needs one to 10 attestations"),
            (
                VERIFY_ATTESTATIONS,
                r#"[{"secretRef": {"name": "a"}}]"#,
                "has an attestation without 'predicateType'",
            ),
            (
                VERIFY_ATTESTATIONS,
                r#"[{"predicateType": "t"}]"#,
                "lets anyone sign",
            ),
            (
                VERIFY_ATTESTATIONS,
                r#"[{"predicateType": "t", "secretRef": {"name": "a"}, "expresion": "true"}]"#,
                "has the field 'expresion'",
            ),
            (
                VERIFY_ATTESTATIONS,
                r#"[{"predicateType": "t", "secretRef": {"name": "a"}, "expression": 1}]"#,
                "has a 'expression' that is no text",
            ),
            (
                VERIFY_ATTESTATIONS,
                r#"[{"predicateType": "t", "provider": "notation", "secretRef": {"name": "a"}}]"#,
                "has a provider other than cosign",
            ),
        ] {
            let error = parsed(name, text).unwrap_err();
            assert!(
                error.starts_with(&format!("the annotation {name} ")) && error.contains(expected),
                "{text}: {error}"
            );
        }
    }
}
