//! Certificates, as Go's crypto/x509 writes them from sprig's template.

use aws_lc_rs::digest;
use go_time::{Location, Time};

use super::der::{
    BIT_STRING, GENERALIZED_TIME, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, PRINTABLE_STRING, Reader,
    SEQUENCE, SET, UTC_TIME, UTF8_STRING, element, explicit, integer,
};
use super::keys::PrivateKey;

/// Fields of a certificate.
pub(super) struct Template {
    pub(super) common_name: Vec<u8>,
    /// As 4 or 16 bytes.
    pub(super) addresses: Vec<Vec<u8>>,
    pub(super) names: Vec<Vec<u8>>,
    pub(super) serial: [u8; 16],
    pub(super) not_before: Time,
    pub(super) not_after: Time,
    pub(super) is_authority: bool,
}

/// Issuer, from its own certificate.
#[derive(Debug)]
pub(super) struct Issuer {
    /// The DER of its name.
    pub(super) name: Vec<u8>,
    pub(super) key_identifier: Option<Vec<u8>>,
    pub(super) public_key: Vec<u8>,
}

/// Contents of object identifiers.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 0x0e];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const AUTHORITY_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 0x23];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTHENTICATION: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT_AUTHENTICATION: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// Writes and signs a certificate; without an issuer it signs itself. The error is Go's.
pub(super) fn create(
    template: &Template,
    issuer: Option<&Issuer>,
    key: &PrivateKey,
    signing_key: &PrivateKey,
) -> Result<Vec<u8>, String> {
    if !signing_key.is_signer() {
        return Err("x509: certificate private key does not implement crypto.Signer".to_owned());
    }
    let public_key = key.public_key()?;
    let subject = name(&template.common_name)?;
    let issuer_name = issuer.map_or(&subject, |issuer| &issuer.name);
    let authority = issuer.filter(|issuer| issuer.name != subject);
    let authority = authority.and_then(|issuer| issuer.key_identifier.as_deref());
    let extensions = extensions(template, &public_key, authority, subject.len() == 2)?;
    if let Some(issuer) = issuer
        && issuer.public_key != signing_key.public_key()?
    {
        return Err("x509: provided PrivateKey doesn't match parent's PublicKey".to_owned());
    }
    let algorithm = signing_key.signature_algorithm();
    let validity = element(
        SEQUENCE,
        &[&time(&template.not_before), &time(&template.not_after)],
    );
    let version = element(explicit(0), &[&integer(&[2])]);
    let to_be_signed = element(
        SEQUENCE,
        &[
            &version,
            &integer(&template.serial),
            &algorithm,
            issuer_name,
            &validity,
            &subject,
            &public_key,
            &element(explicit(3), &[&element(SEQUENCE, &[&extensions])]),
        ],
    );
    let signature = element(BIT_STRING, &[&[0], &signing_key.sign(&to_be_signed)?]);
    Ok(element(SEQUENCE, &[&to_be_signed, &algorithm, &signature]))
}

fn extensions(
    template: &Template,
    public_key: &[u8],
    authority: Option<&[u8]>,
    subject_is_empty: bool,
) -> Result<Vec<u8>, String> {
    // Digital signature and key encipherment; an authority signs certificates too. The first byte counts unused bits.
    let usage: &[u8] = if template.is_authority {
        &[2, 0xa4]
    } else {
        &[5, 0xa0]
    };
    let purposes =
        [SERVER_AUTHENTICATION, CLIENT_AUTHENTICATION].map(|purpose| element(OBJECT_IDENTIFIER, &[purpose]));
    let constraints: &[u8] = if template.is_authority {
        &[0x01, 0x01, 0xff]
    } else {
        &[]
    };
    let mut extensions = [
        extension(KEY_USAGE, true, &element(BIT_STRING, &[usage])),
        extension(
            EXTENDED_KEY_USAGE,
            false,
            &element(SEQUENCE, &[&purposes[0], &purposes[1]]),
        ),
        extension(BASIC_CONSTRAINTS, true, &element(SEQUENCE, &[constraints])),
    ]
    .concat();
    if template.is_authority {
        let identifier = key_identifier(public_key);
        extensions.extend(extension(
            SUBJECT_KEY_IDENTIFIER,
            false,
            &element(OCTET_STRING, &[&identifier]),
        ));
    }
    if let Some(authority) = authority {
        let identifier = element(SEQUENCE, &[&element(0x80, &[authority])]);
        extensions.extend(extension(AUTHORITY_KEY_IDENTIFIER, false, &identifier));
    }
    if !(template.names.is_empty() && template.addresses.is_empty()) {
        let names = alternative_names(template)?;
        extensions.extend(extension(
            ALTERNATIVE_NAMES,
            subject_is_empty,
            &element(SEQUENCE, &[&names]),
        ));
    }
    Ok(extensions)
}

fn extension(identifier: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical: &[u8] = if critical { &[0x01, 0x01, 0xff] } else { &[] };
    let identifier = element(OBJECT_IDENTIFIER, &[identifier]);
    element(
        SEQUENCE,
        &[&identifier, critical, &element(OCTET_STRING, &[value])],
    )
}

fn alternative_names(template: &Template) -> Result<Vec<u8>, String> {
    let mut names = Vec::new();
    for name in &template.names {
        if !name.is_ascii() {
            let mut quoted = Vec::new();
            go_text::quote::quote(name, &mut quoted);
            let quoted = String::from_utf8_lossy(&quoted);
            return Err(format!("x509: {quoted} cannot be encoded as an IA5String"));
        }
        names.extend(element(0x82, &[name]));
    }
    for address in &template.addresses {
        names.extend(element(0x87, &[address]));
    }
    Ok(names)
}

/// The first 20 bytes of the SHA-256 of the key (RFC 7093, method 1).
fn key_identifier(public_key: &[u8]) -> Vec<u8> {
    let mut key = Reader(public_key).inside(SEQUENCE).unwrap_or(Reader(b""));
    key.tagged(SEQUENCE);
    let bits = key.tagged(BIT_STRING).map_or(&b""[..], |bits| bits.contents);
    let bits = bits.get(1..).unwrap_or_default();
    digest::digest(&digest::SHA256, bits).as_ref()[..20].to_vec()
}

fn name(common_name: &[u8]) -> Result<Vec<u8>, String> {
    if common_name.is_empty() {
        return Ok(element(SEQUENCE, &[]));
    }
    if str::from_utf8(common_name).is_err() {
        return Err("asn1: string not valid UTF-8".to_owned());
    }
    let is_printable = |b: &u8| b.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(b);
    let tag = if common_name.iter().all(is_printable) {
        PRINTABLE_STRING
    } else {
        UTF8_STRING
    };
    let attribute = element(
        SEQUENCE,
        &[
            &element(OBJECT_IDENTIFIER, &[COMMON_NAME]),
            &element(tag, &[common_name]),
        ],
    );
    Ok(element(SEQUENCE, &[&element(SET, &[&attribute])]))
}

fn time(time: &Time) -> Vec<u8> {
    let time = time.in_location(Location::UTC);
    match time.year() {
        1950..2050 => element(UTC_TIME, &[&time.format(b"060102150405Z")]),
        _ => element(GENERALIZED_TIME, &[&time.format(b"20060102150405Z")]),
    }
}

/// Reads of a certificate what is needed to sign with its key. The error is Go's.
pub(super) fn parse(der: &[u8]) -> Result<Issuer, String> {
    let mut reader = Reader(der);
    let certificate = reader.inside(SEQUENCE).ok_or("x509: malformed certificate")?;
    if !reader.is_empty() {
        return Err("x509: trailing data".to_owned());
    }
    let mut certificate = certificate;
    let mut signed = certificate
        .inside(SEQUENCE)
        .ok_or("x509: malformed tbs certificate")?;
    signed.tagged(explicit(0));
    signed.tagged(INTEGER).ok_or("x509: malformed serial number")?;
    signed
        .tagged(SEQUENCE)
        .ok_or("x509: malformed signature algorithm identifier")?;
    signed.tagged(SEQUENCE).ok_or("x509: malformed issuer")?;
    signed.tagged(SEQUENCE).ok_or("x509: malformed validity")?;
    // The word is that of Go.
    let subject = signed.tagged(SEQUENCE).ok_or("x509: malformed issuer")?;
    let public_key = signed.tagged(SEQUENCE).ok_or("x509: malformed spki")?;
    Ok(Issuer {
        name: subject.whole.to_vec(),
        key_identifier: subject_key_identifier(signed),
        public_key: public_key.whole.to_vec(),
    })
}

fn subject_key_identifier(mut behind_key: Reader<'_>) -> Option<Vec<u8>> {
    let mut extensions = loop {
        let element = behind_key.any()?;
        if element.tag == explicit(3) {
            break Reader(element.contents).inside(SEQUENCE)?;
        }
    };
    while let Some(mut extension) = extensions.inside(SEQUENCE) {
        let identifier = extension.tagged(OBJECT_IDENTIFIER)?.contents;
        if identifier == SUBJECT_KEY_IDENTIFIER {
            let value = std::iter::from_fn(|| extension.any()).last()?.contents;
            return Some(Reader(value).tagged(OCTET_STRING)?.contents.to_vec());
        }
    }
    None
}
