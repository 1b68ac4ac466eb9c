//! Matchers: whether a text fits as a whole, and where in a text something that fits starts and may end.

use std::cell::Cell;

use go_text::rune::decode;

/// How a part of a pattern is matched.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    /// No separators.
    Any,
    /// Anything.
    Super,
    /// One character, no separator.
    Single,
    Nothing,
    Text(Vec<u8>),
    List {
        characters: Vec<char>,
        not: bool,
    },
    Range {
        low: char,
        high: char,
        not: bool,
    },
    /// At least, at most so many characters.
    Min(usize),
    Max(usize),
    Contains(Vec<u8>),
    ContainsNot(Vec<u8>),
    Prefix(Vec<u8>),
    Suffix(Vec<u8>),
    PrefixSuffix(Vec<u8>, Vec<u8>),
    /// A text and behind it, or before it, no separators.
    PrefixAny(Vec<u8>),
    SuffixAny(Vec<u8>),
    AnyOf(Vec<Matcher>),
    EveryOf(Vec<Matcher>),
    /// Matchers of known lengths, and their sum.
    Row(Vec<Matcher>, usize),
    Branch(Box<Branch>),
}

/// Something to look for, and what must be to its left and right.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) value: Matcher,
    pub(super) left: Option<Matcher>,
    pub(super) right: Option<Matcher>,
    length: Option<usize>,
}

impl Branch {
    pub(super) fn matcher(value: Matcher, left: Option<Matcher>, right: Option<Matcher>) -> Matcher {
        let side = |matcher: &Option<Matcher>| matcher.as_ref().map_or(Some(0), Matcher::length);
        let length = [value.length(), side(&left), side(&right)].into_iter().sum();
        Matcher::Branch(Box::new(Self {
            value,
            left,
            right,
            length,
        }))
    }
}

/// Backtracking can take a power of the name's length.
const MAX_STEPS: usize = 200_000;

/// Where something starts and the lengths that it may have.
type Found = Option<(usize, Vec<usize>)>;

impl Matcher {
    /// Returns whether the text fits as a whole; no, too, if that cannot be told in time.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.fits(text, &Cell::new(MAX_STEPS))
    }

    /// The number of characters, where it is known. Of alternatives Go forgets unknown ones at the beginning.
    pub(super) fn length(&self) -> Option<usize> {
        match self {
            Self::Single | Self::List { .. } | Self::Range { .. } => Some(1),
            Self::Nothing => Some(0),
            Self::Text(text) => Some(characters(text).count()),
            Self::Row(_, length) => Some(*length),
            Self::Branch(branch) => branch.length,
            Self::AnyOf(matchers) => {
                let mut length = None;
                for matcher in matchers {
                    match (length, matcher.length()) {
                        (None, other) => length = other,
                        (Some(one), Some(other)) if one == other => {}
                        _ => return None,
                    }
                }
                length
            }
            _ => None,
        }
    }

    fn fits(&self, text: &[u8], steps: &Cell<usize>) -> bool {
        let Some(left) = steps.get().checked_sub(1) else {
            return false;
        };
        steps.set(left);
        match self {
            Self::Any => !text.contains(&b'/'),
            Self::Super => true,
            Self::Single => only(text).is_some_and(|character| character != '/'),
            Self::Nothing => text.is_empty(),
            Self::Text(wanted) => text == wanted,
            Self::List { characters, not } => only(text).is_some_and(|c| characters.contains(&c) != *not),
            Self::Range { low, high, not } => only(text).is_some_and(|c| (*low..=*high).contains(&c) != *not),
            Self::Min(limit) => characters(text).take(*limit).count() == *limit,
            Self::Max(limit) => characters(text).take(limit + 1).count() <= *limit,
            Self::Contains(needle) => find(text, needle).is_some(),
            Self::ContainsNot(needle) => find(text, needle).is_none(),
            Self::Prefix(prefix) => text.starts_with(prefix),
            Self::Suffix(suffix) => text.ends_with(suffix),
            Self::PrefixSuffix(prefix, suffix) => text.starts_with(prefix) && text.ends_with(suffix),
            Self::PrefixAny(prefix) => text
                .strip_prefix(prefix.as_slice())
                .is_some_and(|rest| !rest.contains(&b'/')),
            Self::SuffixAny(suffix) => text
                .strip_suffix(suffix.as_slice())
                .is_some_and(|rest| !rest.contains(&b'/')),
            Self::AnyOf(matchers) => matchers.iter().any(|matcher| matcher.fits(text, steps)),
            Self::EveryOf(matchers) => matchers.iter().all(|matcher| matcher.fits(text, steps)),
            Self::Row(matchers, length) => {
                characters(text).take(length + 1).count() == *length && row_fits(matchers, text, steps)
            }
            Self::Branch(branch) => branch_fits(branch, text, steps),
        }
    }

    /// The first place from which on this fits.
    fn find(&self, text: &[u8], steps: &Cell<usize>) -> Found {
        match self {
            Self::Any => {
                let end = text.iter().position(|c| *c == b'/').unwrap_or(text.len());
                Some((0, boundaries(&text[..end], 0)))
            }
            Self::Super => Some((0, boundaries(text, 0))),
            Self::Single => find_character(text, |c| c != '/'),
            Self::Nothing => Some((0, vec![0])),
            Self::Text(wanted) => Some((find(text, wanted)?, vec![wanted.len()])),
            Self::List { characters, not } => find_character(text, |c| characters.contains(&c) != *not),
            Self::Range { low, high, not } => find_character(text, |c| (*low..=*high).contains(&c) != *not),
            Self::Min(limit) => {
                let ends: Vec<usize> = ends(text, 0).skip(limit - 1).collect();
                (!ends.is_empty() && text.len() >= *limit).then_some((0, ends))
            }
            Self::Max(limit) => Some((0, std::iter::once(0).chain(ends(text, 0).take(*limit)).collect())),
            Self::Contains(needle) => {
                let end = find(text, needle)? + needle.len();
                Some((0, boundaries(&text[end..], end)))
            }
            Self::ContainsNot(needle) => {
                let end = find(text, needle).unwrap_or(text.len());
                Some((0, boundaries(&text[..end], 0)))
            }
            Self::Prefix(prefix) => {
                let start = find(text, prefix)?;
                let length = prefix.len();
                let behind = ends(&text[start + length..], length);
                Some((start, std::iter::once(length).chain(behind).collect()))
            }
            Self::Suffix(suffix) => Some((0, vec![find(text, suffix)? + suffix.len()])),
            Self::PrefixSuffix(prefix, suffix) => {
                let start = find(text, prefix)?;
                let lengths = lengths_to(&text[start..], suffix);
                (!lengths.is_empty()).then_some((start, lengths))
            }
            Self::PrefixAny(prefix) => {
                let start = find(text, prefix)?;
                let length = prefix.len();
                let behind = text[start + length..]
                    .split(|c| *c == b'/')
                    .next()
                    .unwrap_or_default();
                Some((
                    start,
                    std::iter::once(length).chain(ends(behind, length)).collect(),
                ))
            }
            Self::SuffixAny(suffix) => {
                let place = find(text, suffix)?;
                let start = text[..place]
                    .iter()
                    .rposition(|c| *c == b'/')
                    .map_or(0, |slash| slash + 1);
                Some((start, vec![place + suffix.len() - start]))
            }
            Self::AnyOf(matchers) => find_any(matchers, text, steps),
            Self::EveryOf(matchers) => find_every(matchers, text, steps),
            Self::Row(matchers, length) => {
                let places = starts(text).take_while(|place| text.len() - place >= *length);
                let mut places = places.filter(|place| row_fits(matchers, &text[*place..], steps));
                Some((places.next()?, vec![*length]))
            }
            // Go leaves this to be done.
            Self::Branch(_) => None,
        }
    }
}

fn branch_fits(branch: &Branch, text: &[u8], steps: &Cell<usize>) -> bool {
    if branch.length.is_some_and(|length| length > text.len()) {
        return false;
    }
    let known = |matcher: &Option<Matcher>| matcher.as_ref().and_then(Matcher::length).unwrap_or(0);
    let fits = |matcher: &Option<Matcher>, text: &[u8]| match matcher {
        Some(matcher) => matcher.fits(text, steps),
        None => text.is_empty(),
    };
    let mut offset = known(&branch.left);
    let limit = text.len().saturating_sub(known(&branch.right));
    while offset < limit && steps.get() > 0 {
        let Some((index, lengths)) = branch.value.find(&text[offset..limit], steps) else {
            return false;
        };
        let start = offset + index;
        if fits(&branch.left, &text[..start]) {
            let ends = lengths
                .iter()
                .rev()
                .map(|length| (start + length).min(text.len()));
            for end in ends {
                if fits(&branch.right, &text[end..]) {
                    return true;
                }
            }
        }
        offset = start + decode(&text[start..]).1;
        if start >= text.len() {
            return false;
        }
    }
    false
}

/// Returns whether the text starts with what the matchers match, each taking as many characters as it is long.
///
/// Go cuts behind the first byte of the last character, so that only ASCII fits there.
fn row_fits(matchers: &[Matcher], mut text: &[u8], steps: &Cell<usize>) -> bool {
    for matcher in matchers {
        let length = matcher.length().unwrap_or(0);
        let (mut count, mut last) = (0, 0);
        for start in starts(text) {
            count += 1;
            last = start;
            if count == length {
                break;
            }
        }
        if count < length || last + 1 > text.len() || !matcher.fits(&text[..=last], steps) {
            return false;
        }
        text = &text[last + 1..];
    }
    true
}

fn find_any(matchers: &[Matcher], text: &[u8], steps: &Cell<usize>) -> Found {
    let mut best: Found = None;
    for matcher in matchers {
        let Some((index, lengths)) = matcher.find(text, steps) else {
            continue;
        };
        match &mut best {
            Some((first, _)) if index > *first => {}
            Some((first, known)) if index == *first => {
                known.extend(lengths);
                known.sort_unstable();
                known.dedup();
            }
            _ => best = Some((index, lengths)),
        }
    }
    best
}

fn find_every(matchers: &[Matcher], text: &[u8], steps: &Cell<usize>) -> Found {
    let (mut index, mut offset) = (0usize, 0usize);
    let mut current: Vec<usize> = Vec::new();
    let mut rest = text;
    for (place, matcher) in matchers.iter().enumerate() {
        let (found, lengths) = matcher.find(rest, steps)?;
        if place == 0 {
            current = lengths;
        } else {
            current.retain(|length| {
                (length + index)
                    .checked_sub(found + offset)
                    .is_some_and(|n| lengths.contains(&n))
            });
            if current.is_empty() {
                return None;
            }
        }
        index = found + offset;
        rest = text.get(index..)?;
        offset += found;
    }
    Some((index, current))
}

/// The text's only character. An empty text has Go's replacement character.
fn only(text: &[u8]) -> Option<char> {
    let (character, width) = decode(text);
    (text.len() <= width).then_some(if text.is_empty() { '\u{fffd}' } else { character })
}

fn characters(text: &[u8]) -> impl Iterator<Item = (usize, char)> {
    let mut place = 0;
    std::iter::from_fn(move || {
        let start = place;
        let (character, width) = decode(text.get(start..)?);
        place += width;
        (width > 0).then_some((start, character))
    })
}

/// Where characters start.
fn starts(text: &[u8]) -> impl Iterator<Item = usize> {
    characters(text).map(|(place, _)| place)
}

/// Where characters start and where the last one ends.
fn boundaries(text: &[u8], offset: usize) -> Vec<usize> {
    let places = starts(text).chain(std::iter::once(text.len()));
    places.map(|place| place + offset).collect()
}

/// Where characters end; a broken one counts as the replacement character's three bytes.
fn ends(text: &[u8], offset: usize) -> impl Iterator<Item = usize> {
    characters(text).map(move |(place, character)| offset + place + character.len_utf8())
}

fn find_character(text: &[u8], fits: impl Fn(char) -> bool) -> Found {
    let (place, character) = characters(text).find(|(_, character)| fits(*character))?;
    Some((place, vec![character.len_utf8()]))
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    text.windows(needle.len()).position(|window| window == needle)
}

/// The lengths from the text's start to the ends of all occurrences of a suffix.
fn lengths_to(text: &[u8], suffix: &[u8]) -> Vec<usize> {
    if suffix.is_empty() {
        return vec![text.len()];
    }
    let mut lengths = Vec::new();
    let mut end = text.len();
    while let Some(place) = text[..end]
        .windows(suffix.len())
        .rposition(|window| window == suffix)
    {
        lengths.push(place + suffix.len());
        end = place;
    }
    lengths.reverse();
    lengths
}
