//! Names that a person may have meant: for the message about a ref that is not there. Pure.

use std::collections::BTreeSet;
use std::fmt;

/// Names that are told.
const MAX_NAMES: usize = 3;
/// Of those that are compared: a remote may have a million.
const MAX_COMPARED: usize = 20_000;
/// Longer names are not compared, and not shown.
const MAX_LENGTH: usize = 128;

/// The names that are nearest to one that is not there, and how many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nearest {
    names: Vec<String>,
    of: Option<usize>,
}

impl Nearest {
    /// Looks through the names of the same kind.
    pub fn to<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut of = 0;
        let mut found = BTreeSet::new();
        for name in names {
            of += 1;
            let can_be_shown = name.len() <= MAX_LENGTH && !name.chars().any(char::is_control);
            if of > MAX_COMPARED || !can_be_shown || wanted.len() > MAX_LENGTH {
                continue;
            }
            found.insert((distance(wanted, name), name));
            if found.len() > MAX_NAMES {
                found.pop_last();
            }
        }
        Self {
            names: found.into_iter().map(|(_, name)| name.to_owned()).collect(),
            of: Some(of),
        }
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.of, self.names.as_slice()) {
            (None, _) => Ok(()),
            (Some(0), _) => formatter.write_str("; the repository has none of this kind"),
            (Some(_), []) => Ok(()),
            (Some(of), names) if of <= names.len() => write!(formatter, "; there is: {}", names.join(", ")),
            (Some(of), names) => write!(formatter, "; nearest of {of}: {}", names.join(", ")),
        }
    }
}

/// Letters to change, put in or take out, upper and lower case being near.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| -> Vec<char> { text.chars().collect() };
    let (one, other) = (letters(one), letters(other));
    let mut row: Vec<usize> = (0..=other.len()).map(|count| count * 2).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = (i + 1) * 2;
        for (j, b) in other.iter().enumerate() {
            let change = if a == b {
                0
            } else if a.eq_ignore_ascii_case(b) {
                1
            } else {
                2
            };
            let best = (diagonal + change).min(row[j] + 2).min(row[j + 1] + 2);
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_nearly_the_same_come_first() {
        let names = ["develop", "main", "Master", "release/1.0", "mian"];
        let shown = |wanted: &str| Nearest::to(wanted, names).to_string();
        assert_eq!(shown("master"), "; nearest of 5: Master, main, mian");
        assert_eq!(
            shown("release-1.0"),
            "; nearest of 5: release/1.0, Master, develop"
        );
        assert_eq!(Nearest::to("main", ["trunk"]).to_string(), "; there is: trunk");
        assert_eq!(
            Nearest::to("main", []).to_string(),
            "; the repository has none of this kind"
        );
        assert_eq!(Nearest::default().to_string(), "");
    }

    #[test]
    fn what_cannot_be_shown_is_not() {
        let long = "x".repeat(1000);
        assert_eq!(Nearest::to("main", ["a\nb", &long]).to_string(), "");
        assert_eq!(Nearest::to(&long, ["main"]).to_string(), "");
    }
}
