//! The last lines that an action logged, for the events of a failure ("Last Helm logs:").

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// Keeps the last lines of an action; older ones go. Equal lines after each other are counted.
#[derive(Debug, Default)]
pub struct Log {
    lines: Mutex<VecDeque<Line>>,
}

#[derive(Debug)]
struct Line {
    at: Timestamp,
    text: String,
    /// When the same was said last, and how often after the first time.
    again: Option<(Timestamp, u64)>,
}

/// As many as Flux keeps.
const LINES: usize = 10;
/// Bytes of a line; the output of hooks is foreign.
const LONGEST: usize = 1024;

impl Log {
    /// Keeps nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line, or several.
    pub fn line(&self, text: impl AsRef<str>) {
        for text in text.as_ref().lines().filter(|text| !text.trim().is_empty()) {
            self.add(Timestamp::now(), text);
        }
    }

    /// Returns whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.lines().is_empty()
    }

    fn add(&self, at: Timestamp, text: &str) {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        let mut lines = self.lines();
        if let Some(last) = lines.back_mut().filter(|last| last.text == text) {
            last.again = Some((at, last.again.map_or(1, |(_, times)| times + 1)));
            return;
        }
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(Line {
            at,
            text: text.to_owned(),
            again: None,
        });
    }

    fn lines(&self) -> MutexGuard<'_, VecDeque<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All lines, each with its time, as Flux shows them.
impl fmt::Display for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in self.lines().iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{}: {}", line.at, line.text)?;
            if let Some((at, times)) = line.again {
                write!(formatter, "\n{at}: {}", line.text)?;
                let omitted = times - 1;
                if omitted > 0 {
                    let plural = if omitted == 1 { "line" } else { "lines" };
                    write!(formatter, " ({omitted} duplicate {plural} omitted)")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str]) -> String {
        let log = Log::new();
        for (second, text) in texts.iter().enumerate() {
            let at = Timestamp::from_second(second as i64).expect("a time");
            log.add(at, text);
        }
        log.to_string()
    }

    #[test]
    fn equal_lines_are_counted() {
        assert_eq!(said(&["a"]), "1970-01-01T00:00:00Z: a");
        assert_eq!(
            said(&["a", "b", "b", "b"]),
            "1970-01-01T00:00:00Z: a\n1970-01-01T00:00:01Z: b\n1970-01-01T00:00:03Z: b (1 duplicate line omitted)"
        );
    }

    #[test]
    fn only_the_last_lines_are_kept_and_none_is_long() {
        let texts: Vec<String> = (0..20).map(|number| format!("line {number}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let shown = said(&texts);
        assert_eq!(shown.lines().count(), LINES);
        assert!(shown.ends_with("line 19"), "{shown}");
        assert!(said(&["ü".repeat(4000).as_str()]).len() < 1100);
    }
}
