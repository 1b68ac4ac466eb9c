//! Versions with metadata: how Flux says that the same version of a chart was built from something else.

use go_semver::Version;

use crate::error::{Error, Step, Words, during};

/// The version with this metadata, written out in full (`1.0` becomes `1.0.0+metadata`); the version itself for none.
///
/// # Errors
/// When one of them is not as the specification of semantic versions has it.
pub fn with_metadata(version: &str, metadata: &str) -> Result<String, Error> {
    if metadata.is_empty() {
        return Ok(version.to_owned());
    }
    let failed = |what: &str, error: go_semver::Error| Words(format!("failed to {what}: {error}"));
    let parsed = Version::parse(version)
        .map_err(|error| failed("parse version from chart metadata as SemVer", error))
        .map_err(during(Step::Metadata))?;
    let patched = parsed
        .set_metadata(metadata)
        .map_err(|error| failed("set SemVer metadata on chart version", error))
        .map_err(during(Step::Metadata))?;
    Ok(patched.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_replaces_what_was_there() {
        let cases = [
            ("1.2.3", "", Some("1.2.3")),
            ("v1.2", "", Some("v1.2")),
            ("1.2.3", "abc.4", Some("1.2.3+abc.4")),
            ("1.2.3-rc.1+x", "4", Some("1.2.3-rc.1+4")),
            ("v1.2", "4", Some("1.2.0+4")),
            ("1.2.3", "a_b", None),
            ("x", "4", None),
        ];
        for (version, metadata, expected) in cases {
            let found = with_metadata(version, metadata).ok();
            assert_eq!(found.as_deref(), expected, "{version} {metadata}");
        }
    }
}
