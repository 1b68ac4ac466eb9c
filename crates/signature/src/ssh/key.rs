//! Public keys of SSH, and whether they made a signature: Ed25519, ECDSA, RSA with SHA-2, and the two kinds that live in
//! hardware, whose signature also says that someone touched it.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    EcdsaVerificationAlgorithm, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::wire::Reader;

const SK_ED25519: &str = "sk-ssh-ed25519@openssh.com";
const SK_ECDSA: &str = "sk-ecdsa-sha2-nistp256@openssh.com";
/// Someone was there.
const TOUCHED: u8 = 1;
const BAD: &str = "the signature is not one over this content";
const OTHER_ALGORITHM: &str = "the signature's algorithm is not the key's, or uses SHA-1";
const SHORT_RSA: usize = 2048 / 8;

/// A public key.
pub(super) struct PublicKey {
    blob: Vec<u8>,
    kind: Kind,
}

enum Kind {
    Ed25519(Vec<u8>),
    Ecdsa(&'static Curve, Vec<u8>),
    Rsa { exponent: Vec<u8>, modulus: Vec<u8> },
    HardwareEd25519 { key: Vec<u8>, application: Vec<u8> },
    HardwareEcdsa { point: Vec<u8>, application: Vec<u8> },
}

struct Curve {
    key_type: &'static str,
    name: &'static str,
    size: usize,
    algorithm: &'static EcdsaVerificationAlgorithm,
}

static CURVES: [Curve; 3] = [
    Curve {
        key_type: "ecdsa-sha2-nistp256",
        name: "nistp256",
        size: 32,
        algorithm: &ECDSA_P256_SHA256_FIXED,
    },
    Curve {
        key_type: "ecdsa-sha2-nistp384",
        name: "nistp384",
        size: 48,
        algorithm: &ECDSA_P384_SHA384_FIXED,
    },
    Curve {
        key_type: "ecdsa-sha2-nistp521",
        name: "nistp521",
        size: 66,
        algorithm: &ECDSA_P521_SHA512_FIXED,
    },
];

impl PublicKey {
    /// Reads a key as it stands in signatures and, in base64, in lists. None for kinds that are not supported.
    pub(super) fn read(blob: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(blob);
        let key_type = std::str::from_utf8(reader.text()?).ok()?;
        let kind = match key_type {
            "ssh-ed25519" => Kind::Ed25519(reader.text()?.to_vec()),
            "ssh-rsa" => Kind::Rsa {
                exponent: reader.integer()?.to_vec(),
                modulus: reader.integer()?.to_vec(),
            },
            SK_ED25519 => Kind::HardwareEd25519 {
                key: reader.text()?.to_vec(),
                application: reader.text()?.to_vec(),
            },
            SK_ECDSA => {
                let [p256, ..] = &CURVES;
                (reader.text()? == p256.name.as_bytes()).then_some(())?;
                Kind::HardwareEcdsa {
                    point: reader.text()?.to_vec(),
                    application: reader.text()?.to_vec(),
                }
            }
            _ => {
                let curve = CURVES.iter().find(|curve| curve.key_type == key_type)?;
                (reader.text()? == curve.name.as_bytes()).then_some(())?;
                Kind::Ecdsa(curve, reader.text()?.to_vec())
            }
        };
        reader.is_empty().then(|| Self {
            blob: blob.to_vec(),
            kind,
        })
    }

    /// As it was read.
    pub(super) fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// As `ssh-keygen -l` prints it.
    pub(super) fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(digest(&SHA256, &self.blob)))
    }

    /// Why this key did not make the signature; None when it did.
    pub(super) fn problem(
        &self,
        algorithm: &[u8],
        signature: &[u8],
        rest: &[u8],
        signed: &[u8],
    ) -> Option<&'static str> {
        let is_hardware = matches!(
            self.kind,
            Kind::HardwareEd25519 { .. } | Kind::HardwareEcdsa { .. }
        );
        if !is_hardware && !rest.is_empty() {
            return Some(BAD);
        }
        let outcome = match &self.kind {
            Kind::Rsa { exponent, modulus } => rsa(exponent, modulus, algorithm, signature, signed),
            _ if Some(algorithm) != Reader::new(&self.blob).text() => Err(OTHER_ALGORITHM),
            Kind::Ed25519(key) => ed25519(key, signature, signed),
            Kind::Ecdsa(curve, point) => ecdsa(curve, point, signature, signed),
            Kind::HardwareEd25519 { key, application } => {
                touched(application, rest, signed).and_then(|signed| ed25519(key, signature, &signed))
            }
            Kind::HardwareEcdsa { point, application } => touched(application, rest, signed)
                .and_then(|signed| ecdsa(&CURVES[0], point, signature, &signed)),
        };
        outcome.err()
    }
}

type Outcome<T = ()> = Result<T, &'static str>;

fn ed25519(key: &[u8], signature: &[u8], signed: &[u8]) -> Outcome {
    UnparsedPublicKey::new(&ED25519, key)
        .verify(signed, signature)
        .map_err(|_| BAD)
}

fn ecdsa(curve: &Curve, point: &[u8], signature: &[u8], signed: &[u8]) -> Outcome {
    let mut reader = Reader::new(signature);
    let mut padded = Vec::with_capacity(2 * curve.size);
    for _ in 0..2 {
        let number = reader
            .integer()
            .filter(|number| number.len() <= curve.size)
            .ok_or(BAD)?;
        padded.resize(padded.len() + curve.size - number.len(), 0);
        padded.extend_from_slice(number);
    }
    if !reader.is_empty() {
        return Err(BAD);
    }
    UnparsedPublicKey::new(curve.algorithm, point)
        .verify(signed, &padded)
        .map_err(|_| BAD)
}

fn rsa(exponent: &[u8], modulus: &[u8], algorithm: &[u8], signature: &[u8], signed: &[u8]) -> Outcome {
    let parameters = match algorithm {
        b"rsa-sha2-256" => &RSA_PKCS1_2048_8192_SHA256,
        b"rsa-sha2-512" => &RSA_PKCS1_2048_8192_SHA512,
        _ => return Err(OTHER_ALGORITHM),
    };
    if modulus.len() < SHORT_RSA {
        return Err("RSA keys below 2048 bits are not safe");
    }
    // Some signers leave out the zeros in front.
    let missing = modulus.len().checked_sub(signature.len()).ok_or(BAD)?;
    let padded = [vec![0; missing], signature.to_vec()].concat();
    let components = PublicKeyComponents {
        n: modulus,
        e: exponent,
    };
    components.verify(parameters, signed, &padded).map_err(|_| BAD)
}

/// Builds the text that a key in hardware signs instead: its application, the touch, a counter, and the
/// content.
fn touched(application: &[u8], rest: &[u8], signed: &[u8]) -> Outcome<Vec<u8>> {
    let [flags, _, _, _, _] = rest else {
        return Err(BAD);
    };
    if flags & TOUCHED == 0 {
        return Err("nobody touched the key when it signed");
    }
    let (application, content) = (digest(&SHA256, application), digest(&SHA256, signed));
    Ok([application.as_ref(), rest, content.as_ref()].concat())
}
