//! Which commit an event is about.

use event::Event;

use crate::error::Error;

/// Bytes of a revision that are quoted.
const MAX_QUOTED: usize = 200;

/// The hash of the commit: that of the metadata, of the origin, or of the source's revision.
///
/// Forms are `main@sha1:…`, `tag@sha1:…`, `sha1:…` and, from before Flux 2.0, `main/…`.
pub(crate) fn commit(event: &Event) -> Result<String, Error> {
    let revision = event
        .revision()
        .ok_or_else(|| Error::invalid("missing revision metadata"))?;
    let hash = revision.rsplit([':', '/']).next().unwrap_or_default();
    let is_hash = matches!(hash.len(), 40 | 64) && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    // 64 digits are a commit only where Git says so; the digest of an OCI artifact is none.
    if !is_hash || revision.contains("sha256:") {
        let quoted: String = revision
            .chars()
            .filter(|c| !c.is_control())
            .take(MAX_QUOTED)
            .collect();
        return Err(Error::invalid(format!(
            "failed to extract commit hash from '{quoted}' revision"
        )));
    }
    Ok(hash.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "a1afe267b54f38b46b487f6e938a6fd508278c07";

    fn revision_of(metadata: &[(&str, &str)]) -> Result<String, String> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let event = Event {
            metadata: metadata.iter().map(owned).collect(),
            ..Event::default()
        };
        commit(&event).map_err(|error| error.to_string())
    }

    #[test]
    fn every_form_of_a_revision_has_its_commit() {
        for prefix in [
            "sha1:",
            "master@sha1:",
            "environment/dev@sha1:",
            "master/",
            "environment/dev/",
            "v1.0.0@sha1:",
            "",
        ] {
            assert_eq!(
                revision_of(&[("revision", &format!("{prefix}{HASH}"))]).unwrap(),
                HASH,
                "{prefix}"
            );
        }
    }

    #[test]
    fn the_commit_of_the_origin_comes_before_the_digest_of_the_artifact() {
        let digest = format!("latest@sha256:{}", "0".repeat(64));
        assert_eq!(
            revision_of(&[("revision", &digest)]).unwrap_err(),
            format!("failed to extract commit hash from '{digest}' revision")
        );
        let origin = format!("main@sha1:{HASH}");
        assert_eq!(
            revision_of(&[("revision", &digest), ("originRevision", &origin)]).unwrap(),
            HASH
        );
        let other = "b".repeat(40);
        assert_eq!(
            revision_of(&[("originRevision", &origin), ("commit", &other)]).unwrap(),
            other
        );
    }

    #[test]
    fn what_is_no_commit_is_refused() {
        assert_eq!(revision_of(&[]).unwrap_err(), "missing revision metadata");
        for revision in ["master", "6.5.0", "main@sha1:../../x", &"g".repeat(40)] {
            assert!(
                revision_of(&[("revision", revision)])
                    .unwrap_err()
                    .starts_with("failed to extract commit hash")
            );
        }
    }
}
