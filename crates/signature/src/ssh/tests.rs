//! Signatures of the real ssh-keygen.

use testkit::git::signing::SshKey;

use super::*;

const PAYLOAD: &[u8] = b"tree 1\n\nwords\n";

#[track_caller]
fn verdict(signature: &[u8], lists: &[&str], payload: &[u8]) -> Result<String, Error> {
    let lists: Vec<&[u8]> = lists.iter().map(|list| list.as_bytes()).collect();
    let ours = verify(signature, payload, &lists, Timestamp::now());
    crate::probe::compare("ssh", signature, payload, &lists, ours.as_ref().ok());
    ours
}

fn problem(result: Result<String, Error>) -> &'static str {
    match result {
        Err(Error::NoMatchingKey(Mismatch::Refused { problem, .. })) => problem,
        other => panic!("{other:?}"),
    }
}

fn ed25519() -> SshKey {
    SshKey::generate(&["-t", "ed25519"]).unwrap()
}

#[test]
fn every_kind_of_key_verifies_what_it_signed_and_nothing_else() {
    let kinds: [&[&str]; 6] = [
        &["-t", "ed25519"],
        &["-t", "ecdsa", "-b", "256"],
        &["-t", "ecdsa", "-b", "384"],
        &["-t", "ecdsa", "-b", "521"],
        &["-t", "rsa", "-b", "2048"],
        &["-t", "rsa", "-b", "4096"],
    ];
    let noise = ed25519().public().unwrap();
    for kind in kinds {
        let key = SshKey::generate(kind).unwrap();
        let list = format!("# keys\n{noise}\n\n{}\n", key.public().unwrap());
        for hash in ["sha256", "sha512"] {
            let signature = key
                .sign(&["-O", &format!("hashalg={hash}")], "git", PAYLOAD)
                .unwrap();
            let fingerprint = key.fingerprint().unwrap();
            assert_eq!(
                verdict(&signature, &[&noise, &list], PAYLOAD),
                Ok(fingerprint),
                "{kind:?} {hash}"
            );
            let other = verdict(&signature, &[&list], b"other");
            assert_eq!(
                problem(other),
                "the signature is not one over this content",
                "{kind:?} {hash}"
            );
        }
    }
}

#[test]
fn weak_keys_are_refused() {
    let key = SshKey::generate(&["-t", "rsa", "-b", "1024"]).unwrap();
    let signature = key.sign(&[], "git", PAYLOAD).unwrap();
    let public = key.public().unwrap();
    let result = verify(&signature, PAYLOAD, &[public.as_bytes()], Timestamp::now());
    assert_eq!(problem(result), "RSA keys below 2048 bits are not safe");
}

#[test]
fn another_namespace_and_unknown_keys_are_refused() {
    let (key, other) = (ed25519(), ed25519());
    let public = key.public().unwrap();
    let file = key.sign(&[], "file", PAYLOAD).unwrap();
    let refused = problem(verdict(&file, &[&public], PAYLOAD));
    assert_eq!(refused, "the signature was made for another namespace than git");
    let signature = other.sign(&[], "git", PAYLOAD).unwrap();
    let error = verdict(&signature, &[&public], PAYLOAD).unwrap_err().to_string();
    let expected = format!(
        "unable to verify payload with any of the given authorized keys: no matching key: the signature was made with the \
         key {}, which is not among them",
        other.fingerprint().unwrap()
    );
    assert_eq!(error, expected);
}

#[test]
fn limits_of_the_list_hold_at_the_time_of_the_verification() {
    let key = ed25519();
    let public = key.public().unwrap();
    let signature = key.sign(&[], "git", PAYLOAD).unwrap();
    let check = |prefix: &str| {
        let list = format!("{prefix} {public}");
        verify(&signature, PAYLOAD, &[list.as_bytes()], Timestamp::now())
    };
    assert!(check("a@b valid-after=\"20200101\",valid-before=\"29990101\"").is_ok());
    assert_eq!(problem(check("a@b valid-before=\"20200101\"")), "it has expired");
    assert_eq!(problem(check("expiry-time=\"20200101\"")), "it has expired");
    assert_eq!(
        problem(check("a@b valid-after=\"29990101\"")),
        "it is not valid yet"
    );
    assert!(problem(check("cert-authority")).starts_with("it may only certify"));
    // Another line may trust it all the same.
    let list = format!("expiry-time=\"20200101\" {public}\n{public}");
    assert!(verify(&signature, PAYLOAD, &[list.as_bytes()], Timestamp::now()).is_ok());
}

#[test]
fn what_cannot_be_read_is_refused() {
    let key = ed25519();
    let public = key.public().unwrap();
    let signature = key.sign(&[], "git", PAYLOAD).unwrap();
    assert_eq!(verdict(b"", &[&public], PAYLOAD), Err(Error::Empty("signature")));
    assert_eq!(verdict(&signature, &[&public], b""), Err(Error::Empty("payload")));
    let unreadable = verdict(&signature, &["nonsense"], PAYLOAD).unwrap_err();
    assert_eq!(
        unreadable.to_string(),
        "unable to parse authorized keys: line 1: no key found"
    );
    // A list that can be read is used, whatever stands in another one.
    assert!(verdict(&signature, &["nonsense", &public], PAYLOAD).is_ok());
    let text = String::from_utf8(signature).unwrap();
    for length in 0..text.len() {
        let cut = &text.as_bytes()[..length];
        let whole = text.trim_end().len();
        let result = verify(cut, PAYLOAD, &[public.as_bytes()], Timestamp::now());
        assert_eq!(result.is_ok(), length >= whole, "{length}");
    }
    let body = text.lines().nth(1).unwrap();
    for (index, _) in body.char_indices() {
        let mut changed = body.to_owned();
        changed.replace_range(index..=index, if &body[index..=index] == "A" { "B" } else { "A" });
        let changed = text.replace(body, &changed);
        assert!(
            verify(
                changed.as_bytes(),
                PAYLOAD,
                &[public.as_bytes()],
                Timestamp::now()
            )
            .is_err()
        );
    }
}
