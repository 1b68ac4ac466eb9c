//! Layouts: texts in which the parts of the reference time Mon Jan 2 15:04:05 MST 2006 stand for elements.

/// An element of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    LongMonth,
    Month,
    NumericMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperHalf,
    LowerHalf,
    ZoneName,
    Offset(Offset),
    Fraction {
        digits: usize,
        trimmed: bool,
        comma: bool,
    },
}

/// How an offset from UTC is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// `Z` instead of an offset of nothing.
    pub(crate) iso: bool,
    pub(crate) precision: Precision,
    pub(crate) colons: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precision {
    Hours,
    Minutes,
    Seconds,
}

/// The first element of a layout, with what stands before and behind it.
pub(crate) struct Chunk<'a> {
    pub(crate) before: &'a [u8],
    /// None when there is no element left; then all is before it.
    pub(crate) element: Option<Element>,
    /// How the element is written.
    pub(crate) text: &'a [u8],
    pub(crate) rest: &'a [u8],
}

pub(crate) fn next_chunk(layout: &[u8]) -> Chunk<'_> {
    for at in 0..layout.len() {
        let Some((skipped, length, element)) = element_at(&layout[at..]) else {
            continue;
        };
        let (before, text) = layout.split_at(at + skipped);
        let (text, rest) = text.split_at(length);
        return Chunk {
            before,
            element: Some(element),
            text,
            rest,
        };
    }
    Chunk {
        before: layout,
        element: None,
        text: b"",
        rest: b"",
    }
}

/// The element that starts here: how much of the text is not yet part of it, and its length.
fn element_at(text: &[u8]) -> Option<(usize, usize, Element)> {
    let found = match text {
        [b'J', ..] | [b'M', ..] => return name_at(text),
        [b'0', digit @ b'1'..=b'6', ..] => (2, ZERO_ELEMENTS[usize::from(digit - b'1')]),
        [b'0', b'0', b'2', ..] => (3, Element::ZeroYearDay),
        [b'1', b'5', ..] => (2, Element::Hour),
        [b'1', ..] => (1, Element::NumericMonth),
        [b'2', b'0', b'0', b'6', ..] => (4, Element::LongYear),
        [b'2', ..] => (1, Element::Day),
        // The underscore before a year is just that.
        [b'_', b'2', b'0', b'0', b'6', ..] => return Some((1, 4, Element::LongYear)),
        [b'_', b'2', ..] => (2, Element::UnderDay),
        [b'_', b'_', b'2', ..] => (3, Element::UnderYearDay),
        [b'3', ..] => (1, Element::Hour12),
        [b'4', ..] => (1, Element::Minute),
        [b'5', ..] => (1, Element::Second),
        [b'P', b'M', ..] => (2, Element::UpperHalf),
        [b'p', b'm', ..] => (2, Element::LowerHalf),
        [sign @ (b'-' | b'Z'), rest @ ..] => offset_at(rest, *sign == b'Z')?,
        [mark @ (b'.' | b','), rest @ ..] => fraction_at(rest, *mark == b',')?,
        _ => return None,
    };
    Some((0, found.0, found.1))
}

const ZERO_ELEMENTS: [Element; 6] = [
    Element::ZeroMonth,
    Element::ZeroDay,
    Element::ZeroHour12,
    Element::ZeroMinute,
    Element::ZeroSecond,
    Element::Year,
];

fn name_at(text: &[u8]) -> Option<(usize, usize, Element)> {
    let names: [(&[u8], Element); 4] = [
        (b"January", Element::LongMonth),
        (b"Jan", Element::Month),
        (b"Monday", Element::LongWeekday),
        (b"Mon", Element::Weekday),
    ];
    let is_long = |element| matches!(element, Element::LongMonth | Element::LongWeekday);
    let name = names.into_iter().find(|(name, element)| {
        // "Month" is not "Mon".
        text.strip_prefix(*name)
            .is_some_and(|rest| is_long(*element) || !rest.first().is_some_and(u8::is_ascii_lowercase))
    });
    if let Some((name, element)) = name {
        return Some((0, name.len(), element));
    }
    text.starts_with(b"MST").then_some((0, 3, Element::ZoneName))
}

/// Parses the element after a `-` or `Z`.
fn offset_at(text: &[u8], iso: bool) -> Option<(usize, Element)> {
    let forms: [(&[u8], Precision, bool); 5] = [
        (b"070000", Precision::Seconds, false),
        (b"07:00:00", Precision::Seconds, true),
        (b"0700", Precision::Minutes, false),
        (b"07:00", Precision::Minutes, true),
        (b"07", Precision::Hours, false),
    ];
    let (form, precision, colons) = forms.into_iter().find(|(form, ..)| text.starts_with(form))?;
    let offset = Offset {
        iso,
        precision,
        colons,
    };
    Some((1 + form.len(), Element::Offset(offset)))
}

/// Parses the element after a point or comma: a run of zeroes or nines, which no other digit may follow.
fn fraction_at(text: &[u8], comma: bool) -> Option<(usize, Element)> {
    let digit = *text.first().filter(|b| matches!(b, b'0' | b'9'))?;
    let digits = text.iter().take_while(|&&b| b == digit).count();
    if text.get(digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let element = Element::Fraction {
        digits,
        trimmed: digit == b'9',
        comma,
    };
    Some((1 + digits, element))
}
