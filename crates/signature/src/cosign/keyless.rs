//! Signatures without keys: who is trusted to say who signed (a Sigstore installation), and who may have signed.

use go_regexp::Regexp;
use sigstore_verify::trust_root::{SigstoreInstance, TrustedRoot as Description};
use sigstore_verify::types::{Artifact, Bundle};
use sigstore_verify::{VerificationPolicy, Verifier};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use super::Verified;
use super::error::Error;

/// The certificate authorities, logs and time stamp services of a Sigstore installation.
pub struct TrustedRoot(Verifier);

impl std::fmt::Debug for TrustedRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TrustedRoot(..)")
    }
}

impl TrustedRoot {
    /// The public installation, as it was known when this program was built.
    ///
    /// # Errors
    /// When what is built in cannot be read.
    pub fn public_good() -> Result<Self, Error> {
        let description = Description::from_embedded(SigstoreInstance::PublicGood);
        Self::new(&description.map_err(|error| Error::ParseTrustedRoot(error.to_string()))?)
    }

    /// An installation as `cosign trusted-root create` describes it (`trusted_root.json`).
    ///
    /// # Errors
    /// When the description cannot be read or makes no sense.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        let text =
            std::str::from_utf8(json).map_err(|_| Error::ParseTrustedRoot("it is not UTF-8".to_owned()))?;
        let description = Description::from_json(text);
        Self::new(&description.map_err(|error| Error::ParseTrustedRoot(error.to_string()))?)
    }

    fn new(description: &Description) -> Result<Self, Error> {
        Verifier::new(description)
            .map(Self)
            .map_err(|error| Error::ParseTrustedRoot(error.to_string()))
    }

    /// Verifies everything about a bundle but who signed it, and then that.
    pub(super) fn verify<'a>(
        &self,
        artifact: impl Into<Artifact<'a>>,
        bundle: &Bundle,
        identities: &[Identity],
    ) -> Result<Verified, Error> {
        let policy = VerificationPolicy::any_identity();
        let verified = self
            .0
            .verify(artifact, bundle, &policy)
            .map_err(|error| Error::VerifyKeyless(error.to_string()))?;
        let certificate = bundle
            .signing_certificate()
            .ok_or(Error::Missing { what: "certificate" })?;
        match_identity(
            identities,
            &subjects(certificate.as_bytes())?,
            verified.issuer().unwrap_or_default(),
        )?;
        let times = verified.verified_timestamps().iter().copied();
        Ok(Verified {
            recorded_at: times.chain(verified.integrated_time()).max(),
        })
    }
}

/// Someone who may have signed: regular expressions, in Go's syntax, of which any part of the text may match.
#[derive(Debug, Clone)]
pub struct Identity {
    issuer: Regexp,
    subject: Regexp,
}

impl Identity {
    /// Reads the two expressions.
    ///
    /// # Errors
    /// When one of them is none.
    pub fn new(issuer: &str, subject: &str) -> Result<Self, Error> {
        let compile = |what, expression: &str| {
            Regexp::compile(expression.as_bytes()).map_err(|source| Error::ParseIdentity {
                what,
                expression: expression.to_owned(),
                source,
            })
        };
        Ok(Self {
            issuer: compile("issuer", issuer)?,
            subject: compile("subject", subject)?,
        })
    }

    fn matches(&self, subjects: &[String], issuer: &str) -> bool {
        self.issuer.is_match(issuer.as_bytes())
            && subjects
                .iter()
                .any(|subject| self.subject.is_match(subject.as_bytes()))
    }
}

/// One identity must match. Without any, everybody does, as in Flux.
fn match_identity(identities: &[Identity], subjects: &[String], issuer: &str) -> Result<(), Error> {
    let matches = |identity: &Identity| identity.matches(subjects, issuer);
    if identities.is_empty() || identities.iter().any(matches) {
        return Ok(());
    }
    Err(Error::MatchIdentity {
        subjects: subjects.join(", "),
        issuer: issuer.to_owned(),
    })
}

/// The names that a certificate was made out to.
fn subjects(certificate: &[u8]) -> Result<Vec<String>, Error> {
    let unreadable = || Error::Parse { what: "certificate" };
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(|_| unreadable())?;
    let names = certificate.subject_alternative_name().map_err(|_| unreadable())?;
    let names = names.map(|extension| extension.value.general_names.as_slice());
    Ok(names
        .unwrap_or_default()
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(text) | GeneralName::RFC822Name(text) | GeneralName::URI(text) => {
                Some((*text).to_owned())
            }
            GeneralName::OtherName(_, value) => user_name(value),
            _ => None,
        })
        .collect())
}

/// Fulcio writes user names that are no e-mail addresses as `[0] UTF8String`.
fn user_name(value: &[u8]) -> Option<String> {
    let explicit = value.strip_prefix(&[0xa0])?;
    let (length, text) = explicit.split_first()?;
    let text = text.get(..usize::from(*length)).filter(|_| *length < 0x80)?;
    let (length, text) = text.strip_prefix(&[0x0c])?.split_first()?;
    let text = text.get(..usize::from(*length)).filter(|_| *length < 0x80)?;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://token.actions.githubusercontent.com";

    fn verdict(identities: &[(&str, &str)]) -> Result<(), String> {
        let identities: Vec<_> = identities
            .iter()
            .map(|(issuer, subject)| Identity::new(issuer, subject).unwrap())
            .collect();
        let subjects = ["https://github.com/org/app/.github/workflows/r.yaml@refs/tags/v1".to_owned()];
        match_identity(&identities, &subjects, ISSUER).map_err(|error| error.to_string())
    }

    #[test]
    fn one_identity_of_several_is_enough() {
        assert_eq!(verdict(&[]), Ok(()));
        assert_eq!(
            verdict(&[("githubusercontent", "^https://github.com/org/")]),
            Ok(())
        );
        assert_eq!(
            verdict(&[("^other$", ".*"), (".*", r"org/app/.*@refs/tags/v\d")]),
            Ok(())
        );
        let refused = verdict(&[("^https://token", "^org"), ("^http:", ".*")]);
        assert_eq!(
            refused.unwrap_err(),
            format!(
                "none of the expected identities matched what was in the certificate, got subjects \
                 [https://github.com/org/app/.github/workflows/r.yaml@refs/tags/v1] with issuer {ISSUER}"
            )
        );
    }

    #[test]
    fn expressions_are_those_of_go() {
        let error = Identity::new(".*", "(?<!a)").unwrap_err();
        assert_eq!(error.to_string(), "malformed subject in identity: (?<!a)");
        assert!(error.is_about_trust());
        assert!(Identity::new("[", ".*").is_err());
    }

    #[test]
    fn a_user_name_is_read_and_nonsense_is_not() {
        assert_eq!(user_name(b"\xa0\x06\x0c\x04user").as_deref(), Some("user"));
        for wrong in [
            &b""[..],
            b"\xa0",
            b"\xa0\x09\x0c\x04user",
            b"\xa0\x06\x0c\x09user",
            b"\xa0\x84\x0c\x04",
        ] {
            assert_eq!(user_name(wrong), None, "{wrong:?}");
        }
    }
}
