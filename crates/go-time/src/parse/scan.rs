//! Takes small things from the front of a text.

/// Skips what stands before an element; a run of spaces is as good as another. The error is where it stops to fit.
pub(super) fn skip<'a>(mut text: &'a [u8], mut prefix: &[u8]) -> Result<&'a [u8], &'a [u8]> {
    while let Some((&first, after)) = prefix.split_first() {
        if first == b' ' {
            if text.first().is_some_and(|&b| b != b' ') {
                return Err(text);
            }
            prefix = cut_spaces(prefix);
            text = cut_spaces(text);
            continue;
        }
        text = match text.split_first() {
            Some((&b, rest)) if b == first => rest,
            _ => return Err(text),
        };
        prefix = after;
    }
    Ok(text)
}

fn cut_spaces(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|&&b| b == b' ').count()..]
}

/// A number of one or two digits; `fixed` demands two.
pub(super) fn two_digits(text: &[u8], fixed: bool) -> Option<(u32, &[u8])> {
    number(text, 2, if fixed { 2 } else { 1 })
}

/// A number of one to three digits; `fixed` demands three.
pub(super) fn three_digits(text: &[u8], fixed: bool) -> Option<(u32, &[u8])> {
    number(text, 3, if fixed { 3 } else { 1 })
}

fn number(text: &[u8], most: usize, least: usize) -> Option<(u32, &[u8])> {
    let length = text.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
    if length < least {
        return None;
    }
    let (digits, rest) = text.split_at(length);
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    Some((value, rest))
}

/// Which of the names stands first, whatever its case; the first `length` letters of each count.
pub(super) fn name<'a>(text: &'a [u8], names: &[&str], length: Option<usize>) -> Option<(u32, &'a [u8])> {
    names.iter().zip(0..).find_map(|(name, index)| {
        let name = &name[..length.unwrap_or(name.len())];
        let (start, rest) = text.split_at_checked(name.len())?;
        start
            .eq_ignore_ascii_case(name.as_bytes())
            .then_some((index, rest))
    })
}

/// A number with an optional sign, all of the text.
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [sign @ (b'-' | b'+'), digits @ ..] => (*sign == b'-', digits),
        _ => (false, text),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = crate::duration::leading_integer(digits)?.cast_signed();
    Some(if negative { value.wrapping_neg() } else { value })
}

/// How long the abbreviation of a zone is that stands first. There is no list of them: Go goes by their look.
pub(super) fn zone_name(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    // The only ones with a small letter.
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_offset(rest));
    }
    if matches!(text[0], b'+' | b'-') {
        return Some(signed_offset(text)).filter(|&length| length > 0);
    }
    let capitals = text.iter().take(6).take_while(|b| b.is_ascii_uppercase()).count();
    match capitals {
        3 => Some(3),
        4 if text[3] == b'T' || text.starts_with(b"WITA") => Some(4),
        5 if text[4] == b'T' => Some(5),
        _ => None,
    }
}

/// The length of an offset such as `+03`; 0 when there is none.
fn signed_offset(text: &[u8]) -> usize {
    let Some((b'+' | b'-', rest)) = text.split_first() else {
        return 0;
    };
    let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    match crate::duration::leading_integer(&rest[..length]) {
        Some(0..=23) if length > 0 => 1 + length,
        _ => 0,
    }
}
