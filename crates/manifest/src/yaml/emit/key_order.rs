//! The order in which go-yaml writes the keys of a map.

use std::cmp::Ordering;

/// go-yaml's order of keys: letters after other characters, and numbers inside by their value (`a2` before `a10`).
pub(super) fn compare_keys(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        return compare_characters(a.as_bytes(), b.as_bytes());
    }
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    compare_characters(&a, &b)
}

fn compare_characters<C: Copy + Into<char> + Ord>(a: &[C], b: &[C]) -> Ordering {
    let Some(at) = a.iter().zip(b).position(|(x, y)| x != y) else {
        return a.len().cmp(&b.len());
    };
    let (x, y): (char, char) = (a[at].into(), b[at].into());
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let leading = leading_nonzero_digit(a, b, at);
    let (a_number, a_end) = number_from(a, at, leading);
    let (b_number, b_end) = number_from(b, at, leading);
    a_number.cmp(&b_number).then(a_end.cmp(&b_end)).then(x.cmp(&y))
}

/// A zero inside a number counts: the digits before it are the same in both, and start the number if one is not zero.
fn leading_nonzero_digit<C: Copy + Into<char>>(a: &[C], b: &[C], at: usize) -> i64 {
    if a[at].into() != '0' && b[at].into() != '0' {
        return 0;
    }
    let before = a[..at].iter().rev().map(|c| (*c).into());
    let digits_before = before.take_while(char::is_ascii_digit);
    i64::from(digits_before.into_iter().any(|c| c != '0'))
}

fn number_from<C: Copy + Into<char>>(text: &[C], from: usize, start: i64) -> (i64, usize) {
    let mut number = start;
    let mut at = from;
    while let Some(digit) = text.get(at).and_then(|c| (*c).into().to_digit(10)) {
        // Go's int64 wraps around as well.
        number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    (number, at)
}
