//! Names of releases: Helm takes no more than 53 characters, objects may have longer ones.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

/// The longest name of a release.
pub const LONGEST: usize = 53;
/// How much of the hash ends a name that was too long.
const HASH: usize = 12;

/// Returns the name, or the 40 first bytes of a longer one, a hyphen and the beginning of its SHA-256, as Flux does.
#[must_use]
pub fn shorten(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST {
        return Cow::Borrowed(name);
    }
    // Names of objects are ASCII; whatever else comes is not cut within a character.
    let kept = name.floor_char_boundary(LONGEST - HASH - 1);
    let hash = hex::encode(Sha256::digest(name.as_bytes()));
    Cow::Owned(format!("{}-{}", &name[..kept], &hash[..HASH]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_helm_would_refuse_are_shortened() {
        let longest = "a".repeat(LONGEST);
        assert!(matches!(shorten(&longest), Cow::Borrowed(name) if name == longest));
        let long = "a-very-long-name-of-a-release-that-nobody-would-type-by-hand";
        assert_eq!(
            shorten(long),
            "a-very-long-name-of-a-release-that-nobod-506fd8e2c464"
        );
        assert!(shorten(&"ü".repeat(40)).len() <= LONGEST);
    }
}
