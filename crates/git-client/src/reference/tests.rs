//! References against lists of refs.

use super::*;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const C: &str = "cccccccccccccccccccccccccccccccccccccccc";

fn id(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.as_bytes()).unwrap()
}

fn refs() -> Vec<Ref> {
    let direct = |name: &str, hex| Ref::Direct {
        full_ref_name: name.into(),
        object: id(hex),
    };
    let annotated = |name: &str, tag, hex| Ref::Peeled {
        full_ref_name: name.into(),
        tag: id(tag),
        object: id(hex),
    };
    vec![
        Ref::Symbolic {
            full_ref_name: "HEAD".into(),
            target: "refs/heads/main".into(),
            tag: None,
            object: id(A),
        },
        direct("refs/heads/main", A),
        direct("refs/heads/main-2", B),
        direct("refs/heads/feature/x", B),
        direct("refs/pull/1/head", C),
        direct("refs/tags/v1.0.0", A),
        annotated("refs/tags/v1.2.0", C, B),
        direct("refs/tags/release/v9.9.9", A),
        direct("refs/tags/latest", A),
    ]
}

fn resolve(fields: Fields<'_>) -> Result<String, String> {
    let reference = Reference::from_fields(fields);
    reference.check().map_err(|error| error.to_string())?;
    reference
        .resolve(&refs())
        .map(|resolved| resolved.revision)
        .map_err(|error| error.to_string())
}

#[test]
fn revisions_are_written_as_flux_writes_them() {
    let none = Fields::default();
    let cases = [
        (
            Fields {
                branch: Some("main"),
                ..none
            },
            format!("main@sha1:{A}"),
        ),
        (
            Fields {
                branch: Some("feature/x"),
                ..none
            },
            format!("feature/x@sha1:{B}"),
        ),
        (
            Fields {
                tag: Some("v1.0.0"),
                ..none
            },
            format!("v1.0.0@sha1:{A}"),
        ),
        (
            Fields {
                tag: Some("v1.2.0"),
                ..none
            },
            format!("v1.2.0@sha1:{B}"),
        ),
        (
            Fields {
                semver: Some(">=1.0"),
                ..none
            },
            format!("v1.2.0@sha1:{B}"),
        ),
        (
            Fields {
                semver: Some("~1.0"),
                ..none
            },
            format!("v1.0.0@sha1:{A}"),
        ),
        (
            Fields {
                name: Some("refs/pull/1/head"),
                ..none
            },
            format!("refs/pull/1/head@sha1:{C}"),
        ),
        (
            Fields {
                name: Some("refs/heads/main"),
                ..none
            },
            format!("refs/heads/main@sha1:{A}"),
        ),
        (
            Fields {
                name: Some("refs/tags/v1.2.0"),
                ..none
            },
            format!("refs/tags/v1.2.0@sha1:{B}"),
        ),
        (
            Fields {
                name: Some("refs/tags/v1.2.0^{}"),
                ..none
            },
            format!("refs/tags/v1.2.0^{{}}@sha1:{B}"),
        ),
        (
            Fields {
                commit: Some(C),
                ..none
            },
            format!("sha1:{C}"),
        ),
        (
            Fields {
                commit: Some(C),
                branch: Some("main"),
                ..none
            },
            format!("main@sha1:{C}"),
        ),
        (
            Fields {
                commit: Some(C),
                name: Some("refs/x"),
                ..none
            },
            format!("refs/x@sha1:{C}"),
        ),
    ];
    for (fields, revision) in cases {
        assert_eq!(resolve(fields), Ok(revision), "{fields:?}");
    }
}

#[test]
fn of_several_fields_the_most_exact_counts() {
    let all = Fields {
        branch: Some("main"),
        tag: Some("v1.0.0"),
        semver: Some("*"),
        name: Some("refs/pull/1/head"),
        commit: None,
    };
    assert_eq!(resolve(all), Ok(format!("refs/pull/1/head@sha1:{C}")));
    assert_eq!(
        resolve(Fields { name: None, ..all }),
        Ok(format!("v1.0.0@sha1:{A}"))
    );
    assert_eq!(
        resolve(Fields {
            name: Some(""),
            tag: Some(""),
            ..all
        }),
        Ok(format!("v1.2.0@sha1:{B}"))
    );
    let default = Reference::from_fields(Fields::default());
    assert_eq!(default, Reference::Branch("master".to_owned()));
}

#[test]
fn what_is_absent_is_named() {
    let none = Fields::default();
    let cases = [
        (
            Fields {
                branch: Some("mai"),
                ..none
            },
            "couldn't find remote ref 'refs/heads/mai'",
        ),
        (
            Fields {
                tag: Some("v1"),
                ..none
            },
            "couldn't find remote ref 'refs/tags/v1'",
        ),
        (
            Fields {
                semver: Some(">=2"),
                ..none
            },
            "no match found for semver: >=2",
        ),
        (
            Fields {
                semver: Some("latest"),
                ..none
            },
            "semver parse error",
        ),
        (
            Fields {
                name: Some("refs/pull/2/head"),
                ..none
            },
            "unable to resolve ref 'refs/pull/2/head' to a specific commit",
        ),
        (
            Fields {
                commit: Some("main"),
                ..none
            },
            "failed to parse commit 'main': a commit is named by all of its 40 hexadecimal digits",
        ),
        (
            Fields {
                commit: Some(C),
                branch: Some("gone"),
                ..none
            },
            "couldn't find remote ref 'refs/heads/gone'",
        ),
        (
            Fields {
                name: Some("/refs/heads/main"),
                ..none
            },
            "ref '/refs/heads/main' is invalid",
        ),
        (
            Fields {
                branch: Some("a b"),
                ..none
            },
            "ref 'a b' is invalid",
        ),
        (
            Fields {
                branch: Some("a\nwant x"),
                ..none
            },
            "ref 'a\nwant x' is invalid",
        ),
    ];
    for (fields, message) in cases {
        // What there is instead comes after that.
        let told = resolve(fields).map_err(|error| {
            error
                .split(['(', ';'])
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_owned()
        });
        assert_eq!(told, Err(message.to_owned()), "{fields:?}");
    }
}

#[test]
fn an_unborn_head_means_an_empty_repository() {
    let unborn = Ref::Unborn {
        full_ref_name: "HEAD".into(),
        target: "refs/heads/main".into(),
    };
    let error = Reference::Branch("main".to_owned())
        .resolve(&[unborn])
        .unwrap_err();
    assert!(matches!(error, Error::EmptyRepository), "{error}");
}

#[test]
fn only_the_refs_that_are_needed_are_asked_for() {
    let prefixes = |fields| Reference::from_fields(fields).prefixes();
    let none = Fields::default();
    assert_eq!(
        prefixes(Fields {
            branch: Some("main"),
            ..none
        }),
        ["refs/heads/main", "HEAD"]
    );
    assert_eq!(
        prefixes(Fields {
            semver: Some("*"),
            ..none
        }),
        ["refs/tags/"]
    );
    assert_eq!(
        prefixes(Fields {
            name: Some("refs/tags/a^{}"),
            ..none
        }),
        ["refs/tags/a"]
    );
    assert_eq!(
        prefixes(Fields {
            commit: Some(A),
            ..none
        }),
        ["HEAD"]
    );
}
