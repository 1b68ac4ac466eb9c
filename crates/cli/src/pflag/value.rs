//! Values of a flag, and how they are parsed.

use go_text::numeral::parse_bool;
use go_time::Duration;

use super::csv;

/// The type of a flag's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A boolean; the flag alone sets it.
    Switch,
    /// Any text; of several, the last counts or all, as the reader of the flag sees fit.
    Text,
    /// Texts, comma-separated as in CSV.
    List,
    /// `key=value`, comma-separated.
    Pairs,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A duration such as `5m30s`.
    Duration,
    /// A text, and what the flag alone sets.
    TextOr(&'static str),
}

impl Kind {
    /// Returns what the flag sets without a value, where it may stand alone.
    pub(super) fn when_alone(self) -> Option<&'static str> {
        match self {
            Self::Switch => Some("true"),
            Self::TextOr(value) => Some(value),
            _ => None,
        }
    }

    /// Reads a value; a list gives several.
    pub(super) fn read(self, value: &str) -> Result<Vec<String>, String> {
        let syntax = |function: &str| format!("strconv.{function}: parsing {value:?}: invalid syntax");
        match self {
            Self::Text | Self::TextOr(_) => {}
            Self::Switch => {
                let truth = parse_bool(value).ok_or_else(|| syntax("ParseBool"))?;
                return Ok(vec![truth.to_string()]);
            }
            Self::List => return csv::read(value),
            Self::Pairs => return pairs(value),
            Self::Integer => {
                value.parse::<i64>().map_err(|_| syntax("ParseInt"))?;
            }
            Self::Number => {
                value.parse::<f64>().map_err(|_| syntax("ParseFloat"))?;
            }
            Self::Duration => {
                Duration::parse(value.as_bytes()).map_err(|error| error.to_string())?;
            }
        }
        Ok(vec![value.to_owned()])
    }
}

fn pairs(value: &str) -> Result<Vec<String>, String> {
    let unformatted = |pair: &str| format!("{pair} must be formatted as key=value");
    let pairs = match value.matches('=').count() {
        0 => return Err(unformatted(value)),
        1 => vec![value.trim_matches('"').to_owned()],
        _ => csv::read(value)?,
    };
    match pairs.iter().find(|pair| !pair.contains('=')) {
        Some(pair) => Err(unformatted(pair)),
        None => Ok(pairs),
    }
}
