//! Parts of strings and strings of parts: `trunc`, `substr`, `split`, `join`, and questions of what is in them.

use go_template::{Context, Error, Functions, List, Map, Str, Type, Value};
use go_text::rune::decode;
use memchr::memmem;

use crate::arguments::{add, any, charge, int, made, string, text};
use crate::printed::texts_of;

const TWO: &[Type] = &[Type::STRING, Type::STRING];

pub(super) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("trunc", &[Type::INT, Type::STRING], truncate),
            ("substr", &[Type::INT, Type::INT, Type::STRING], substring),
            ("split", TWO, |context, arguments| {
                numbered(context, split(text(arguments, 1), text(arguments, 0), -1))
            }),
            (
                "splitn",
                &[Type::STRING, Type::INT, Type::STRING],
                |context, arguments| {
                    numbered(
                        context,
                        split(text(arguments, 2), text(arguments, 0), int(arguments, 1)),
                    )
                },
            ),
            ("splitList", TWO, |context, arguments| {
                let parts = split(text(arguments, 1), text(arguments, 0), -1);
                charge(context, parts.len(), PART)?;
                Ok(List::of_strings(parts).into())
            }),
            ("join", &[Type::STRING, Type::ANY], join),
            ("contains", TWO, |_, arguments| {
                Ok(memmem::find(text(arguments, 1), text(arguments, 0))
                    .is_some()
                    .into())
            }),
            ("hasPrefix", TWO, |_, arguments| {
                Ok(text(arguments, 1).starts_with(text(arguments, 0)).into())
            }),
            ("hasSuffix", TWO, |_, arguments| {
                Ok(text(arguments, 1).ends_with(text(arguments, 0)).into())
            }),
        ],
    );
}

/// Cost of a part beside its bytes.
const PART: usize = 64;

/// Keeps the first bytes, or of a negative count the last ones. Cuts through characters.
fn truncate(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (count, text) = (int(arguments, 0), text(arguments, 1));
    let length = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if length >= text.len() {
        return Ok(string(arguments, 1).into());
    }
    let part = if count < 0 {
        &text[text.len() - length..]
    } else {
        &text[..length]
    };
    Ok(Str::from(part).into())
}

fn substring(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (start, end, text) = (int(arguments, 0), int(arguments, 1), text(arguments, 2));
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let out_of_range = |what: String| {
        Err(Error::new(format!(
            "runtime error: slice bounds out of range [{what}"
        )))
    };
    let (start, end) = match (start, end) {
        (..0, ..0) => return out_of_range(format!(":{end}]")),
        (..0, _) if end > length => return out_of_range(format!(":{end}] with length {length}")),
        (..0, _) => (0, end),
        (_, end) if end < 0 || end > length => (start, length),
        bounds => bounds,
    };
    if start > end {
        return out_of_range(format!("{start}:{end}]"));
    }
    let at = |position: i64| usize::try_from(position).unwrap_or_default();
    Ok(Str::from(&text[at(start)..at(end)]).into())
}

/// `strings.SplitN`: at most `limit` parts, all of them where that is negative. Without a separator each character is one.
fn split<'a>(mut text: &'a [u8], separator: &[u8], limit: i64) -> Vec<&'a [u8]> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    if limit == 0 {
        return parts;
    }
    if separator.is_empty() {
        while !text.is_empty() {
            let (_, width) = decode(text);
            let width = if parts.len() + 1 == limit {
                text.len()
            } else {
                width
            };
            let (part, rest) = text.split_at(width);
            parts.push(part);
            text = rest;
        }
        return parts;
    }
    let finder = memmem::Finder::new(separator);
    while parts.len() + 1 < limit {
        let Some(at) = finder.find(text) else { break };
        parts.push(&text[..at]);
        text = &text[at + separator.len()..];
    }
    parts.push(text);
    parts
}

/// Makes a map of parts: `_0`, `_1` and so on.
fn numbered(context: &mut Context<'_>, parts: Vec<&[u8]>) -> Result<Value, Error> {
    charge(context, parts.len(), 2 * PART)?;
    let entries = parts.into_iter().enumerate();
    let entries = entries.map(|(index, part)| (Str::from(format!("_{index}")), Str::from(part).into()));
    Ok(Map::with_entries(Type::MAP_STRING, entries.collect()).into())
}

fn join(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (separator, parts) = (text(arguments, 0), texts_of(&any(arguments, 1))?);
    charge(context, parts.len(), separator.len())?;
    let length = parts.iter().map(|part| part.len() + separator.len()).sum();
    context.charge(length)?;
    let mut out = Vec::with_capacity(length);
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(part);
    }
    made(out)
}
