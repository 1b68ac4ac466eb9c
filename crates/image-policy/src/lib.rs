//! Which tag of an image is chosen, by the rules of Flux's ImagePolicy, and why not another.
//!
//! In: the tags of an image, and a [`Policy`]: a filter and an order. Out: the chosen tag, or why there is none; and for
//! any tag a [`Verdict`], for people who ask why it was not chosen. The answer depends on the set of tags only, never on
//! their order: of tags that are equal for the policy, the one whose bytes are highest is taken. A tag that is no number is
//! passed over by a numerical policy, and counted; Flux fails on it.
//!
//! Pure: asks no registry. Tags are a registry's, patterns a tenant's; both are bounded where they are read.
//!
//! ```
//! use image_policy::{Order, Policy};
//!
//! let policy = Policy::new(Order::semver("1.x")?, None);
//! let chosen = policy.choose(["latest", "v1.2.0", "1.10.1", "2.0.0"])?;
//! assert_eq!(chosen.tag, "1.10.1");
//! # Ok::<(), image_policy::Error>(())
//! ```

pub mod demand;
mod filter;
pub mod hold;
mod order;
mod spec;
mod verdict;

pub use filter::Filter;
pub use order::{Direction, Order};
pub use verdict::Verdict;

use order::Rank;

/// Tags that were passed over and are named.
const MAX_NAMED: usize = 10;

/// Why no tag is chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are no tags, or none that the filter lets through.
    #[error("version list argument cannot be empty")]
    NoTags,
    /// No tag suits the order.
    #[error("unable to determine latest version from provided list")]
    NoneSuits,
    /// All tags are no numbers; one of them.
    #[error("failed to parse invalid numeric value '{0}'")]
    NoNumber(String),
    /// The spec orders tags in no way.
    #[error("given ImagePolicyChoice object is invalid")]
    NoOrder,
    /// The range cannot be read.
    #[error("{0}")]
    Range(go_semver::Error),
    /// The pattern cannot be read.
    #[error("failed to parse regular expression '{pattern}': {problem}")]
    Pattern {
        /// As given.
        pattern: String,
        /// As Go words it.
        problem: String,
    },
}

/// A filter and an order.
#[derive(Debug)]
pub struct Policy {
    order: Order,
    filter: Option<Filter>,
}

/// A chosen tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The tag, as it is in the registry.
    pub tag: String,
    /// What was said of the others.
    pub tally: Tally,
}

/// The tags that stand first in the order of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newest {
    /// The first, which the policy chooses if nothing else is demanded.
    pub first: String,
    /// Those behind it.
    pub rest: Vec<String>,
    /// What was said of the others.
    pub tally: Tally,
}

impl Newest {
    /// All of them, the first first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.first).chain(self.rest.iter().map(String::as_str))
    }
}

/// How many tags a policy looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tags that the filter let through.
    pub considered: usize,
    /// Of these, how many the order does not understand.
    pub skipped: usize,
    /// Some of them.
    pub skipped_tags: Vec<String>,
}

impl Policy {
    /// Puts a policy together.
    pub fn new(order: Order, filter: Option<Filter>) -> Self {
        Self { order, filter }
    }

    /// Chooses a tag.
    ///
    /// # Errors
    /// When no tag passes the filter, or none suits the order.
    pub fn choose<'a>(&self, tags: impl IntoIterator<Item = &'a str>) -> Result<Chosen, Error> {
        let newest = self.newest(tags, 1)?;
        Ok(Chosen {
            tag: newest.first,
            tally: newest.tally,
        })
    }

    /// The tags that stand first, at most this many.
    ///
    /// # Errors
    /// When no tag passes the filter, or none suits the order.
    pub fn newest<'a>(&self, tags: impl IntoIterator<Item = &'a str>, limit: usize) -> Result<Newest, Error> {
        let mut tally = Tally::default();
        let mut skipped_tags = Vec::new();
        let mut best: Vec<(Rank, &str)> = Vec::new();
        for tag in tags {
            let Some(value) = self.value(tag) else {
                continue;
            };
            tally.considered += 1;
            match self.order.rank(&value) {
                Ok(rank) => {
                    let stands_behind = |(known, known_tag): &(Rank, &str)| {
                        rank.compare(known).then(tag.cmp(known_tag)).is_le()
                    };
                    let place = best.partition_point(stands_behind);
                    if place < limit.max(1) {
                        best.insert(place, (rank, tag));
                        best.truncate(limit.max(1));
                    }
                }
                Err(Verdict::OutOfRange | Verdict::PreRelease) => {}
                Err(_) => {
                    tally.skipped += 1;
                    skipped_tags.push(tag);
                    // The lowest are named, whatever the order in which they come.
                    if skipped_tags.len() > MAX_NAMED * 2 {
                        skipped_tags.sort_unstable();
                        skipped_tags.truncate(MAX_NAMED);
                    }
                }
            }
        }
        skipped_tags.sort_unstable();
        skipped_tags.truncate(MAX_NAMED);
        let mut best = best.into_iter().map(|(_, tag)| tag.to_owned());
        match best.next() {
            Some(first) => Ok(Newest {
                first,
                rest: best.collect(),
                tally: Tally {
                    skipped_tags: skipped_tags.into_iter().map(str::to_owned).collect(),
                    ..tally
                },
            }),
            None if tally.considered == 0 => Err(Error::NoTags),
            None => Err(match (&self.order, skipped_tags.first()) {
                (Order::Numerical(_), Some(tag)) => {
                    let value = self.value(tag).unwrap_or_default();
                    Error::NoNumber(value)
                }
                _ => Error::NoneSuits,
            }),
        }
    }

    /// Judges one tag, beside the one that is chosen.
    pub fn verdict(&self, tag: &str, chosen: &str) -> Verdict {
        let Some(value) = self.value(tag) else {
            return Verdict::FilteredOut;
        };
        let rank = match self.order.rank(&value) {
            Ok(rank) => rank,
            Err(verdict) => return verdict,
        };
        if tag == chosen {
            return Verdict::Chosen;
        }
        let chosen_rank = self.value(chosen).and_then(|value| self.order.rank(&value).ok());
        match chosen_rank.map(|chosen_rank| rank.compare(&chosen_rank)) {
            Some(std::cmp::Ordering::Less) => Verdict::Behind,
            Some(std::cmp::Ordering::Equal) => Verdict::Equal,
            Some(std::cmp::Ordering::Greater) | None => Verdict::Ahead,
        }
    }

    /// The value by which the tag is ordered; None if the filter does not let it through.
    fn value(&self, tag: &str) -> Option<String> {
        match &self.filter {
            Some(filter) => filter.apply(tag),
            None => Some(tag.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
