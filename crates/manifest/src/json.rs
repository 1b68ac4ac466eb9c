//! How much a JSON text holds, before it is read and after.

use serde_json::Value;

/// Counts the values of a JSON text that comes in pieces. Read into memory, a value takes up to some hundred bytes,
/// however few its text has; so this bounds what reading the text takes. Where the text is no JSON, the count means nothing
/// and reading fails anyway.
#[derive(Debug, Clone, Default)]
pub struct ValueCounter {
    in_string: bool,
    escaped: bool,
    values: u64,
}

impl ValueCounter {
    /// Takes the next piece. Answers how many values have begun so far: at most one more than there are, for each list
    /// and map.
    pub fn feed(&mut self, piece: &[u8]) -> u64 {
        for &byte in piece {
            if self.escaped {
                self.escaped = false;
            } else if self.in_string {
                match byte {
                    b'"' => self.in_string = false,
                    b'\\' => self.escaped = true,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' | b',' => self.values += 1,
                    _ => {}
                }
            }
        }
        self.values
    }
}

/// Counts a value and all values below it.
pub fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::ValueCounter;

    #[test]
    fn values_are_counted_outside_texts_and_over_pieces() {
        let count = |text: &str| ValueCounter::default().feed(text.as_bytes());
        assert_eq!(count(r#"{"a": 1, "b": [2, 3, {}]}"#), 6);
        assert_eq!(count(r#""{[,\",{""#), 0);
        assert_eq!(count(r#"{"\\": "{"}"#), 1);
        let text = r#"{"a\"{": "[,", "b": [{}, {}, {}]}"#;
        for cut in 0..text.len() {
            let mut counter = ValueCounter::default();
            counter.feed(&text.as_bytes()[..cut]);
            assert_eq!(counter.feed(&text.as_bytes()[cut..]), count(text), "{cut}");
        }
    }
}
