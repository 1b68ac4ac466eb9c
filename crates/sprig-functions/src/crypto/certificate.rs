//! `genCA`, `genSelfSignedCert`, `genSignedCert`, `buildCustomCert`, and the object that they give.

use std::any::Any;
use std::net::IpAddr;

use aws_lc_rs::rsa::KeySize;
use go_template::{Context, Error, Functions, Kind, Object, Str, Type, TypeInfo, Value};
use go_time::{Duration, Location, Time};

use super::keys::PrivateKey;
use super::pem;
use super::x509::{self, Issuer, Template};
use crate::arguments::{add, int, string, text};
use crate::encoding::decode64;
use crate::printed::printed;
use crate::random::fill;

const CERTIFICATE: Type = Type::new(&INFO);
const LIST: Type = Type::LIST_ANY;

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("genCA", &[Type::STRING, Type::INT], |context, arguments| {
                let key = new_key(context)?;
                self_signed(Template::authority(arguments)?, &key)
            }),
            (
                "genCAWithKey",
                &[Type::STRING, Type::INT, Type::STRING],
                |_, arguments| {
                    let key = given_key(arguments, 2)?;
                    self_signed(Template::authority(arguments)?, &key)
                },
            ),
            (
                "genSelfSignedCert",
                &[Type::STRING, LIST, LIST, Type::INT],
                |context, arguments| {
                    let key = new_key(context)?;
                    self_signed(Template::server(arguments)?, &key)
                },
            ),
            (
                "genSelfSignedCertWithKey",
                &[Type::STRING, LIST, LIST, Type::INT, Type::STRING],
                |_, arguments| {
                    let key = given_key(arguments, 4)?;
                    self_signed(Template::server(arguments)?, &key)
                },
            ),
            (
                "genSignedCert",
                &[Type::STRING, LIST, LIST, Type::INT, CERTIFICATE],
                |context, arguments| {
                    let key = new_key(context)?;
                    signed(arguments, &key)
                },
            ),
            (
                "genSignedCertWithKey",
                &[Type::STRING, LIST, LIST, Type::INT, CERTIFICATE, Type::STRING],
                |_, arguments| {
                    let key = given_key(arguments, 5)?;
                    signed(arguments, &key)
                },
            ),
            (
                "buildCustomCert",
                &[Type::STRING, Type::STRING],
                |_, arguments| build(arguments),
            ),
        ],
    );
}

/// A `sprig.certificate`: a certificate and its key, both in PEM.
#[derive(Debug)]
struct Certificate {
    certificate: Str,
    key: Str,
}

static INFO: TypeInfo = TypeInfo {
    named: true,
    ..TypeInfo::plain("sprig.certificate", Kind::Struct)
};

impl Object for Certificate {
    fn type_(&self) -> Type {
        CERTIFICATE
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Cert", self.certificate.clone().into()),
            ("Key", self.key.clone().into()),
        ]
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let other = other.as_any().downcast_ref::<Self>();
        other.is_some_and(|other| other.certificate == self.certificate && other.key == self.key)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Template {
    /// The name and the days of `genCA`.
    fn authority(arguments: &[Value]) -> Result<Self, Error> {
        let mut template = Self::new(string(arguments, 0).to_vec(), int(arguments, 1))?;
        template.is_authority = true;
        Ok(template)
    }

    /// The name, addresses, alternative names and days of the others.
    fn server(arguments: &[Value]) -> Result<Self, Error> {
        let addresses = addresses(arguments.get(1))?;
        let names = alternative_names(arguments.get(2))?;
        let template = Self::new(string(arguments, 0).to_vec(), int(arguments, 3))?;
        Ok(Self {
            addresses,
            names,
            ..template
        })
    }

    fn new(common_name: Vec<u8>, days: i64) -> Result<Self, Error> {
        let mut serial = [0; 16];
        fill(&mut serial)?;
        let now = Time::now(Location::UTC);
        let span = Duration(days.wrapping_mul(24 * Duration::HOUR.0));
        Ok(Self {
            common_name,
            addresses: Vec::new(),
            names: Vec::new(),
            serial,
            not_after: now.add(span),
            not_before: now,
            is_authority: false,
        })
    }
}

fn addresses(list: Option<&Value>) -> Result<Vec<Vec<u8>>, Error> {
    items(list)
        .iter()
        .map(|item| {
            let Value::String(text) = item else {
                return Err(not_a_string("error parsing ip", item)?);
            };
            let parsed = text.as_text().and_then(|text| text.parse().ok());
            match parsed.map(|address: IpAddr| address.to_canonical()) {
                Some(IpAddr::V4(address)) => Ok(address.octets().to_vec()),
                Some(IpAddr::V6(address)) => Ok(address.octets().to_vec()),
                None => Err(Error::new(format!("error parsing ip: {text}"))),
            }
        })
        .collect()
}

fn alternative_names(list: Option<&Value>) -> Result<Vec<Vec<u8>>, Error> {
    items(list)
        .iter()
        .map(|item| match item {
            Value::String(text) => Ok(text.to_vec()),
            item => Err(not_a_string("error processing alternate dns name", item)?),
        })
        .collect()
}

fn items(list: Option<&Value>) -> &[Value] {
    match list {
        Some(Value::List(list)) => list,
        _ => &[],
    }
}

/// The error itself may fail to be worded, where a value is too deep to be printed.
fn not_a_string(what: &str, value: &Value) -> Result<Error, Error> {
    let value = String::from_utf8_lossy(&printed(value)?).into_owned();
    Ok(Error::new(format!("{what}: {value} is not a string")))
}

fn new_key(context: &mut Context<'_>) -> Result<PrivateKey, Error> {
    context.step()?;
    let key = PrivateKey::generate_rsa(KeySize::Rsa2048);
    key.map_err(|error| Error::new(format!("error generating rsa key: {error}")))
}

fn given_key(arguments: &[Value], index: usize) -> Result<PrivateKey, Error> {
    let key = PrivateKey::from_pem(text(arguments, index));
    key.map_err(|error| Error::new(format!("parsing private key: {error}")))
}

fn self_signed(template: Template, key: &PrivateKey) -> Result<Value, Error> {
    made(&template, None, key, key)
}

fn signed(arguments: &[Value], key: &PrivateKey) -> Result<Value, Error> {
    let authority = arguments
        .get(4)
        .and_then(|value| value.as_object::<Certificate>());
    let (certificate, signing_key) = authority.map_or((&b""[..], &b""[..]), |authority| {
        (&*authority.certificate, &*authority.key)
    });
    let block = pem::decode(certificate).ok_or_else(|| Error::new("unable to decode certificate"))?;
    let issuer = x509::parse(&block.contents).map_err(|error| {
        Error::new(format!(
            "error parsing certificate: decodedSignerCert.Bytes: {error}"
        ))
    })?;
    let signing_key = PrivateKey::from_pem(signing_key)
        .map_err(|error| Error::new(format!("error parsing private key: {error}")))?;
    made(&Template::server(arguments)?, Some(&issuer), key, &signing_key)
}

fn made(
    template: &Template,
    issuer: Option<&Issuer>,
    key: &PrivateKey,
    signing_key: &PrivateKey,
) -> Result<Value, Error> {
    let der = x509::create(template, issuer, key, signing_key)
        .map_err(|error| Error::new(format!("error creating certificate: {error}")))?;
    Ok(Value::object(Certificate {
        certificate: pem::encode("CERTIFICATE", &der).into(),
        key: key.to_pem()?.into(),
    }))
}

/// Checks a certificate and a key that are given in base64, and puts them together.
fn build(arguments: &[Value]) -> Result<Value, Error> {
    let decoded = |index, what: &str| {
        let bytes = decode64(text(arguments, index));
        bytes.map_err(|_| Error::new(format!("unable to decode base64 {what}")))
    };
    let certificate = decoded(0, "certificate")?;
    let key = decoded(1, "private key")?;
    let block = pem::decode(&certificate).ok_or_else(|| Error::new("unable to decode certificate"))?;
    x509::parse(&block.contents)
        .map_err(|error| Error::new(format!("error parsing certificate: decodedCert.Bytes: {error}")))?;
    PrivateKey::from_pem(&key).map_err(|error| Error::new(format!("error parsing private key: {error}")))?;
    Ok(Value::object(Certificate {
        certificate: certificate.into(),
        key: key.into(),
    }))
}

#[cfg(test)]
mod tests;
