//! How many fields differ between two states of an object.

use serde_json::Value;

/// Deeper is not looked into: the value counts as one.
const DEPTH: usize = 64;

/// Numbers of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) additions: usize,
    pub(crate) changes: usize,
    pub(crate) removals: usize,
}

impl Count {
    /// Counts the operations from `before` to `after`, as a JSON patch would: a field that comes or goes as a
    /// whole is one.
    pub(crate) fn between(before: &Value, after: &Value) -> Self {
        let mut count = Self::default();
        count.walk(before, after, DEPTH);
        count
    }

    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }

    fn walk(&mut self, before: &Value, after: &Value, depth: usize) {
        match (before, after) {
            (before, after) if before == after => {}
            (Value::Object(before), Value::Object(after)) if depth > 0 => {
                self.removals += before.keys().filter(|key| !after.contains_key(*key)).count();
                for (key, after) in after {
                    match before.get(key) {
                        Some(before) => self.walk(before, after, depth - 1),
                        None => self.additions += 1,
                    }
                }
            }
            (Value::Array(before), Value::Array(after)) if depth > 0 => {
                self.removals += before.len().saturating_sub(after.len());
                self.additions += after.len().saturating_sub(before.len());
                for (before, after) in before.iter().zip(after) {
                    self.walk(before, after, depth - 1);
                }
            }
            _ => self.changes += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_counted_where_they_differ() {
        let count = |before, after| {
            let count = Count::between(&before, &after);
            (count.additions, count.changes, count.removals)
        };
        assert_eq!(count(json!({"a": 1}), json!({"a": 1})), (0, 0, 0));
        let before = json!({"a": {"b": 1, "gone": 1}, "l": [1, 2, 3], "t": 1});
        let after = json!({"a": {"b": 2, "new": {"x": 1, "y": 1}}, "l": [1, 5], "t": "1"});
        assert_eq!(count(before, after), (1, 3, 2));
    }
}
