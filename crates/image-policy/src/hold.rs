//! Tags that people hold back: a policy passes over them until they are released. A tag that moves may be held at one digest.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Annotation of an ImagePolicy with its held tags: a JSON list of [`Hold`].
pub const ANNOTATION: &str = "windlass.dev/held-tags";
/// More of them are refused: by then a range or a filter says it better.
const MAX_HOLDS: usize = 100;
/// Characters of a tag, as registries have it.
const MAX_TAG: usize = 128;
/// Characters of a digest.
const MAX_DIGEST: usize = 140;
/// Characters of a reason.
const MAX_REASON: usize = 500;

/// One tag, and why it is held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The tag.
    pub tag: String,
    /// The digest at which the tag is held; empty if it is whatever it points to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The digest that is chosen in its place; empty if none is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instead: String,
    /// Why, in the words of who held it.
    #[serde(default)]
    pub reason: String,
    /// Since when, in RFC 3339.
    #[serde(default)]
    pub since: String,
}

/// The held tags of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holds(Vec<Hold>);

/// The annotation cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the annotation {ANNOTATION} is no list of held tags: {0}")]
pub struct Error(String);

impl Holds {
    /// Reads the annotation. Nothing is held without one.
    pub fn parse(annotation: Option<&str>) -> Result<Self, Error> {
        let Some(text) = annotation else {
            return Ok(Self::default());
        };
        let holds: Vec<Hold> = serde_json::from_str(text).map_err(|error| Error(error.to_string()))?;
        if holds.len() > MAX_HOLDS {
            return Err(Error(format!("it has more than {MAX_HOLDS}")));
        }
        Ok(Self(holds))
    }

    /// The hold of a tag, whatever it points to.
    pub fn get(&self, tag: &str) -> Option<&Hold> {
        self.0
            .iter()
            .find(|hold| hold.tag == tag && hold.digest.is_empty())
    }

    /// The hold of a tag at this digest alone.
    pub fn get_digest(&self, tag: &str, digest: &str) -> Option<&Hold> {
        let is_held = |hold: &&Hold| hold.tag == tag && !digest.is_empty() && hold.digest == digest;
        self.0.iter().find(is_held)
    }

    /// The hold of an image: of its tag, or of its tag at its digest.
    pub fn get_image(&self, tag: &str, digest: Option<&str>) -> Option<&Hold> {
        let at_digest = || self.get_digest(tag, digest.unwrap_or_default());
        self.get(tag).or_else(at_digest)
    }

    /// Returns whether a tag is held at one digest.
    pub fn has_digests(&self) -> bool {
        self.0.iter().any(|hold| !hold.digest.is_empty())
    }

    /// Returns whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Hold> {
        self.0.iter()
    }

    /// Holds a tag; one that is held already gets the new reason and time.
    ///
    /// # Errors
    /// When there are too many, or the tag is none.
    pub fn add(&mut self, hold: Hold) -> Result<(), Error> {
        if hold.tag.is_empty() || hold.tag.chars().count() > MAX_TAG {
            return Err(Error(format!("a tag has 1 to {MAX_TAG} characters")));
        }
        if hold.reason.chars().count() > MAX_REASON {
            return Err(Error(format!("a reason has at most {MAX_REASON} characters")));
        }
        if hold.digest.len() > MAX_DIGEST || hold.instead.len() > MAX_DIGEST {
            return Err(Error(format!("a digest has at most {MAX_DIGEST} characters")));
        }
        self.0
            .retain(|known| known.tag != hold.tag || known.digest != hold.digest);
        if self.0.len() >= MAX_HOLDS {
            return Err(Error(format!("it has {MAX_HOLDS} already")));
        }
        self.0.push(hold);
        Ok(())
    }

    /// Releases a tag; None releases all. Returns what was released.
    pub fn release(&mut self, tag: Option<&str>) -> Vec<Hold> {
        let is_released = |hold: &Hold| tag.is_none_or(|tag| hold.tag == tag);
        let (released, kept) = std::mem::take(&mut self.0).into_iter().partition(is_released);
        self.0 = kept;
        released
    }

    /// The value of the annotation; None if nothing is held.
    pub fn annotation(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        serde_json::to_string(&self.0).ok()
    }
}

/// In one line of bounded length, whatever the annotation has.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |text: &str, longest: usize| -> String {
            text.chars().filter(|c| !c.is_control()).take(longest).collect()
        };
        f.write_str("held")?;
        if !self.digest.is_empty() {
            write!(f, " at {}", line(&self.digest, MAX_DIGEST))?;
        }
        if !self.since.is_empty() {
            write!(f, " since {}", line(&self.since, 40))?;
        }
        if !self.reason.is_empty() {
            write!(f, ": {}", line(&self.reason, MAX_REASON))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(tag: &str, reason: &str) -> Hold {
        Hold {
            tag: tag.to_owned(),
            reason: reason.to_owned(),
            since: "2026-11-24T09:00:00Z".to_owned(),
            ..Hold::default()
        }
    }

    #[test]
    fn holds_are_read_as_they_were_written() {
        let mut holds = Holds::default();
        assert_eq!(holds.annotation(), None);
        holds.add(hold("1.1.0", "errors")).unwrap();
        holds.add(hold("1.2.0", "")).unwrap();
        holds.add(hold("1.1.0", "many errors")).unwrap();
        let text = holds.annotation().unwrap();
        let mut read = Holds::parse(Some(&text)).unwrap();
        assert_eq!(read, holds);
        assert_eq!(
            read.get("1.1.0").unwrap().to_string(),
            "held since 2026-11-24T09:00:00Z: many errors"
        );
        assert_eq!(read.release(Some("1.1.0")).len(), 1);
        assert!(read.get("1.1.0").is_none() && !read.is_empty());
        assert_eq!(read.release(None).len(), 1);
        assert_eq!(Holds::parse(None).unwrap(), read);
    }

    #[test]
    fn a_tag_that_moves_is_held_at_one_digest() {
        let mut holds = Holds::default();
        let at = |digest: &str, instead: &str| Hold {
            digest: digest.to_owned(),
            instead: instead.to_owned(),
            ..hold("released", "errors")
        };
        holds.add(at("sha256:2", "sha256:1")).unwrap();
        holds.add(at("sha256:3", "sha256:1")).unwrap();
        let read = Holds::parse(holds.annotation().as_deref()).unwrap();
        assert_eq!(read, holds);
        assert!(read.get("released").is_none() && read.has_digests());
        assert_eq!(
            read.get_digest("released", "sha256:3").unwrap().instead,
            "sha256:1"
        );
        assert_eq!(
            read.get_image("released", Some("sha256:2")).unwrap().to_string(),
            "held at sha256:2 since 2026-11-24T09:00:00Z: errors"
        );
        for image in [
            ("released", Some("sha256:1")),
            ("released", None),
            ("other", Some("sha256:2")),
        ] {
            assert_eq!(read.get_image(image.0, image.1), None, "{image:?}");
        }
        assert_eq!(holds.release(Some("released")).len(), 2);
        assert!(holds.add(at(&"x".repeat(141), "")).is_err());
    }

    #[test]
    fn an_annotation_is_bounded_and_shown_in_a_line() {
        for text in ["", "x", "{}", r#"[{"reason": "no tag"}]"#] {
            let error = Holds::parse(Some(text)).unwrap_err().to_string();
            assert!(
                error.starts_with("the annotation windlass.dev/held-tags is no list of held tags: "),
                "{error}"
            );
        }
        let many: Vec<_> = (0..101).map(|n| hold(&n.to_string(), "")).collect();
        assert!(Holds::parse(Some(&serde_json::to_string(&many).unwrap())).is_err());
        assert!(Holds::default().add(hold("", "")).is_err());
        assert!(Holds::default().add(hold("1", &"x".repeat(501))).is_err());
        let hostile = hold("1", &format!("a\nb\u{1b}[31m{}", "x".repeat(9000)));
        let shown = hostile.to_string();
        assert!(!shown.contains(char::is_control) && shown.len() < 600, "{shown}");
    }
}
