//! Bech32, in which keys are written (BIP 173, of any length).

use zeroize::Zeroizing;

const DIGITS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const CHECKSUM: usize = 6;

/// It is no Bech32.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Splits a text into its prefix, in the case that it has, and its bytes.
pub(super) fn decode(text: &str) -> Result<(String, Zeroizing<Vec<u8>>), Malformed> {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    if has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) {
        return Err(Malformed);
    }
    let (prefix, data) = text.rsplit_once('1').ok_or(Malformed)?;
    if prefix.is_empty() || data.len() < CHECKSUM || !prefix.bytes().all(|byte| (33..=126).contains(&byte)) {
        return Err(Malformed);
    }
    let digits = data.bytes().map(|byte| digit(byte.to_ascii_lowercase()));
    let digits: Zeroizing<Vec<u8>> = Zeroizing::new(digits.collect::<Option<_>>().ok_or(Malformed)?);
    if !checksum_fits(&prefix.to_ascii_lowercase(), &digits) {
        return Err(Malformed);
    }
    let bytes = bytes(&digits[..digits.len() - CHECKSUM]).ok_or(Malformed)?;
    Ok((prefix.to_owned(), bytes))
}

fn digit(byte: u8) -> Option<u8> {
    let place = DIGITS.iter().position(|digit| *digit == byte)?;
    u8::try_from(place).ok()
}

fn checksum_fits(prefix: &str, digits: &[u8]) -> bool {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let high = prefix.bytes().map(|byte| byte >> 5);
    let low = prefix.bytes().map(|byte| byte & 31);
    let all = high.chain([0]).chain(low).chain(digits.iter().copied());
    let sum = all.fold(1u32, |sum, value| {
        let top = sum >> 25;
        let shifted = (sum & 0x01ff_ffff) << 5 ^ u32::from(value);
        let used = GENERATOR
            .iter()
            .enumerate()
            .filter(|(bit, _)| top >> bit & 1 == 1);
        used.fold(shifted, |sum, (_, generator)| sum ^ generator)
    });
    sum == 1
}

/// From five bits a digit to eight bits a byte. What is left over must be zeros, and less than a digit.
fn bytes(digits: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len() * 5 / 8));
    let (mut bits, mut filled) = (0u32, 0);
    for digit in digits {
        bits = bits << 5 | u32::from(*digit);
        filled += 5;
        if filled >= 8 {
            filled -= 8;
            bytes.push((bits >> filled & 0xff) as u8);
        }
        bits &= (1 << filled) - 1;
    }
    (filled < 5 && bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // BIP 173: test vectors.
        let (prefix, bytes) = decode("A12UEL5L").unwrap();
        assert_eq!((prefix.as_str(), bytes.len()), ("A", 0));
        let (prefix, bytes) = decode("abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw").unwrap();
        assert_eq!(prefix, "abcdef");
        assert_eq!(bytes[..4], [0x00, 0x44, 0x32, 0x14]);
        for text in [
            "a12uel5m",
            "A12uel5l",
            "1qzzfhee",
            "10a06t8",
            "x1b4n0q5v",
            "li1dgmt3",
            "",
            "1",
        ] {
            assert_eq!(decode(text).map(|(prefix, _)| prefix), Err(Malformed), "{text}");
        }
    }
}
