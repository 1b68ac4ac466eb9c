//! Signatures and keys of the real gpg. `GO_CRYPTO_PROBE` may name a program that asks go-crypto about the same cases.

use std::sync::LazyLock;

use testkit::git::signing::Gpg;

use super::*;

const PAYLOAD: &[u8] = b"tree 1\nauthor a <a@b> 1 +0000\n\nwords\n";
/// Signs and makes keys in the past.
const IN_2020: &str = "--faked-system-time=20200101T000000!";

struct Keys {
    gpg: Gpg,
    /// Primary key that signs.
    plain: String,
    other: String,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let gpg = Gpg::new().unwrap();
    let generate = |owner: &str| gpg.generate(&[], owner, "ed25519", "sign", "never").unwrap();
    Keys {
        plain: generate("plain <plain@example.com>"),
        other: generate("other <other@example.com>"),
        gpg,
    }
});

fn now() -> Timestamp {
    Timestamp::now()
}

fn id(fingerprint: &str) -> String {
    fingerprint[fingerprint.len() - 16..].to_owned()
}

/// The verdict, after go-crypto was asked too where it is there. `same` says whether it must decide alike.
#[track_caller]
fn verdict(signature: &[u8], rings: &[&[u8]], payload: &[u8]) -> Result<String, Error> {
    let ours = verify(signature, payload, rings, now());
    crate::probe::compare("openpgp", signature, payload, rings, ours.as_ref().ok());
    ours
}

#[track_caller]
fn refusal(signature: &[u8], rings: &[&[u8]]) -> Refusal {
    match verdict(signature, rings, PAYLOAD) {
        Err(Error::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_good_signature_names_the_primary_key_in_all_formats_of_the_ring() {
    let Keys { gpg, plain, other } = &*KEYS;
    let signature = gpg.sign(&[], plain, PAYLOAD).unwrap();
    let (ring, noise) = (gpg.export(plain).unwrap(), gpg.export(other).unwrap());
    let binary = gpg.export_binary(plain).unwrap();
    let both = gpg.gpg(&["--armor", "--export", other, plain], &[]).unwrap();
    for rings in [vec![&ring], vec![&noise, &ring], vec![&both]] {
        let rings: Vec<&[u8]> = rings.into_iter().map(Vec::as_slice).collect();
        assert_eq!(verdict(&signature, &rings, PAYLOAD), Ok(id(plain)));
    }
    assert_eq!(verify(&signature, PAYLOAD, &[&binary], now()), Ok(id(plain)));
    let broken = b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nnonsense".as_slice();
    assert_eq!(verdict(&signature, &[broken, &ring], PAYLOAD), Ok(id(plain)));
}

#[test]
fn every_algorithm_of_gpg_is_understood() {
    let gpg = Gpg::new().unwrap();
    for algorithm in [
        "rsa2048", "rsa3072", "nistp256", "nistp384", "nistp521", "ed25519", "dsa2048",
    ] {
        let key = gpg.generate(&[], algorithm, algorithm, "sign", "never").unwrap();
        let signature = gpg.sign(&[], &key, PAYLOAD).unwrap();
        let ring = gpg.export(&key).unwrap();
        assert_eq!(
            verdict(&signature, &[&ring], PAYLOAD),
            Ok(id(&key)),
            "{algorithm}"
        );
        let other = verdict(&signature, &[&ring], b"other");
        assert!(
            matches!(
                other,
                Err(Error::Refused {
                    reason: Refusal::Mismatch,
                    ..
                })
            ),
            "{algorithm}: {other:?}"
        );
        let text = gpg.sign(&["--textmode"], &key, PAYLOAD).unwrap();
        assert_eq!(
            verdict(&text, &[&ring], PAYLOAD),
            Ok(id(&key)),
            "{algorithm} as text"
        );
    }
}

#[test]
fn short_rsa_keys_are_refused() {
    let gpg = Gpg::new().unwrap();
    let key = gpg.generate(&[], "short", "rsa1024", "sign", "never").unwrap();
    let signature = gpg.sign(&[], &key, PAYLOAD).unwrap();
    let ring = gpg.export(&key).unwrap();
    let refused = verify(&signature, PAYLOAD, &[&ring], now())
        .unwrap_err()
        .to_string();
    assert!(
        refused.ends_with("RSA keys below 2048 bits are not safe"),
        "{refused}"
    );
}

#[test]
fn unknown_keys_are_named() {
    let Keys { gpg, plain, other } = &*KEYS;
    let signature = gpg.sign(&[], plain, PAYLOAD).unwrap();
    let ring = gpg.export(other).unwrap();
    let error = verdict(&signature, &[&ring], PAYLOAD).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "unable to verify payload with any of the given key rings: no matching key: the signature was made with key {}",
            id(plain)
        )
    );
}

#[test]
fn what_cannot_be_read_is_refused() {
    let Keys { gpg, plain, .. } = &*KEYS;
    let (signature, ring) = (gpg.sign(&[], plain, PAYLOAD).unwrap(), gpg.export(plain).unwrap());
    let text = String::from_utf8(signature.clone()).unwrap();
    let cases: [(&[u8], &[u8], &str); 6] = [
        (b"", &ring, "signature is empty"),
        (
            &signature,
            b"",
            "unable to read armored key ring: there is no key in it",
        ),
        (
            &signature,
            b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n",
            "unable to read armored key ring",
        ),
        (
            &signature,
            &signature,
            "expected 'PGP PUBLIC KEY BLOCK', got: PGP SIGNATURE",
        ),
        (
            &ring,
            &ring,
            "expected 'PGP SIGNATURE', got: PGP PUBLIC KEY BLOCK",
        ),
        (
            b"-----BEGIN PGP SIGNATURE-----\n\n!!!\n-----END PGP SIGNATURE-----",
            &ring,
            "cannot be read",
        ),
    ];
    for (signature, ring, expected) in cases {
        let error = verdict(signature, &[ring], PAYLOAD).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} is not {expected}");
    }
    for length in (30..text.len()).step_by(7) {
        let cut = &text.as_bytes()[..length];
        let _ = verify(cut, PAYLOAD, &[&ring], now()); // whatever it says, it says it
    }
    assert_eq!(
        verify(&signature, b"", &[&ring], now()),
        Err(Error::Empty("payload"))
    );
}

#[test]
fn subkeys_sign_for_their_primary_key() {
    let gpg = Gpg::new().unwrap();
    let primary = gpg.generate(&[], "owner", "ed25519", "cert", "never").unwrap();
    let subkey = gpg.add_subkey(&primary, "ed25519", "sign", "never").unwrap();
    let signature = gpg.sign(&[], &format!("{subkey}!"), PAYLOAD).unwrap();
    let before = gpg.export(&primary).unwrap();
    assert_eq!(verdict(&signature, &[&before], PAYLOAD), Ok(id(&primary)));

    gpg.edit(&primary, &["key 1", "revkey", "y", "0", "", "y", "save"])
        .unwrap();
    let revoked = gpg.export(&primary).unwrap();
    assert_eq!(refusal(&signature, &[&revoked]), Refusal::Key(Unfit::Revoked));
    assert!(verdict(&signature, &[&revoked, &before], PAYLOAD).is_ok());
}

#[test]
fn a_key_that_is_not_there_to_sign_does_not() {
    let gpg = Gpg::new().unwrap();
    let key = gpg.generate(&[], "owner", "ed25519", "sign", "never").unwrap();
    let signature = gpg.sign(&[], &key, PAYLOAD).unwrap();
    // A newer self-signature takes the permission away.
    gpg.edit(&key, &["change-usage", "S", "Q", "save"]).unwrap();
    let ring = gpg.export(&key).unwrap();
    assert_eq!(refusal(&signature, &[&ring]), Refusal::Key(Unfit::NotForSigning));
}

#[test]
fn revoked_keys_verify_nothing() {
    let gpg = Gpg::new().unwrap();
    let key = gpg.generate(&[], "owner", "ed25519", "sign", "never").unwrap();
    let signature = gpg.sign(&[], &key, PAYLOAD).unwrap();
    assert!(verdict(&signature, &[&gpg.export(&key).unwrap()], PAYLOAD).is_ok());
    gpg.revoke(&key).unwrap();
    let ring = gpg.export(&key).unwrap();
    assert_eq!(refusal(&signature, &[&ring]), Refusal::Key(Unfit::Revoked));
}

#[test]
fn a_revoked_name_takes_the_key_with_it_only_when_it_is_the_one_that_speaks() {
    let gpg = Gpg::new().unwrap();
    let key = gpg
        .generate(&[], "first <a@b.c>", "ed25519", "sign", "never")
        .unwrap();
    gpg.gpg(&["--quick-add-uid", &key, "second <d@e.f>"], &[])
        .unwrap();
    let signature = gpg.sign(&[], &key, PAYLOAD).unwrap();
    gpg.gpg(&["--quick-revoke-uid", &key, "first <a@b.c>"], &[])
        .unwrap();
    assert_eq!(
        verdict(&signature, &[&gpg.export(&key).unwrap()], PAYLOAD),
        Ok(id(&key))
    );
}

#[test]
fn nothing_counts_after_its_end_or_before_its_beginning() {
    let gpg = Gpg::new().unwrap();
    let old = |end| {
        gpg.generate(&[IN_2020], &format!("until {end}"), "ed25519", "sign", end)
            .unwrap()
    };
    let (expired, lasting) = (old("1y"), old("never"));
    let signature = gpg.sign(&[IN_2020], &expired, PAYLOAD).unwrap();
    let ring = gpg.export(&expired).unwrap();
    assert_eq!(refusal(&signature, &[&ring]), Refusal::Key(Unfit::Expired));
    // A longer life, given later, brings it back.
    gpg.gpg(&["--quick-set-expire", &expired, "50y"], &[]).unwrap();
    assert_eq!(
        verdict(&signature, &[&gpg.export(&expired).unwrap()], PAYLOAD),
        Ok(id(&expired))
    );

    let ring = gpg.export(&lasting).unwrap();
    let lasting_signature = gpg.sign(&[IN_2020], &lasting, PAYLOAD).unwrap();
    assert_eq!(verdict(&lasting_signature, &[&ring], PAYLOAD), Ok(id(&lasting)));
    let short = gpg
        .sign(&[IN_2020, "--default-sig-expire=1y"], &lasting, PAYLOAD)
        .unwrap();
    assert_eq!(refusal(&short, &[&ring]), Refusal::SignatureExpired);
    let early = gpg
        .sign(&["--faked-system-time=20700101T000000!"], &lasting, PAYLOAD)
        .unwrap();
    assert_eq!(refusal(&early, &[&ring]), Refusal::SignatureExpired);

    let subkey = gpg
        .generate(&[IN_2020], "with a subkey", "ed25519", "cert", "never")
        .unwrap();
    gpg.gpg(
        &[IN_2020, "--quick-add-key", &subkey, "ed25519", "sign", "1y"],
        &[],
    )
    .unwrap();
    let signature = gpg.sign(&[IN_2020], &subkey, PAYLOAD).unwrap();
    assert_eq!(
        refusal(&signature, &[&gpg.export(&subkey).unwrap()]),
        Refusal::Key(Unfit::Expired)
    );
}

#[test]
fn sha1_is_refused_in_signatures_and_unknown_critical_notations_too() {
    let Keys { gpg, plain, .. } = &*KEYS;
    let ring = gpg.export(plain).unwrap();
    let rsa = gpg.generate(&[], "rsa", "rsa2048", "sign", "never").unwrap();
    let arguments = ["--digest-algo=SHA1", "--allow-weak-digest-algos"];
    let weak = gpg.sign(&arguments, &rsa, PAYLOAD).unwrap();
    let rsa = gpg.export(&rsa).unwrap();
    let refused = verify(&weak, PAYLOAD, &[&rsa], now()).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Refused {
                reason: Refusal::WeakHash,
                ..
            }
        ),
        "{refused}"
    );
    let notation = gpg.sign(&["--sig-notation=!a@b.c=d"], plain, PAYLOAD).unwrap();
    assert_eq!(refusal(&notation, &[&ring]), Refusal::CriticalNotation);
    let harmless = gpg.sign(&["--sig-notation=a@b.c=d"], plain, PAYLOAD).unwrap();
    assert_eq!(verdict(&harmless, &[&ring], PAYLOAD), Ok(id(plain)));
}

#[test]
fn a_subkey_that_belongs_to_another_key_is_not_believed() {
    let gpg = Gpg::new().unwrap();
    let victim = gpg.generate(&[], "victim", "ed25519", "cert", "never").unwrap();
    let thief = gpg.generate(&[], "thief", "ed25519", "cert", "never").unwrap();
    let subkey = gpg.add_subkey(&thief, "ed25519", "sign", "never").unwrap();
    let signature = gpg.sign(&[], &format!("{subkey}!"), PAYLOAD).unwrap();
    // The thief's subkey, with its signatures, behind the victim's key.
    let (victim, thief) = (
        gpg.export_binary(&victim).unwrap(),
        gpg.export_binary(&thief).unwrap(),
    );
    let tail = packets_from(&thief, 14);
    let forged = [victim.as_slice(), tail].concat();
    let result = verify(&signature, PAYLOAD, &[&forged], now());
    assert!(result.is_err(), "{result:?}");
}

/// The packets from the first one of this kind on; all have lengths of the old format with one or two bytes.
fn packets_from(mut bytes: &[u8], tag: u8) -> &[u8] {
    loop {
        let first = bytes[0];
        if (first >> 2) & 0xf == tag {
            return bytes;
        }
        let skip = match first & 3 {
            0 => 2 + usize::from(bytes[1]),
            1 => 3 + usize::from(u16::from_be_bytes([bytes[1], bytes[2]])),
            _ => panic!("a long packet"),
        };
        bytes = &bytes[skip..];
    }
}
