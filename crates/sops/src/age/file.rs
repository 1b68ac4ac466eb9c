//! A file: a header with a part for each recipient, and the payload in chunks.

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::hmac;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

use super::Problem;

const INTRO: &str = "age-encryption.org/v1\n";
const FOOTER: &str = "---";
const COLUMNS: usize = 64;
const CHUNK: usize = 64 << 10;
const TAG: usize = 16;
const NONCE: usize = 16;
/// The length of a file's key.
pub(super) const FILE_KEY: usize = 16;

const RAW: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// The part of one recipient.
pub(super) struct Stanza {
    pub(super) kind: String,
    pub(super) arguments: Vec<String>,
    pub(super) body: Vec<u8>,
}

struct Header<'a> {
    stanzas: Vec<Stanza>,
    /// Text that the code authenticates.
    text: &'a str,
    mac: Vec<u8>,
    payload: &'a [u8],
}

/// Opens a file with the key that its header's parts give.
pub(super) fn open(
    file: &[u8],
    file_key: impl FnOnce(&[Stanza]) -> Result<Zeroizing<Vec<u8>>, Problem>,
) -> Result<Zeroizing<Vec<u8>>, Problem> {
    let header = header(file)?;
    let key = file_key(&header.stanzas)?;
    let mac_key = derive(&key, b"", b"header")?;
    let mac_key = hmac::Key::new(hmac::HMAC_SHA256, &mac_key[..]);
    hmac::verify(&mac_key, header.text.as_bytes(), &header.mac).map_err(|_| "bad header MAC")?;
    let (nonce, chunks) = header
        .payload
        .split_at_checked(NONCE)
        .ok_or("failed to read nonce")?;
    let key = derive(&key, nonce, b"payload")?;
    payload(&key, chunks)
}

/// Encrypts a content for one recipient, who gets the file's key wrapped.
pub(super) fn seal(
    content: &[u8],
    wrap: impl FnOnce(&[u8; FILE_KEY]) -> Result<Stanza, Problem>,
) -> Result<Vec<u8>, Problem> {
    let mut key = Zeroizing::new([0; FILE_KEY]);
    random(&mut key[..])?;
    let stanza = wrap(&key)?;
    let mut text = format!("{INTRO}-> {}", stanza.kind);
    for argument in &stanza.arguments {
        text.push(' ');
        text.push_str(argument);
    }
    text.push('\n');
    let body = encode(&stanza.body);
    let mut rest = body.as_str();
    while rest.len() >= COLUMNS {
        let (line, behind) = rest.split_at(COLUMNS);
        text.push_str(line);
        text.push('\n');
        rest = behind;
    }
    // The last line is shorter than the others, and empty if need be.
    text.push_str(rest);
    text.push('\n');
    text.push_str(FOOTER);
    let mac_key = derive(&key[..], b"", b"header")?;
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &mac_key[..]), text.as_bytes());
    let mut file = format!("{text} {}\n", encode(mac.as_ref())).into_bytes();
    let mut nonce = [0; NONCE];
    random(&mut nonce)?;
    file.extend(nonce);
    let key = derive(&key[..], &nonce, b"payload")?;
    let chunks: Vec<&[u8]> = if content.is_empty() {
        vec![content]
    } else {
        content.chunks(CHUNK).collect()
    };
    for (number, chunk) in chunks.iter().enumerate() {
        file.extend(seal_with(
            &key,
            chunk_nonce(number, number + 1 == chunks.len()),
            chunk,
        )?);
    }
    Ok(file)
}

/// Fills with random bytes.
pub(super) fn random(bytes: &mut [u8]) -> Result<(), Problem> {
    rand::fill(bytes).map_err(|_| "there are no random numbers")
}

fn header(file: &[u8]) -> Result<Header<'_>, Problem> {
    const MALFORMED: Problem = "failed to read header: parsing age header: malformed";
    // The payload is no text; the header ends with the line that begins with its footer.
    let end = footer_end(file).ok_or(MALFORMED)?;
    let text = std::str::from_utf8(&file[..end]).map_err(|_| MALFORMED)?;
    let mut lines = text.strip_prefix(INTRO).ok_or(MALFORMED)?.split_inclusive('\n');
    let mut stanzas = Vec::new();
    loop {
        let line = lines.next().ok_or(MALFORMED)?;
        if let Some(mac) = line.strip_prefix("--- ") {
            let mac = mac.strip_suffix('\n').and_then(decode).ok_or(MALFORMED)?;
            let is_all = lines.next().is_none() && mac.len() == 32;
            let signed = &text[..text.len() - line.len() + FOOTER.len()];
            return is_all
                .then_some(Header {
                    stanzas,
                    text: signed,
                    mac,
                    payload: &file[end..],
                })
                .ok_or(MALFORMED);
        }
        stanzas.push(stanza(line, &mut lines).ok_or(MALFORMED)?);
    }
}

/// Where the line of the footer ends.
fn footer_end(file: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if line.starts_with(FOOTER.as_bytes()) {
            return line.ends_with(b"\n").then_some(at);
        }
    }
    None
}

fn stanza<'a>(line: &str, lines: &mut impl Iterator<Item = &'a str>) -> Option<Stanza> {
    let mut words = line.strip_suffix('\n')?.strip_prefix("-> ")?.split(' ');
    let words: Vec<String> = words
        .all(|word| !word.is_empty() && word.bytes().all(|byte| (33..=126).contains(&byte)))
        .then(|| {
            line.trim_end_matches('\n')[3..]
                .split(' ')
                .map(str::to_owned)
                .collect()
        })?;
    let (kind, arguments) = words.split_first()?;
    let mut body = Vec::new();
    loop {
        let line = lines.next()?.strip_suffix('\n')?;
        if line.len() > COLUMNS {
            return None;
        }
        body.extend(decode(line)?);
        if line.len() < COLUMNS {
            return Some(Stanza {
                kind: kind.clone(),
                arguments: arguments.to_vec(),
                body,
            });
        }
    }
}

/// Base64 without padding, in its only form.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    RAW.decode(text).ok()
}

pub(super) fn encode(bytes: &[u8]) -> String {
    RAW.encode(bytes)
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

/// A key of 32 bytes, by HKDF with SHA-256.
pub(super) fn derive(secret: &[u8], salt: &[u8], purpose: &[u8]) -> Result<Zeroizing<[u8; 32]>, Problem> {
    let mut key = Zeroizing::new([0; 32]);
    let extracted = Salt::new(HKDF_SHA256, salt).extract(secret);
    let purpose = [purpose];
    let expanded = extracted.expand(&purpose, Bytes(32));
    let filled = expanded.and_then(|expanded| expanded.fill(&mut key[..]));
    filled.map_err(|_| "failed to derive a key")?;
    Ok(key)
}

/// Opens what was sealed with ChaCha20-Poly1305; None when it was with another key.
pub(super) fn unseal(key: &[u8; 32], nonce: [u8; 12], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).ok()?);
    let mut buffer = Zeroizing::new(sealed.to_vec());
    let nonce = Nonce::assume_unique_for_key(nonce);
    let length = key.open_in_place(nonce, Aad::empty(), &mut buffer).ok()?.len();
    buffer.truncate(length);
    Some(buffer)
}

/// Seals with ChaCha20-Poly1305.
pub(super) fn seal_with(key: &[u8; 32], nonce: [u8; 12], plain: &[u8]) -> Result<Vec<u8>, Problem> {
    const FAILED: Problem = "failed to encrypt";
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).map_err(|_| FAILED)?);
    let mut buffer = plain.to_vec();
    let sealed = key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut buffer);
    sealed.map_err(|_| FAILED)?;
    Ok(buffer)
}

fn chunk_nonce(number: usize, is_last: bool) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[3..11].copy_from_slice(&(number as u64).to_be_bytes());
    nonce[11] = u8::from(is_last);
    nonce
}

/// Full chunks, and a last one that is empty only if it is the only one.
fn payload(key: &[u8; 32], chunks: &[u8]) -> Result<Zeroizing<Vec<u8>>, Problem> {
    const FAILED: Problem = "failed to decrypt and authenticate payload chunk";
    let mut plain = Zeroizing::new(Vec::with_capacity(chunks.len()));
    let last = chunks.len().saturating_sub(1) / (CHUNK + TAG);
    for number in 0..=last {
        let begin = number * (CHUNK + TAG);
        let end = chunks.len().min(begin + CHUNK + TAG);
        let nonce = chunk_nonce(number, number == last);
        let chunk = unseal(key, nonce, &chunks[begin..end]).ok_or(FAILED)?;
        if chunk.is_empty() && number > 0 {
            return Err("the last chunk is empty");
        }
        plain.extend_from_slice(&chunk);
    }
    Ok(plain)
}
