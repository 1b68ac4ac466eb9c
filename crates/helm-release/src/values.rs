//! The digest by which Flux tells that the values of a release have changed (fluxcd/pkg `chartutil`).

use std::io;

use serde_json::{Map, Value};

use crate::digest;

/// The digest of composed values: of their YAML with the keys in order, or of nothing when there are none.
#[must_use]
pub fn digest(values: &Map<String, Value>) -> String {
    digest::digest_of(|to| write(values, to))
}

/// Returns whether values are those that a digest was made of. One that is none is of no values.
#[must_use]
pub fn verify(digest: &str, values: &Map<String, Value>) -> bool {
    digest::is_of(digest, |to| write(values, to)).unwrap_or(false)
}

fn write(values: &Map<String, Value>, to: &mut dyn io::Write) {
    if !values.is_empty() {
        let text = manifest::yaml::write_values(&fields(values));
        let written = to.write_all(text.as_ref());
        debug_assert!(written.is_ok(), "a hasher takes everything");
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_known_again_by_digests_of_every_kind() {
        let values = |value: Value| match value {
            Value::Object(fields) => fields,
            other => panic!("{other} is no map"),
        };
        let given = values(json!({"b": 1, "a": {"c": [true, null]}}));
        // Of "a:\n  c:\n  - true\n  - null\nb: 1\n", by sha1sum, sha384sum and sha512sum.
        for digest in [
            "sha1:9e7b4160400d1ac3f1f6899c1fa86a61a24691e4",
            "sha384:bc0523af7f38303f9f463f9eec5ffecf55adc6efce90adb833427cc7a210ec127d6aabdd1a080a937edf31374f00a70e",
            "sha512:f5854b7d541c2d5f937f83878aaf221ff44fec492fe358738be13b13044a360e26ec6ec748901e86069187d66562e4d3acd3eee185fe2d3ed69eb0c112285233",
            &digest(&given),
        ] {
            assert!(verify(digest, &given), "{digest}");
            assert!(!verify(digest, &values(json!({"b": 2}))), "{digest}");
        }
        for digest in ["", "sha256:", "sha1", "md5:900150983cd24fb0d6963f7d28e17f72"] {
            assert!(!verify(digest, &given), "{digest}");
        }
        let nothing = Map::new();
        assert!(verify(&digest(&nothing), &nothing) && !verify(&digest(&given), &nothing));
    }
}
