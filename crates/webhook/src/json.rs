//! JSON of strangers as values, bounded: a body of `[[],[],…` takes fifty times its size in memory.

use serde_json::Value;

use crate::body::first_json;

/// Elements and fields that a body may have; large push events have some ten thousand.
pub const MOST_VALUES: usize = 50_000;

/// How many values JSON has at most: elements and fields. Those that stand in texts are counted too.
pub(crate) fn values(body: &[u8]) -> usize {
    let opens_value = |byte: &&u8| matches!(byte, b',' | b':' | b'[' | b'{');
    body.iter().filter(opens_value).count()
}

/// Parses the first JSON value of a body.
pub(crate) fn parse(body: &[u8]) -> Result<Value, String> {
    if values(body) > MOST_VALUES {
        return Err(format!("it has more than {MOST_VALUES} values"));
    }
    first_json(body)
}
