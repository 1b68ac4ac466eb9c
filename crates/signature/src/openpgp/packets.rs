//! From bytes to keys and signatures, in the order in which OpenPGP writes them, and what signatures say of themselves.
//!
//! Packets that are not supported are passed over, as in go-crypto: an unknown self-signature is none. A key whose packets
//! contradict each other is left out.

use std::io::Read as _;

use jiff::Timestamp;
use pgp::armor::{BlockType, Dearmor, DearmorOptions};
use pgp::crypto::hash::HashAlgorithm;
use pgp::crypto::public_key::PublicKeyAlgorithm;
use pgp::packet::{Packet, PacketParser, Signature, SignatureVersion, SubpacketData};
use pgp::types::{Fingerprint, KeyId};

use super::certificate::{Certificate, Reading};

/// Keys with more packets than this are not read on; the largest known key has some hundred thousand.
const MAX_PACKETS: usize = 100_000;
const ARMOR: &[u8] = b"-----BEGIN ";

/// Reads a ring, armored or not.
pub(super) fn read_keyring(bytes: &[u8]) -> Result<Vec<Certificate>, String> {
    let bytes = if find(bytes, ARMOR).is_some() {
        dearmor(bytes, &BlockType::PublicKey)?
    } else {
        bytes.to_vec()
    };
    let mut certificates = Vec::new();
    let mut reading: Option<Reading> = None;
    let mut problem = None;
    let mut finish =
        |reading: Option<Reading>, problem: &mut Option<String>| match reading.map(Reading::finish) {
            Some(Ok(certificate)) => certificates.push(certificate),
            Some(Err(error)) => *problem = problem.take().or(Some(error.to_owned())),
            None => {}
        };
    for packet in PacketParser::new(bytes.as_slice()).take(MAX_PACKETS) {
        match packet {
            Ok(Packet::PublicKey(key)) => finish(reading.replace(Reading::new(key)), &mut problem),
            Ok(packet) => {
                if let Some(reading) = &mut reading {
                    reading.add(packet);
                }
            }
            Err(error) => problem = problem.or(Some(error.to_string())),
        }
    }
    finish(reading, &mut problem);
    if certificates.is_empty() {
        return Err(problem.unwrap_or_else(|| "there is no key in it".to_owned()));
    }
    Ok(certificates)
}

/// Reads the signatures of an armored block.
pub(super) fn read_signatures(armored: &[u8]) -> Result<Vec<Signature>, String> {
    let bytes = dearmor(armored, &BlockType::Signature)?;
    let mut signatures = Vec::new();
    for packet in PacketParser::new(bytes.as_slice()).take(MAX_PACKETS) {
        match packet {
            Ok(Packet::Signature(signature)) if is_understood(&signature) => signatures.push(signature),
            Ok(Packet::Signature(_) | Packet::Marker(_)) => {}
            Ok(_) => return Err("there is something else than a signature in it".to_owned()),
            // Of an unknown kind, or the rest of a broken one: neither can be the signature that counts.
            Err(_) => {}
        }
    }
    Ok(signatures)
}

fn dearmor(text: &[u8], wanted: &BlockType) -> Result<Vec<u8>, String> {
    let start = find(text, ARMOR).ok_or("no armored data found")?;
    let options = DearmorOptions::new().set_limit(text.len() + 1);
    let mut block = Dearmor::with_options(&text[start..], options);
    let mut bytes = Vec::new();
    block.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    match &block.typ {
        Some(found) if found == wanted => Ok(bytes),
        Some(found) => Err(format!("expected '{wanted}', got: {found}")),
        None => Err("no armored data found".to_owned()),
    }
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

/// Returns whether a signature about a key counts: all that decides on it is understood, and its hash is not broken.
pub(super) fn is_supported(signature: &Signature) -> bool {
    let hash = signature.hash_alg();
    let has_hash = hash.is_some_and(|hash| is_strong(hash) || hash == HashAlgorithm::Sha1);
    has_hash && is_understood(signature)
}

fn is_understood(signature: &Signature) -> bool {
    let Some(config) = signature.config() else {
        return false;
    };
    let is_known = |data: &SubpacketData| match data {
        SubpacketData::Experimental(..) | SubpacketData::Other(..) => false,
        SubpacketData::ExportableCertification(exportable) => *exportable,
        SubpacketData::EmbeddedSignature(embedded) => is_supported(embedded),
        _ => true,
    };
    let mut subpackets = config.hashed_subpackets();
    matches!(signature.version(), SignatureVersion::V4 | SignatureVersion::V6)
        && is_signing_algorithm(config.pub_alg)
        && subpackets.all(|subpacket| is_known(&subpacket.data) || !is_decisive(subpacket))
}

/// An unknown subpacket matters when it says so itself; what is known and refused always does.
fn is_decisive(subpacket: &pgp::packet::Subpacket) -> bool {
    match subpacket.data {
        SubpacketData::Experimental(..) | SubpacketData::Other(..) => subpacket.is_critical,
        _ => true,
    }
}

fn is_signing_algorithm(algorithm: PublicKeyAlgorithm) -> bool {
    use PublicKeyAlgorithm::{DSA, ECDSA, Ed448, Ed25519, EdDSALegacy, RSA, RSASign};
    matches!(
        algorithm,
        RSA | RSASign | DSA | ECDSA | EdDSALegacy | Ed25519 | Ed448
    )
}

fn is_strong(hash: HashAlgorithm) -> bool {
    use HashAlgorithm::{Sha3_256, Sha3_512, Sha224, Sha256, Sha384, Sha512};
    matches!(hash, Sha224 | Sha256 | Sha384 | Sha512 | Sha3_256 | Sha3_512)
}

pub(super) fn has_strong_hash(signature: &Signature) -> bool {
    signature.hash_alg().is_some_and(is_strong)
}

/// The key that a signature claims to be made with.
pub(super) fn issuer(signature: &Signature) -> Option<KeyId> {
    let by_fingerprint = signature.issuer_fingerprint().into_iter().find_map(key_id);
    by_fingerprint.or_else(|| signature.issuer_key_id().into_iter().next().copied())
}

fn key_id(fingerprint: &Fingerprint) -> Option<KeyId> {
    let bytes = fingerprint.as_bytes();
    let id = match fingerprint {
        Fingerprint::V4(_) => bytes.last_chunk::<8>()?,
        Fingerprint::V6(_) => bytes.first_chunk::<8>()?,
        _ => return None,
    };
    Some(KeyId::new(*id))
}

pub(super) fn has_critical_notation(signature: &Signature) -> bool {
    signature.config().is_some_and(|config| {
        config
            .hashed_subpackets()
            .any(|subpacket| subpacket.is_critical && matches!(subpacket.data, SubpacketData::Notation(_)))
    })
}

/// Returns whether the time of a signature is over, or not there yet.
pub(super) fn is_expired(signature: &Signature, now: Timestamp) -> bool {
    let Some(created) = signature.created() else {
        return true;
    };
    let lifetime = signature
        .signature_expiration_time()
        .map_or(0, pgp::types::Duration::as_secs);
    is_over(created.as_secs(), lifetime, now)
}

/// A lifetime of nothing is one without an end.
pub(super) fn is_over(created: u32, lifetime: u32, now: Timestamp) -> bool {
    let (created, now) = (i64::from(created), now.as_second());
    created > now || (lifetime != 0 && now > created + i64::from(lifetime))
}
