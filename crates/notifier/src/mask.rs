//! Takes secrets out of texts that people and logs will see. Pure.
//!
//! A service may echo what it was sent, in its own spelling: as it is, escaped for JSON or a URL, or in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secret_mask::one_line;
use url::Url;

use crate::provider_type::ProviderType;
use crate::target::Target;

/// Shorter ones would tear words apart, and protect nothing.
const SHORTEST: usize = 4;
/// Parts of addresses and values of headers are words as often as secrets, if they are short.
const SHORTEST_PART: usize = 8;
/// Keys of Secrets whose values everybody may know.
const PUBLIC: [&str; 9] = [
    "username",
    "githubAppID",
    "githubAppInstallationID",
    "githubAppInstallationOwner",
    "githubAppBaseURL",
    "ca.crt",
    "tls.crt",
    "caFile",
    "certFile",
];

/// The secrets of a target, in all their spellings.
pub(crate) struct Mask(secret_mask::Mask);

impl Mask {
    /// The secrets of a target.
    pub(crate) fn from_target(target: &Target) -> Self {
        let mut mask = Self(secret_mask::Mask::default());
        mask.add(&target.token, SHORTEST);
        mask.add(&target.password, SHORTEST);
        if !target.password.is_empty() {
            mask.add(
                &STANDARD.encode(format!("{}:{}", target.username, target.password)),
                SHORTEST,
            );
        }
        for (key, value) in &target.secret {
            if !PUBLIC.contains(&key.as_str())
                && let Ok(value) = std::str::from_utf8(value)
            {
                mask.add(value, SHORTEST);
            }
        }
        for value in target.headers.values() {
            mask.add(value, SHORTEST_PART);
            if let Some((_, credentials)) = value.split_once(' ') {
                mask.add(credentials, SHORTEST_PART);
            }
        }
        mask.add_address(target);
        if let Some(proxy) = &target.proxy {
            mask.add_url(proxy, false);
        }
        mask
    }

    /// The text on one line, without secrets and without what cannot be shown, of at most so many bytes.
    pub(crate) fn line(&self, text: &str, longest: usize) -> String {
        let line = self.0.without_secrets(&one_line(text));
        if line.len() <= longest {
            return line;
        }
        let end = line.floor_char_boundary(longest - "…".len());
        format!("{}…", &line[..end])
    }

    /// Quotes the start of a longer text, without its last word, which may be the start of a secret.
    pub(crate) fn begin(&self, text: &str) -> String {
        self.0.without_secrets_or_starts(&one_line(text))
    }

    /// Some types have no URL for an address, or several.
    fn add_address(&mut self, target: &Target) {
        match target.type_ {
            ProviderType::GooglePubSub => {} // the name of a project
            ProviderType::Nats => target.address.split(',').for_each(|server| {
                let server = server.trim();
                match server.contains("://") {
                    true => self.add_url(server, false),
                    false => self.add_url(&format!("nats://{server}"), false),
                }
            }),
            ProviderType::AzureEventHub => {
                let pairs = target.address.split(';').filter_map(|pair| pair.split_once('='));
                let secrets = pairs.filter(|(name, _)| name.trim().starts_with("SharedAccess"));
                secrets.for_each(|(_, value)| self.add(value, SHORTEST));
            }
            type_ => self.add_url(&target.address, type_.has_secret_address()),
        }
    }

    fn add_url(&mut self, text: &str, path_is_secret: bool) {
        let Ok(url) = Url::parse(text) else {
            // it will never be connected to, and may be anything
            return self.add(text, SHORTEST_PART);
        };
        for part in [url.username(), url.password().unwrap_or_default()] {
            self.add(part, SHORTEST);
            self.add(&decoded(part), SHORTEST);
        }
        for (_, value) in url.query_pairs() {
            self.add(&value, SHORTEST_PART);
        }
        if !path_is_secret {
            return;
        }
        self.add(url.path(), SHORTEST_PART);
        for part in url.path_segments().into_iter().flatten() {
            self.add(part, SHORTEST_PART);
            self.add(&decoded(part), SHORTEST_PART);
        }
    }

    fn add(&mut self, secret: &str, shortest: usize) {
        self.0.add_spellings(secret, shortest);
    }
}

fn decoded(text: &str) -> String {
    let pairs = format!("{}=", text.replace('+', "%2B"));
    url::form_urlencoded::parse(pairs.as_bytes())
        .next()
        .map(|(name, _)| name.into_owned())
        .unwrap_or_default()
}
