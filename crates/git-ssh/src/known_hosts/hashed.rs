//! A hashed name, `|1|salt|hash`: the hash is HMAC-SHA1 of the name, keyed with the salt.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A name that can be compared, and not read.
#[derive(Debug, Clone)]
pub(super) struct HashedName {
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl HashedName {
    pub(super) fn read(text: &str) -> Result<Self, &'static str> {
        let parts: Vec<&str> = text.split('|').collect();
        let [_, version, salt, hash] = parts.as_slice() else {
            return Err("its hashed name has not three parts");
        };
        if *version != "1" {
            return Err("its name is hashed in an unknown way");
        }
        let decode = |part: &str| STANDARD.decode(part).map_err(|_| "its hashed name is not base64");
        Ok(Self {
            salt: decode(salt)?,
            hash: decode(hash)?,
        })
    }

    /// The host in lower case. OpenSSH hashes the port with the name unless it is ssh's own.
    pub(super) fn is(&self, host: &str, port: u16) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.salt);
        let name = if port == super::port::DEFAULT_PORT {
            host.to_owned()
        } else {
            format!("[{host}]:{port}")
        };
        hmac::verify(&key, name.as_bytes(), &self.hash).is_ok()
    }
}
