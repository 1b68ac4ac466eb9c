use super::*;

const COMMIT: &str = "tree 1\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n";

fn check(object: &str, payload: &str, signature: &str) {
    let signed = Signed::of_commit(object.as_bytes());
    assert_eq!(String::from_utf8(signed.payload).unwrap(), payload);
    assert_eq!(String::from_utf8(signed.signature).unwrap(), signature);
}

#[test]
fn the_signature_of_a_commit_is_cut_out_of_its_header() {
    let plain = format!("{COMMIT}\ngpgsig stays in a message\n more\n");
    check(&plain, &plain, "");
    let signed = format!("{COMMIT}gpgsig -----BEGIN\n \n line\n -----END\nencoding x\n\ntext\n gpgsig no\n");
    let payload = format!("{COMMIT}encoding x\n\ntext\n gpgsig no\n");
    check(&signed, &payload, "-----BEGIN\n\nline\n-----END\n");
    let twin = format!("{COMMIT}gpgsig-sha256 a\n b\ngpgsig c\n d\n\ntext");
    check(&twin, &format!("{COMMIT}\ntext"), "c\nd\n");
    let merge = format!("{COMMIT}mergetag object 1\n gpgsig x\n y\ngpgsig z\n\ntext");
    check(
        &merge,
        &format!("{COMMIT}mergetag object 1\n gpgsig x\n y\n\ntext"),
        "z\n",
    );
    // Another header that only begins like it.
    let other = format!("{COMMIT}gpgsigs z\n\ntext");
    check(&other, &other, "");
}

#[test]
fn several_signatures_are_as_good_as_an_unknown_one() {
    let object = format!("{COMMIT}gpgsig -----BEGIN SSH SIGNATURE-----\ngpgsig b\n\ntext");
    let signed = Signed::of_commit(object.as_bytes());
    assert_eq!(signed.format(), Format::Unknown);
    assert_eq!(signed.payload, format!("{COMMIT}\ntext").into_bytes());
}

#[test]
fn the_signature_of_a_tag_is_at_its_end() {
    let text = "object 1\ntype commit\ntag v1\n\nwords\n-----BEGIN PGP SIGNATURE-----\nfirst\n";
    let object = format!("{text}-----BEGIN SSH SIGNATURE-----\nsecond\n");
    let signed = Signed::of_tag(object.as_bytes());
    assert_eq!(String::from_utf8(signed.payload.clone()).unwrap(), text);
    assert_eq!(signed.format(), Format::Ssh);
    let plain = Signed::of_tag(b"object 1\ntype commit\ntag v1\n\nwords\n");
    assert_eq!(plain.format(), Format::Absent);
    assert_eq!(plain.payload, b"object 1\ntype commit\ntag v1\n\nwords\n");
}

#[test]
fn a_tag_says_what_it_points_to() {
    let header = TagHeader::read(b"object abc\ntype commit\ntag v1 x\ntagger t\n\n").unwrap();
    assert_eq!((header.target.as_str(), header.points_to_tag), ("abc", false));
    assert_eq!(header.name, "v1 x");
    assert!(
        TagHeader::read(b"object abc\ntype tag\ntag v1")
            .unwrap()
            .points_to_tag
    );
    for broken in [
        "",
        "object abc",
        "type commit\nobject abc\ntag v1",
        "object a\ntype tree\ntag v1",
    ] {
        assert_eq!(TagHeader::read(broken.as_bytes()), None, "{broken}");
    }
}
