//! Certificates, and sprig's words where there is none.

use go_template::Value;

fn check(template: &str, expected: &str) {
    crate::testing::check(template, &Value::Nil, expected);
}

#[test]
fn certificates_are_made_and_signed() {
    check(
        r#"{{ $ca := genCAWithKey "x" 1 (genPrivateKey "ecdsa") }}{{ $c := genSignedCertWithKey "cn" (list "10.0.0.1" "::1") (list "h") 10 $ca (genPrivateKey "ed25519") }}{{ $c.Cert | trunc 28 }}{{ $c.Key | trunc 28 }}{{ typeOf $c }}"#,
        "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nsprig.certificate",
    );
    check(
        r#"{{ $c := genSelfSignedCert "cn" nil nil 10 }}{{ $b := buildCustomCert (b64enc $c.Cert) (b64enc $c.Key) }}{{ eq $b.Cert $c.Cert }}{{ $c.Key | trunc 31 }}"#,
        "true-----BEGIN RSA PRIVATE KEY-----",
    );
    check(
        r#"{{ $c := genCAWithKey "x" 1 (genPrivateKey "ecdsa") }}{{ $d := genSelfSignedCertWithKey "y" nil nil 1 $c.Key }}{{ eq $c.Key $d.Key }} {{ toJson $c | trunc 36 }}"#,
        r#"true {"Cert":"-----BEGIN CERTIFICATE-----"#,
    );
}

#[test]
fn what_cannot_be_certified_is_told_in_sprigs_words() {
    for (call, expected) in [
        (
            r#"genSelfSignedCert "cn" (list "notip") nil 1"#,
            "genSelfSignedCert: error parsing ip: notip",
        ),
        (
            r#"genSelfSignedCert "cn" (list 1) nil 1"#,
            "genSelfSignedCert: error parsing ip: 1 is not a string",
        ),
        (
            r#"genSelfSignedCert "cn" nil (list 1) 1"#,
            "genSelfSignedCert: error processing alternate dns name: 1 is not a string",
        ),
        (
            r#"genSelfSignedCert "cn" nil (list "é") 1"#,
            r#"genSelfSignedCert: error creating certificate: x509: "é" cannot be encoded as an IA5String"#,
        ),
        (
            r#"buildCustomCert "!" """#,
            "buildCustomCert: unable to decode base64 certificate",
        ),
        (
            r#"buildCustomCert "" "!""#,
            "buildCustomCert: unable to decode base64 private key",
        ),
        (
            r#"buildCustomCert "" """#,
            "buildCustomCert: unable to decode certificate",
        ),
        (
            r#"buildCustomCert ("-----BEGIN X-----\nYQ==\n-----END X-----\n" | b64enc) """#,
            "buildCustomCert: error parsing certificate: decodedCert.Bytes: x509: malformed certificate",
        ),
        (
            r#"buildCustomCert ("-----BEGIN X-----\nMAA=\n-----END X-----\n" | b64enc) """#,
            "buildCustomCert: error parsing certificate: decodedCert.Bytes: x509: malformed tbs certificate",
        ),
        (
            r#"genCAWithKey "x" 1 """#,
            "genCAWithKey: parsing private key: no PEM data in input",
        ),
        (
            r#"genCAWithKey "x" 1 "-----BEGIN X-----\nYQ==\n-----END X-----\n""#,
            "genCAWithKey: parsing private key: no private key data in PEM block of type X",
        ),
        (
            r#"genCAWithKey "x" 1 "-----BEGIN Q PRIVATE KEY-----\nYQ==\n-----END Q PRIVATE KEY-----\n""#,
            "genCAWithKey: parsing private key: invalid private key type Q PRIVATE KEY",
        ),
        (
            r#"genCAWithKey "x" 1 "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n""#,
            "genCAWithKey: parsing private key: decoding PEM as PKCS#8: asn1: structure error: tags don't match (16 vs {class:1 tag:8 length:101 isCompound:true}) {optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false} pkcs8 @2",
        ),
        (
            r#"genCAWithKey "x" 1 "-----BEGIN RSA PRIVATE KEY-----\nMAA=\n-----END RSA PRIVATE KEY-----\n""#,
            "genCAWithKey: parsing private key: parsing RSA private key from PEM: asn1: syntax error: sequence truncated",
        ),
        (
            r#"genCAWithKey "x" 1 (genPrivateKey "ecdsa" | replace "EC PRIVATE" "RSA PRIVATE")"#,
            "genCAWithKey: parsing private key: parsing RSA private key from PEM: x509: failed to parse private key (use ParseECPrivateKey instead for this key format)",
        ),
        (
            r#"genCAWithKey "x" 1 (genPrivateKey "ed25519" | replace "PRIVATE" "EC PRIVATE")"#,
            "genCAWithKey: parsing private key: parsing EC private key from PEM: x509: failed to parse private key (use ParsePKCS8PrivateKey instead for this key format)",
        ),
    ] {
        check(&format!("{{{{ {call} }}}}"), &format!("error calling {expected}"));
    }
    check(r#"{{ genPrivateKey "x" }}"#, "Unknown type x");
}

#[test]
fn a_key_that_is_not_that_of_the_signer_is_refused() {
    check(
        r#"{{ $key := genPrivateKey "ecdsa" }}{{ $c := genCAWithKey "x" 1 $key }}{{ $m := buildCustomCert (b64enc $c.Cert) (genPrivateKey "ecdsa" | b64enc) }}{{ genSignedCertWithKey "y" nil nil 1 $m $key }}"#,
        "error calling genSignedCertWithKey: error creating certificate: x509: provided PrivateKey doesn't match parent's PublicKey",
    );
}
