//! Meaning of a Secret for ssh: `identity`, `known_hosts` and `password`, by the rules of Flux.
//!
//! What it means for http is [`transport::auth`]. Pure; reads no Secret.

use git_ssh::Proxy;
use git_ssh::algorithms::Algorithms;
use transport::auth::{Error, SecretData, text};
use transport::http;
use url::Url;

use super::ssh;

/// Reads the ssh settings of a Secret. Of the URL only the user counts; a password in it is not used.
pub fn ssh(
    url: &mut Url,
    secret: &SecretData,
    algorithms: Algorithms,
    proxy: Option<http::Proxy>,
) -> Result<ssh::Settings, Error> {
    let _ = url.set_password(None); // fails only for URLs that can have none
    if url.host_str().unwrap_or_default().is_empty() {
        return Err(Error::Missing("host"));
    }
    let required = |key: &'static str| {
        let value = secret.get(key).filter(|value| !value.is_empty());
        value.cloned().ok_or(Error::Missing(key))
    };
    let settings = ssh::Settings {
        identity: required("identity")?,
        known_hosts: required("known_hosts")?,
        passphrase: text(secret, "password"),
        algorithms,
        proxy: proxy.map(|http::Proxy { address, credentials }| Proxy { address, credentials }),
    };
    if settings.passphrase.is_none() && ssh::needs_passphrase(&settings.identity) {
        return Err(Error::MissingPassphrase);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = &'static [(&'static str, &'static str)];

    #[test]
    fn ssh_needs_a_key_and_the_keys_of_the_host() {
        let check = |url: &str, secret: Pairs| {
            let mut url = Url::parse(url).unwrap();
            let secret = secret
                .iter()
                .map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec()))
                .collect();
            let settings = ssh(&mut url, &secret, Algorithms::default(), None);
            settings.map(|settings| (url.to_string(), settings.passphrase))
        };
        let all: Pairs = &[("identity", "x"), ("known_hosts", "y"), ("password", "secret")];
        assert_eq!(
            check("ssh://git:secret@h/r", all),
            Ok(("ssh://git@h/r".to_owned(), Some("secret".to_owned())))
        );
        let cases: [(&str, Pairs, &str); 4] = [
            ("ssh:///r", all, "invalid 'ssh' auth option: 'host' is required"),
            (
                "ssh://h/r",
                &[],
                "invalid 'ssh' auth option: 'identity' is required",
            ),
            (
                "ssh://h/r",
                &[("known_hosts", "y")],
                "invalid 'ssh' auth option: 'identity' is required",
            ),
            (
                "ssh://h/r",
                &[("identity", "x")],
                "invalid 'ssh' auth option: 'known_hosts' is required",
            ),
        ];
        for (url, secret, message) in cases {
            assert_eq!(check(url, secret).unwrap_err().to_string(), message);
        }
        // Made for this test.
        let encrypted: Pairs = &[
            ("identity", include_str!("testdata/encrypted_key")),
            ("known_hosts", "y"),
        ];
        assert_eq!(
            check("ssh://h/r", encrypted).unwrap_err(),
            Error::MissingPassphrase
        );
    }
}
