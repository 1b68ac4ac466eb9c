//! The digest by which Flux tells that the values of a release have changed (fluxcd/pkg `chartutil`).

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The digest of composed values: of their YAML with the keys in order, or of nothing when there are none.
#[must_use]
pub fn digest(values: &Map<String, Value>) -> String {
    let mut hasher = Sha256::new();
    if !values.is_empty() {
        hasher.update(manifest::yaml::write_values(&fields(values)));
    }
    format!("sha256:{}", hex::encode(hasher.finalize()))
}

fn fields(values: &Map<String, Value>) -> Map<String, Value> {
    let field = |(key, value): (&String, &Value)| (key.clone(), any(value));
    values.iter().map(field).collect()
}

/// A value on its way from Go's `any`, in which every number is a float, to sigs.k8s.io/yaml, which makes integers of those
/// that are whole: large ones have lost their last digits.
fn any(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, whole),
        Value::Array(items) => items.iter().map(any).collect(),
        Value::Object(values) => Value::Object(fields(values)),
        other => other.clone(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the float is whole and in the range"
)]
#[expect(clippy::cast_sign_loss, reason = "the float is not negative")]
fn whole(float: f64) -> Value {
    /// Where the integers of Go end; their last one is no float.
    const ENDS: (f64, f64) = (9_223_372_036_854_775_808.0, 18_446_744_073_709_551_616.0);
    if float.fract() != 0.0 {
        Value::from(float)
    } else if (-ENDS.0..ENDS.0).contains(&float) {
        Value::from(float as i64)
    } else if (0.0..ENDS.1).contains(&float) {
        Value::from(float as u64)
    } else {
        Value::from(float)
    }
}
