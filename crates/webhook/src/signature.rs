//! Proofs that a caller knows the Receiver's token.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, HMAC_SHA512, Key};

use crate::call::Refused;

/// Checks `sha256=<hex>`, the signature of a body, as GitHub and others write it. An empty token signs nothing: anybody
/// knows it.
pub(crate) fn verify(header: &[u8], body: &[u8], token: &[u8]) -> Result<(), Refused> {
    if header.is_empty() {
        return Err(Refused::new("missing signature"));
    }
    let equals = header.iter().position(|byte| *byte == b'=');
    let Some((algorithm, digits)) = equals.map(|at| (&header[..at], &header[at + 1..])) else {
        return Err(Refused::new("error parsing signature"));
    };
    let algorithm = match algorithm {
        b"sha1" => HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        b"sha256" => HMAC_SHA256,
        b"sha512" => HMAC_SHA512,
        _ => return Err(Refused::new("unknown hash type prefix")),
    };
    let signature = hex::decode(digits).map_err(|_| Refused::new("error decoding signature"))?;
    hmac::verify(&Key::new(algorithm, token), body, &signature)
        .map_err(|_| Refused::new("payload signature check failed"))
}

/// Checks a bare signature by SHA-1 in small hexadecimal digits, as Nexus writes it.
pub(crate) fn verify_sha1_digits(digits: &[u8], body: &[u8], token: &[u8]) -> bool {
    let expected = hmac::sign(&Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, token), body);
    are_equal(digits, hex::encode(expected).as_bytes())
}

/// Compares what a caller sent with a secret, in a time that tells nothing of it, its length included.
pub(crate) fn are_equal(sent: &[u8], secret: &[u8]) -> bool {
    let (sent, secret) = (digest(&SHA256, sent), digest(&SHA256, secret));
    verify_slices_are_equal(sent.as_ref(), secret.as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // printf 'payload' | openssl dgst -<algorithm> -hmac 'token'
    const SHA1: &str = "sha1=96a7c8c7d8ec1ad1d4fd8fd6ee3d2ae1ec1b4d5c";

    fn signed(algorithm: hmac::Algorithm, prefix: &str) -> String {
        let tag = hmac::sign(&Key::new(algorithm, b"token"), b"payload");
        format!("{prefix}={}", hex::encode(tag))
    }

    #[test]
    fn each_algorithm_is_verified() {
        for (algorithm, prefix) in [
            (HMAC_SHA1_FOR_LEGACY_USE_ONLY, "sha1"),
            (HMAC_SHA256, "sha256"),
            (HMAC_SHA512, "sha512"),
        ] {
            let header = signed(algorithm, prefix);
            assert_eq!(verify(header.as_bytes(), b"payload", b"token"), Ok(()));
            let upper = format!("{prefix}={}", header[prefix.len() + 1..].to_uppercase());
            assert_eq!(verify(upper.as_bytes(), b"payload", b"token"), Ok(()));
            assert!(verify(header.as_bytes(), b"payloads", b"token").is_err());
            assert!(verify(header.as_bytes(), b"payload", b"Token").is_err());
            assert!(verify(&header.as_bytes()[..header.len() - 2], b"payload", b"token").is_err());
        }
    }

    #[test]
    fn what_is_no_signature_is_refused_in_few_words() {
        for (header, reason) in [
            ("", "missing signature"),
            ("abc", "error parsing signature"),
            ("md5=00", "unknown hash type prefix"),
            ("SHA1=00", "unknown hash type prefix"),
            ("sha1=0", "error decoding signature"),
            ("sha1=zz", "error decoding signature"),
            ("sha1=", "payload signature check failed"),
            (SHA1, "payload signature check failed"),
        ] {
            let refused = verify(header.as_bytes(), b"payload", b"token");
            assert_eq!(refused, Err(Refused::new(reason)), "{header}");
        }
    }

    #[test]
    fn secrets_are_equal_or_not() {
        assert!(are_equal(b"secret", b"secret"));
        assert!(!are_equal(b"secret", b"secre") && !are_equal(b"", b"secret"));
    }
}
