//! Shamir's secret sharing over bytes, as SOPS has it from HashiCorp: the last byte of a part is its place.

use zeroize::Zeroizing;

/// Puts a secret together from enough of its parts. From too few, or others, it makes something else.
pub(crate) fn combine(parts: &[Zeroizing<Vec<u8>>]) -> Result<Zeroizing<Vec<u8>>, &'static str> {
    let length = parts.first().map_or(0, |part| part.len());
    if parts.len() < 2 {
        return Err("less than two parts cannot be used to reconstruct the secret");
    }
    if length < 2 {
        return Err("parts must be at least two bytes");
    }
    if parts.iter().any(|part| part.len() != length) {
        return Err("all parts must be the same length");
    }
    let places: Vec<u8> = parts.iter().map(|part| part[length - 1]).collect();
    if (1..places.len()).any(|at| places[..at].contains(&places[at])) {
        return Err("duplicate part detected");
    }
    let weights: Vec<u8> = (0..places.len()).map(|at| weight(&places, at)).collect();
    let byte = |at: usize| {
        let terms = parts
            .iter()
            .zip(&weights)
            .map(|(part, weight)| multiply(part[at], *weight));
        terms.fold(0, |sum, term| sum ^ term)
    };
    Ok(Zeroizing::new((0..length - 1).map(byte).collect()))
}

/// Weight of the part at this position, at zero: Lagrange's basis polynomial.
fn weight(places: &[u8], at: usize) -> u8 {
    let others = places.iter().enumerate().filter(|(other, _)| *other != at);
    others.fold(1, |product, (_, place)| {
        multiply(product, multiply(*place, inverse(*place ^ places[at])))
    })
}

/// Multiplies in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1, in constant time.
fn multiply(left: u8, right: u8) -> u8 {
    (0..8).rev().fold(0u8, |sum, bit| {
        let reduced = (sum >> 7).wrapping_neg() & 0x1b;
        let term = (right >> bit & 1).wrapping_neg() & left;
        sum << 1 ^ reduced ^ term
    })
}

/// The inverse is the 254th power.
fn inverse(byte: u8) -> u8 {
    let mut power = byte;
    for _ in 0..6 {
        power = multiply(multiply(power, power), byte);
    }
    multiply(power, power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(bytes.to_vec())
    }

    #[test]
    fn every_byte_but_zero_has_an_inverse() {
        for byte in 1..=255 {
            assert_eq!(multiply(byte, inverse(byte)), 1, "{byte}");
        }
        assert_eq!(multiply(0x57, 0x83), 0xc1); // FIPS 197, 4.2
    }

    #[test]
    fn a_line_goes_through_the_secret() {
        // y = 0x2a + 7x at the places 1 and 3.
        let parts = [part(&[0x2a ^ 7, 1]), part(&[0x2a ^ multiply(7, 3), 3])];
        assert_eq!(combine(&parts).unwrap().as_slice(), [0x2a]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        for parts in [
            vec![part(&[1, 1])],
            vec![part(&[1, 1]), part(&[2, 1])],
            vec![part(&[1, 1]), part(&[2, 2, 2])],
            vec![part(&[1]), part(&[2])],
            vec![],
        ] {
            assert!(combine(&parts).is_err());
        }
    }
}
