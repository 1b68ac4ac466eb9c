//! Progress on standard error: in place on a terminal, else one line for each change; nothing in quiet mode.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _, Write as _};

use delivery_graph::one_line;

/// Tells what is under way.
pub(crate) struct Progress {
    way: Way,
    /// The message last shown.
    told: RefCell<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Silent,
    /// One line, written over again and again.
    InPlace,
    Lines,
}

/// A line that wraps cannot be written over; most terminals are wider.
const WIDTH: usize = 78;

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let way = match io::stderr().is_terminal() && !is_dumb {
            _ if quiet => Way::Silent,
            true => Way::InPlace,
            false => Way::Lines,
        };
        Self {
            way,
            told: RefCell::default(),
        }
    }

    /// Tells it, unless it was told last.
    pub(crate) fn show(&self, said: &str) {
        let said = one_line(said);
        if *self.told.borrow() == said {
            return;
        }
        // When no one reads it, no one is to be told.
        _ = io::stderr().lock().write_all(written(self.way, &said).as_bytes());
        *self.told.borrow_mut() = said;
    }

    /// Clears the place for what is printed.
    pub(crate) fn clear(&self) {
        let is_there = !self.told.borrow().is_empty();
        if self.way == Way::InPlace && is_there {
            _ = io::stderr().lock().write_all(CLEAR.as_bytes());
        }
        self.told.borrow_mut().clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// To the beginning of the line, and nothing on it.
const CLEAR: &str = "\r\u{1b}[K";

fn written(way: Way, said: &str) -> String {
    match way {
        Way::Silent => String::new(),
        Way::Lines => format!("{said}\n"),
        Way::InPlace => match said.char_indices().nth(WIDTH) {
            Some((end, _)) => format!("{CLEAR}{}…", &said[..end]),
            None => format!("{CLEAR}{said}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_in_place_or_in_lines_or_not_at_all() {
        assert_eq!(written(Way::Silent, "a"), "");
        assert_eq!(written(Way::Lines, "a"), "a\n");
        assert_eq!(written(Way::InPlace, "a"), "\r\u{1b}[Ka");
        let long = written(Way::InPlace, &"ä".repeat(100));
        assert_eq!(long.chars().filter(|c| *c == 'ä').count(), WIDTH);
        assert!(long.ends_with('…') && !long.contains('\n'));
    }
}
