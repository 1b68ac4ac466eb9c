//! The passphrase of old PEM files (`DEK-Info: AES-128-CBC,…`), as `ssh-keygen -m PEM` and old versions of openssl write.
//!
//! The key is one round of MD5 of passphrase and salt; no one should rely on it, but the files are in use.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

use super::error::ParseError;

/// Undoes the encryption. With a wrong passphrase nearly always an error, and sometimes nonsense.
pub(super) fn decrypt(info: Option<&str>, bytes: &[u8], passphrase: &str) -> Result<Vec<u8>, ParseError> {
    let (cipher, iv) = info
        .and_then(|info| info.split_once(','))
        .ok_or(ParseError::Broken)?;
    let (algorithm, length): (&'static Algorithm, usize) = match cipher {
        "AES-128-CBC" => (&AES_128, 16),
        "AES-192-CBC" => (&AES_192, 24),
        "AES-256-CBC" => (&AES_256, 32),
        _ => {
            return Err(ParseError::Unsupported(
                "its encryption is not known or not secure any more",
            ));
        }
    };
    let iv: [u8; 16] = hexadecimal(iv).ok_or(ParseError::Broken)?;
    let key = derive(passphrase.as_bytes(), &iv[..8], length);
    let wrong = |_| ParseError::WrongPassphrase;
    let key = UnboundCipherKey::new(algorithm, &key).map_err(wrong)?;
    let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).map_err(wrong)?;
    let mut bytes = bytes.to_vec();
    let context = DecryptionContext::Iv128(FixedLength::from(iv));
    let plain = key.decrypt(&mut bytes, context).map_err(wrong)?;
    Ok(plain.to_vec())
}

/// OpenSSL's `EVP_BytesToKey` with MD5 and one round.
fn derive(passphrase: &[u8], salt: &[u8], length: usize) -> Vec<u8> {
    let mut key = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    while key.len() < length {
        last = md5::compute([&last, passphrase, salt].concat()).to_vec();
        key.extend_from_slice(&last);
    }
    key.truncate(length);
    key
}

fn hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text.trim(), &mut bytes).ok()?;
    Some(bytes)
}
