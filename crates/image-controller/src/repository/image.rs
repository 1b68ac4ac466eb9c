//! The name of an image in a spec: without scheme and without tag.

use oci_client::name::{self, Name};

/// Why the name of an image is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// It has a scheme.
    #[error("image '{image}' should not include URL scheme; remove '{scheme}://'")]
    Scheme {
        /// As in the spec.
        image: String,
        /// The scheme.
        scheme: String,
    },
    /// It has a tag.
    #[error("image '{image}' should not include a tag; remove ':{tag}'")]
    Tag {
        /// As in the spec.
        image: String,
        /// The tag.
        tag: String,
    },
    /// It does not name a repository.
    #[error("image '{image}' is invalid: {source}")]
    Name {
        /// As in the spec.
        image: String,
        /// Why not.
        source: name::Error,
    },
}

/// Reads the name of an image.
pub(crate) fn parse(image: &str) -> Result<Name, Error> {
    if let Some((scheme, _)) = image.split_once("://") {
        return Err(Error::Scheme {
            image: image.to_owned(),
            scheme: scheme.to_owned(),
        });
    }
    Name::parse(&format!("oci://{image}")).map_err(|source| match source {
        name::Error::Tag(tag) => Error::Tag {
            image: image.to_owned(),
            tag,
        },
        source => Error::Name {
            image: image.to_owned(),
            source,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_neither_scheme_nor_tag() {
        for (image, expected) in [
            ("ghcr.io/org/app", Ok("ghcr.io/org/app")),
            ("alpine", Ok("index.docker.io/library/alpine")),
            ("localhost:5000/app", Ok("localhost:5000/app")),
            (
                "https://ghcr.io/app",
                Err("image 'https://ghcr.io/app' should not include URL scheme; remove 'https://'"),
            ),
            (
                "ghcr.io/app:v1",
                Err("image 'ghcr.io/app:v1' should not include a tag; remove ':v1'"),
            ),
        ] {
            let found = parse(image).map(|name| super::super::canonical_name(&name));
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
        assert!(parse("ghcr.io/APP").is_err());
        assert!(parse("").is_err());
    }
}
