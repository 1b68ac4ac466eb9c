//! Certificates of signers, and what a chain of them must be to sign code: the rules of notation-core-go.

use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, KeyUsage, ParsedExtension};
use x509_parser::oid_registry as oid;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;

/// A leaf, a root and what is between them.
const MAX_CHAIN: usize = 10;

/// The key that a certificate speaks for, with the one algorithm that signatures of it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
}

/// Checked parts of a certificate.
#[derive(Debug, Clone)]
pub(super) struct Certificate {
    pub(super) der: Vec<u8>,
    /// For messages.
    pub(super) subject: String,
    /// The parts of the subject (type, value); None when some of it is not text.
    pub(super) subject_parts: Option<Vec<(String, String)>>,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    /// True if it names a place where its revocation would be told.
    pub(super) can_be_revoked: bool,
    pub(super) key: Vec<u8>,
}

impl Certificate {
    pub(super) fn is_valid_at(&self, time: Timestamp) -> bool {
        (self.not_before..=self.not_after).contains(&time)
    }
}

/// Reads a chain, leaf first, that is in order and may sign code. Returns the algorithm of the leaf's key as well.
pub(super) fn chain(ders: &[Vec<u8>]) -> Result<(Vec<Certificate>, Algorithm), String> {
    if ders.is_empty() {
        return Err("certificate chain is not present".to_owned());
    }
    if ders.len() > MAX_CHAIN {
        return Err(format!(
            "certificate-chain is invalid, it has more than {MAX_CHAIN} certificates"
        ));
    }
    let parsed: Vec<_> = ders
        .iter()
        .map(|der| match X509Certificate::from_der(der) {
            Ok(([], certificate)) => Ok(certificate),
            _ => Err("malformed certificate".to_owned()),
        })
        .collect::<Result<_, _>>()?;
    check_chain(&parsed).map_err(|problem| format!("certificate-chain is invalid, {problem}"))?;
    let algorithm = algorithm(&parsed[0])?;
    let certificates = parsed.iter().zip(ders).map(|(parsed, der)| summary(parsed, der));
    Ok((certificates.collect::<Result<_, _>>()?, algorithm))
}

fn check_chain(chain: &[X509Certificate<'_>]) -> Result<(), String> {
    if let [only] = chain {
        let subject = only.subject();
        if !is_signed_by(only, only) || only.subject().as_raw() != only.issuer().as_raw() {
            return Err(format!("invalid self-signed certificate. subject: \"{subject}\""));
        }
        return check_leaf(only);
    }
    for (position, certificate) in chain.iter().enumerate() {
        let subject = certificate.subject();
        match chain.get(position + 1) {
            None if !is_issued_by(certificate, certificate) => {
                return Err(format!(
                    "root certificate with subject \"{subject}\" is not self-signed. Certificate chain must end with a \
                     valid self-signed root certificate"
                ));
            }
            Some(_) if is_issued_by(certificate, certificate) => {
                return Err(format!(
                    "certificate with subject \"{subject}\" is self-signed and not the last of the chain"
                ));
            }
            Some(parent) if !is_issued_by(certificate, parent) => {
                let parent = parent.subject();
                return Err(format!(
                    "certificate with subject \"{subject}\" is not issued by \"{parent}\""
                ));
            }
            _ => {}
        }
        match position {
            0 => check_leaf(certificate)?,
            position => check_authority(certificate, position - 1)?,
        }
    }
    Ok(())
}

fn is_signed_by(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
    certificate.verify_signature(Some(issuer.public_key())).is_ok()
}

fn is_issued_by(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
    let may_issue = matches!(issuer.basic_constraints(), Ok(Some(constraints)) if constraints.value.ca);
    may_issue
        && certificate.issuer().as_raw() == issuer.subject().as_raw()
        && is_signed_by(certificate, issuer)
}

fn check_leaf(certificate: &X509Certificate<'_>) -> Result<(), String> {
    let subject = certificate.subject();
    if matches!(certificate.basic_constraints(), Ok(Some(constraints)) if constraints.value.ca) {
        return Err(format!(
            "certificate with subject \"{subject}\": if the basic constraints extension is present, the ca field must be \
             set to false"
        ));
    }
    let usage = key_usage(certificate)?;
    if !usage.digital_signature() {
        return Err(format!(
            "the certificate with subject \"{subject}\" is invalid. The key usage must have the bit positions for \
             \"Digital Signature\" set"
        ));
    }
    let others = usage.key_encipherment()
        || usage.data_encipherment()
        || usage.key_agreement()
        || usage.key_cert_sign()
        || usage.crl_sign()
        || usage.encipher_only()
        || usage.decipher_only();
    if others {
        return Err(format!(
            "the certificate with subject \"{subject}\" is invalid. The key usage must be \"Digital Signature\" only"
        ));
    }
    check_extended_usage(certificate)
}

fn check_extended_usage(certificate: &X509Certificate<'_>) -> Result<(), String> {
    let subject = certificate.subject();
    let usage = certificate
        .extended_key_usage()
        .map_err(|_| format!("certificate with subject \"{subject}\": malformed extended key usage"))?;
    let Some(usage) = usage.map(|extension| extension.value) else {
        return Ok(());
    };
    let excluded = [
        (usage.server_auth, "ServerAuth"),
        (usage.client_auth, "ClientAuth"),
        (usage.email_protection, "EmailProtection"),
        (usage.time_stamping, "Timestamping"),
        (usage.ocsp_signing, "OCSPSigning"),
    ];
    match excluded.iter().find(|(present, _)| *present) {
        Some((_, name)) => Err(format!(
            "certificate with subject \"{subject}\": extended key usage must not contain {name} eku"
        )),
        None => Ok(()),
    }
}

fn check_authority(certificate: &X509Certificate<'_>, below: usize) -> Result<(), String> {
    let subject = certificate.subject();
    let constraints = certificate.basic_constraints().ok().flatten();
    let constraints = constraints.filter(|extension| extension.value.ca).ok_or_else(|| {
        format!("certificate with subject \"{subject}\": ca field in basic constraints must be present, critical, and set to true")
    })?;
    if let Some(allowed) = constraints.value.path_len_constraint
        && (allowed as usize) < below
    {
        return Err(format!(
            "certificate with subject \"{subject}\": expected path length of {below} but certificate has path length \
             {allowed} instead"
        ));
    }
    if key_usage(certificate)?.key_cert_sign() {
        return Ok(());
    }
    Err(format!(
        "certificate with subject \"{subject}\": key usage must have the bit positions for key cert sign set"
    ))
}

fn key_usage(certificate: &X509Certificate<'_>) -> Result<KeyUsage, String> {
    let subject = certificate.subject();
    let usage = certificate.key_usage().ok().flatten();
    let usage = usage.ok_or_else(|| {
        format!("certificate with subject \"{subject}\": key usage extension must be present")
    })?;
    if usage.critical {
        return Ok(*usage.value);
    }
    Err(format!(
        "certificate with subject \"{subject}\": key usage extension must be marked critical"
    ))
}

fn algorithm(certificate: &X509Certificate<'_>) -> Result<Algorithm, String> {
    let info = certificate.public_key();
    match info.parsed() {
        Ok(PublicKey::RSA(key)) => match key.key_size() {
            2048 => Ok(Algorithm::Ps256),
            3072 => Ok(Algorithm::Ps384),
            4096 => Ok(Algorithm::Ps512),
            size => Err(format!("rsa key size {size} bits is not supported")),
        },
        Ok(PublicKey::EC(_)) => {
            let curve = info
                .algorithm
                .parameters
                .as_ref()
                .and_then(|curve| curve.as_oid().ok());
            match curve {
                Some(curve) if curve == oid::OID_EC_P256 => Ok(Algorithm::Es256),
                Some(curve) if curve == oid::OID_NIST_EC_P384 => Ok(Algorithm::Es384),
                Some(curve) if curve == oid::OID_NIST_EC_P521 => Ok(Algorithm::Es512),
                _ => Err("ecdsa key with this curve is not supported".to_owned()),
            }
        }
        _ => Err("unsupported public key type".to_owned()),
    }
}

fn summary(certificate: &X509Certificate<'_>, der: &[u8]) -> Result<Certificate, String> {
    let time = |seconds: i64| Timestamp::from_second(seconds).map_err(|_| "malformed certificate".to_owned());
    let validity = certificate.validity();
    Ok(Certificate {
        der: der.to_vec(),
        subject: certificate.subject().to_string(),
        subject_parts: subject_parts(certificate),
        not_before: time(validity.not_before.timestamp())?,
        not_after: time(validity.not_after.timestamp())?,
        can_be_revoked: can_be_revoked(certificate),
        key: certificate.public_key().subject_public_key.data.to_vec(),
    })
}

fn can_be_revoked(certificate: &X509Certificate<'_>) -> bool {
    certificate
        .extensions()
        .iter()
        .any(|extension| match extension.parsed_extension() {
            ParsedExtension::CRLDistributionPoints(_) => true,
            ParsedExtension::AuthorityInfoAccess(access) => access.accessdescs.iter().any(|description| {
                description.access_method == oid::OID_PKIX_ACCESS_DESCRIPTOR_OCSP
                    && matches!(description.access_location, GeneralName::URI(_))
            }),
            _ => false,
        })
}

/// The names that Go's library gives to types; a subject with others has no text that identities could be compared to.
fn subject_parts(certificate: &X509Certificate<'_>) -> Option<Vec<(String, String)>> {
    certificate
        .subject()
        .iter_attributes()
        .map(|attribute| {
            let name = match attribute.attr_type().to_id_string().as_str() {
                "2.5.4.3" => "CN",
                "2.5.4.5" => "SERIALNUMBER",
                "2.5.4.6" => "C",
                "2.5.4.7" => "L",
                "2.5.4.8" => "ST",
                "2.5.4.9" => "STREET",
                "2.5.4.10" => "O",
                "2.5.4.11" => "OU",
                "2.5.4.17" => "POSTALCODE",
                _ => return None,
            };
            Some((name.to_owned(), attribute.as_str().ok()?.to_owned()))
        })
        .collect()
}
