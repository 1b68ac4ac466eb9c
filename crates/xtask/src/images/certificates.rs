//! The certificate authorities that browsers trust, at the version in Cargo.lock: what a machine has would differ from place to place.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// As OpenSSL and others read them from `/etc/ssl/certs/ca-certificates.crt`.
pub(super) fn pem() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(64));
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}
