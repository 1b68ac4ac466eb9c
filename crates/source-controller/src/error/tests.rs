//! Conditions, reasons and messages of each step that fails.

use super::*;

fn refused(status: u16) -> http::Error {
    let status = reqwest::StatusCode::from_u16(status).unwrap();
    http::Error::Status {
        url: "http://h/r.git/info/refs".to_owned(),
        status,
        detail: Box::default(),
        retry_after: None,
    }
}

#[test]
fn every_step_has_its_condition_and_reason() {
    let git = |source| GitError::of_fetch("http://h/r.git".to_owned(), source);
    let range = || git_client::Error::MatchTag {
        range: ">=1".to_owned(),
        nearest: "there are no tags that could match".to_owned(),
    };
    let digest = |source| oci_client::Error::DetermineDigest(oci_client::PullError::Registry(source));
    let cases = [
        (
            Error::Unsupported {
                field: "spec.verify".to_owned(),
            },
            (None, "Unsupported"),
            "spec.verify is not supported by this controller yet",
        ),
        (
            Error::Oci(OciError::ValidateUrl {
                url: "oci://x:1".to_owned(),
                source: oci_client::name::Error::Tag("1".to_owned()),
            }),
            (Some("FetchFailed"), "URLInvalid"),
            "URL validation failed for 'oci://x:1': URL must not contain a tag; remove ':1'",
        ),
        (
            git(git_client::Error::Request(refused(401))),
            (Some("FetchFailed"), "GitOperationFailed"),
            "failed to checkout and determine revision: unable to clone 'http://h/r.git': authentication required: \
             'http://h/r.git/info/refs' answered 401 Unauthorized; the credentials are missing or wrong, see spec.secretRef",
        ),
        (
            git(git_client::Error::Request(refused(404))),
            (Some("FetchFailed"), "GitOperationFailed"),
            "failed to checkout and determine revision: unable to clone 'http://h/r.git': repository not found: \
             'http://h/r.git/info/refs' answered 404 Not Found; check the address, and whether the credentials may see it",
        ),
        (
            git(git_client::Error::FindReference {
                name: "refs/heads/x".to_owned(),
                nearest: Default::default(),
            }),
            (Some("FetchFailed"), "GitOperationFailed"),
            "failed to checkout and determine revision: unable to clone 'http://h/r.git': \
             couldn't find remote ref 'refs/heads/x'",
        ),
        (
            git(range()),
            (Some("FetchFailed"), "GitOperationFailed"),
            "failed to checkout and determine revision: no match found for semver: >=1 \
             (there are no tags that could match)",
        ),
        (
            git(git_client::Error::EmptyRepository),
            (Some("FetchFailed"), "EmptyGitRepository"),
            "git repository is empty",
        ),
        (
            Error::Oci(OciError::Pull(digest(oci_client::registry::Error::Request(
                refused(403),
            )))),
            (Some("FetchFailed"), "OCIArtifactPullFailed"),
            "failed to determine artifact digest: 'http://h/r.git/info/refs' answered 403 Forbidden; \
             the credentials do not allow it",
        ),
        (
            Error::Oci(OciError::Pull(digest(oci_client::registry::Error::Request(
                refused(404),
            )))),
            (Some("FetchFailed"), "OCIArtifactPullFailed"),
            "failed to determine artifact digest: 'http://h/r.git/info/refs' answered 404 Not Found; \
             check the address, and whether the credentials may see it",
        ),
        (
            Error::Oci(OciError::Pull(oci_client::Error::SelectLayer(
                oci_client::manifest::Error::NoLayers,
            ))),
            (Some("FetchFailed"), "OCIArtifactLayerOperationFailed"),
            "no layers found in artifact",
        ),
        (
            Error::Store(artifact::store::Error::Name("x".to_owned())),
            (Some("StorageOperationFailed"), "ArchiveOperationFailed"),
            "unable to archive artifact to storage: failed to name the artifact: \"x\" cannot be part of its path",
        ),
    ];
    for (error, condition, message) in cases {
        assert_eq!(error.condition(), condition, "{message}");
        assert_eq!(error.message(), message);
    }
}

#[test]
fn only_what_a_person_must_change_stalls() {
    assert_eq!(
        Error::Unsupported { field: String::new() }.disposition(),
        Disposition::Stalled
    );
    assert_eq!(Error::Abandoned.disposition(), Disposition::Retry);
    let unreachable = GitError::of_fetch(String::new(), git_client::Error::Request(refused(503)));
    assert_eq!(unreachable.disposition(), Disposition::Retry);
}
