use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _};
use rustls::{RootCertStore, client::WebPkiServerVerifier, client::danger::ServerCertVerifier as _};

use super::*;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn names() -> Vec<String> {
    vec![
        "source-controller.flux-system.svc".to_owned(),
        "127.0.0.1".to_owned(),
    ]
}

fn now() -> Timestamp {
    "2026-03-01T00:00:00Z".parse().unwrap()
}

/// Returns whether a client that trusts this bundle accepts the certificate for the name at this time.
fn accepts(bundle: &str, issued: &Issued, name: &str, at: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
        .build()
        .unwrap();
    let at = UnixTime::since_unix_epoch(Duration::from_secs(at.as_second().try_into().unwrap()));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier
        .verify_server_cert(&issued.certificate.cert[0], &[], &name, &[], at)
        .is_ok()
}

#[test]
fn the_first_authority_signs_at_once_for_its_names_and_only_for_a_day() {
    let first = Authorities::default().renewed(now()).unwrap().unwrap();
    let issued = first.issue(&names(), now()).unwrap();
    let bundle = first.bundle();
    for name in ["source-controller.flux-system.svc", "127.0.0.1"] {
        assert!(accepts(&bundle, &issued, name, now()));
        assert!(accepts(
            &bundle,
            &issued,
            name,
            earlier(now(), SignedDuration::from_mins(4))
        ));
        assert!(!accepts(&bundle, &issued, name, later(now(), HOUR * 25)));
    }
    assert!(!accepts(&bundle, &issued, "other.flux-system.svc", now()));
    let stranger = Authorities::default().renewed(now()).unwrap().unwrap();
    assert!(!accepts(&stranger.bundle(), &issued, "127.0.0.1", now()));
    assert!(issued.renew_at > now() && issued.renew_at < later(now(), DAY));
    assert_eq!(
        first.renewed(issued.renew_at).unwrap(),
        None,
        "nothing to change for months"
    );
}

#[test]
fn a_rotation_never_shows_a_certificate_that_a_client_cannot_know() {
    let first = Authorities::default().renewed(now()).unwrap().unwrap();
    let due = later(now(), SignedDuration::from_hours((365 - 120) * 24));
    let both = first.renewed(due).unwrap().unwrap();
    assert_eq!(both.0.len(), 2);
    // At first it is only announced: who has the old bundle accepts what is signed.
    let before = both.issue(&names(), due).unwrap();
    assert!(accepts(&first.bundle(), &before, "127.0.0.1", due));
    assert!(accepts(&both.bundle(), &before, "127.0.0.1", due));
    // Then it signs, and the old certificate is still accepted by who has the new bundle.
    let after = before.renew_at;
    assert!(
        after <= later(due, HOUR * 2),
        "the new authority takes over when it may: {after}"
    );
    let signed = both.issue(&names(), after).unwrap();
    assert!(!accepts(&first.bundle(), &signed, "127.0.0.1", after));
    assert!(accepts(&both.bundle(), &signed, "127.0.0.1", after));
    assert!(accepts(&both.bundle(), &before, "127.0.0.1", after));
    // The old one is dropped when it has expired.
    let end = later(now(), AUTHORITY_LIFE);
    let last = both.renewed(end).unwrap().unwrap();
    assert_eq!(last.0.len(), 1);
    assert_eq!(last.0[0], both.0[0]);
}

#[test]
fn a_controller_that_slept_for_years_starts_anew() {
    let first = Authorities::default().renewed(now()).unwrap().unwrap();
    let late = later(now(), AUTHORITY_LIFE * 3);
    let renewed = first.renewed(late).unwrap().unwrap();
    assert_eq!(renewed.0.len(), 1);
    let issued = renewed.issue(&names(), late).unwrap();
    assert!(accepts(&renewed.bundle(), &issued, "127.0.0.1", late));
}

#[test]
fn what_is_kept_is_read_again_and_nothing_else_is() {
    let first = Authorities::default().renewed(now()).unwrap().unwrap();
    assert_eq!(Authorities::parse(&first.to_json().unwrap()).unwrap(), first);
    for text in ["", "{}", "[]", "[{}]", "null"] {
        assert!(Authorities::parse(text.as_bytes()).is_err(), "{text}");
    }
    let many = Authorities(vec![first.0[0].clone(); 100]);
    assert!(Authorities::parse(&many.to_json().unwrap()).is_err());
    assert!(!format!("{first:?}").contains("PRIVATE"));
}
