//! Parts that both parsers of a value's name share: characters, indexes, and finding maps and lists in the
//! values.

use std::iter::Peekable;
use std::str::Chars;

use go_text::quote::{quoted, quoted_char};
use serde_json::{Map, Value};

use super::error::{Error, MAX_INDEX, MAX_NESTED_NAME_LEVEL};

/// Why a parser does not go on.
///
/// Go's code hands io.EOF up through every level and takes it for success at the top; whatever a level would still
/// have stored is not stored then.
#[derive(Debug)]
pub(super) enum Stop {
    End,
    Failed(String),
}

impl Stop {
    pub(super) fn failed<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Failed(message.into()))
    }

    pub(super) fn into_result(self) -> Result<(), Error> {
        match self {
            Self::End => Ok(()),
            Self::Failed(message) => Err(Error(message)),
        }
    }
}

/// Text up to a character, and that character; `None` at the end of the text.
pub(super) type Token = (String, Option<char>);

/// The rest of the text. `escapes` says whether a backslash takes a character's meaning away.
pub(super) struct Source<'a> {
    chars: Peekable<Chars<'a>>,
    escapes: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, escapes: bool) -> Self {
        Self {
            chars: text.chars().peekable(),
            escapes,
        }
    }

    pub(super) fn next(&mut self) -> Option<char> {
        self.chars.next()
    }

    pub(super) fn next_if(&mut self, wanted: impl FnOnce(&char) -> bool) -> Option<char> {
        self.chars.next_if(wanted)
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    /// The text that is not read yet.
    pub(super) fn rest(&self) -> String {
        self.chars.clone().collect()
    }

    /// Reads up to one of `stops`; a backslash at the end of the text is dropped.
    pub(super) fn until(&mut self, stops: &[char]) -> Token {
        let mut text = String::new();
        while let Some(c) = self.next() {
            if stops.contains(&c) {
                return (text, Some(c));
            }
            if c == '\\' && self.escapes {
                text.extend(self.next());
            } else {
                text.push(c);
            }
        }
        (text, None)
    }

    /// Reads an index and its closing bracket.
    ///
    /// `wrapped_end` tells whether an end of the text within them is still the end: Helm 4 looks through the wrapped
    /// error and takes it for success, Helm 3 does not.
    pub(super) fn index(&mut self, wrapped_end: bool) -> Result<i64, Stop> {
        match self.until(&[']']) {
            (digits, Some(_)) => digits.parse().map_err(|error| {
                let problem = if overflows(&error) {
                    "value out of range"
                } else {
                    "invalid syntax"
                };
                let number = quoted(&digits);
                Stop::Failed(format!(
                    "error parsing index: strconv.Atoi: parsing {number}: {problem}"
                ))
            }),
            (_, None) if wrapped_end => Err(Stop::End),
            (_, None) => Stop::failed("error parsing index: EOF"),
        }
    }
}

fn overflows(error: &std::num::ParseIntError) -> bool {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    matches!(error.kind(), PosOverflow | NegOverflow)
}

/// Goes one level deeper into a name.
pub(super) fn deeper(level: usize) -> Result<usize, Stop> {
    if level < MAX_NESTED_NAME_LEVEL {
        Ok(level + 1)
    } else {
        Stop::failed(format!(
            "value name nested level is greater than maximum supported nested level of {MAX_NESTED_NAME_LEVEL}"
        ))
    }
}

/// Helm has no bound on lists in lists; ours keeps the recursion small.
const MAX_INDEXES: usize = 1_000;

/// Goes one list deeper.
pub(super) fn one_more_index(depth: usize) -> Result<usize, Stop> {
    if depth < MAX_INDEXES {
        Ok(depth + 1)
    } else {
        Stop::failed(format!("value name has more than {MAX_INDEXES} indexes"))
    }
}

/// Refuses an index below zero.
pub(super) fn checked(index: i64) -> Result<usize, Stop> {
    usize::try_from(index).or_else(|_| Stop::failed(format!("negative {index} index not allowed")))
}

/// Refuses what stands between an index and the next sign; Go prints it as a slice of characters.
pub(super) fn nothing_behind_index(text: &str) -> Result<(), Stop> {
    if text.is_empty() {
        return Ok(());
    }
    let characters: Vec<String> = text.chars().map(quoted_char).collect();
    let characters = characters.join(" ");
    Stop::failed(format!("unexpected data at end of array index: [{characters}]"))
}

/// Stores a value; a name without characters is not stored.
pub(super) fn set(data: &mut Map<String, Value>, name: String, value: Value) {
    if !name.is_empty() {
        data.insert(name, value);
    }
}

/// Stores a value in a list, which is filled with nulls up to there.
pub(super) fn set_index(list: &mut Vec<Value>, index: usize, value: Value) -> Result<(), Stop> {
    if i64::try_from(index).map_or(true, |index| index > MAX_INDEX) {
        return Stop::failed(format!(
            "index of {index} is greater than maximum supported index of {MAX_INDEX}"
        ));
    }
    if list.len() <= index {
        list.resize(index + 1, Value::Null);
    }
    list[index] = value;
    Ok(())
}

/// Lets `fill` work on the map of a name. What was there stays there; a new map is kept when something is in it.
pub(super) fn in_map(
    data: &mut Map<String, Value>,
    name: String,
    fill: impl FnOnce(&mut Map<String, Value>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let (done, empty) = match data.get_mut(&name) {
        Some(Value::Object(inner)) => (fill(inner), inner.is_empty()),
        Some(other) => return Err(wrong_type(other, "map[string]interface {}")),
        None => {
            let mut inner = Map::new();
            let done = fill(&mut inner);
            let empty = inner.is_empty();
            if !empty {
                set(data, name.clone(), Value::Object(inner));
            }
            (done, empty)
        }
    };
    if done.is_ok() && empty {
        return Stop::failed(format!("key map {} has no value", quoted(&name)));
    }
    done
}

/// Lets `fill` work on the list of a name, which is stored whatever happens.
pub(super) fn in_list(
    data: &mut Map<String, Value>,
    name: String,
    fill: impl FnOnce(&mut Vec<Value>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    match data.get_mut(&name) {
        Some(Value::Array(list)) => fill(list),
        Some(other) => Err(wrong_type(other, "[]interface {}")),
        None => {
            let mut list = Vec::new();
            let done = fill(&mut list);
            set(data, name, Value::Array(list));
            done
        }
    }
}

/// Lets `fill` work on the map at an index; a new map is stored only when `fill` succeeds.
pub(super) fn in_map_at(
    list: &mut Vec<Value>,
    index: usize,
    fill: impl FnOnce(&mut Map<String, Value>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    if let Some(place) = list.get_mut(index) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(inner) = place else {
            return Ok(());
        };
        fill(inner)?;
        return set_index_bound(index);
    }
    let mut inner = Map::new();
    fill(&mut inner)?;
    set_index(list, index, Value::Object(inner))
}

/// Lets `fill` work on the list at an index; a new list is stored only when `fill` succeeds.
pub(super) fn in_list_at(
    list: &mut Vec<Value>,
    index: usize,
    fill: impl FnOnce(&mut Vec<Value>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    match list.get_mut(index) {
        Some(Value::Array(inner)) => {
            fill(inner)?;
            set_index_bound(index)
        }
        None | Some(Value::Null) => {
            let mut inner = Vec::new();
            fill(&mut inner)?;
            set_index(list, index, Value::Array(inner))
        }
        Some(other) => Err(wrong_type(other, "[]interface {}")),
    }
}

/// Refuses an index that [`set_index`] would refuse, for a place that exists, as in a list from a file.
fn set_index_bound(index: usize) -> Result<(), Stop> {
    let mut nothing = Vec::new();
    if i64::try_from(index).is_ok_and(|index| index <= MAX_INDEX) {
        return Ok(());
    }
    set_index(&mut nothing, index, Value::Null)
}

/// Go's panic of a type assertion, as Helm recovers it.
fn wrong_type(found: &Value, wanted: &str) -> Stop {
    let found = match found {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    Stop::Failed(format!(
        "unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}"
    ))
}
