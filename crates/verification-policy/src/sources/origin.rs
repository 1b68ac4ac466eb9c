//! Where a source is, in one spelling, for rules: who writes the address may choose among many.

use oci_client::image_name::ImageName;
use percent_encoding::percent_decode_str;
use url::Url;

const OCI: &str = "oci://";
/// Beginning of the places of what is fetched without TLS, or by a certificate that no one checks.
const INSECURE: &str = "http://";

/// Where a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Host and path, such as `github.com/org/app`; or why that is not known.
    pub(super) place: Result<String, String>,
    own_proxy: bool,
    own_authorities: bool,
}

impl Origin {
    /// At this address, over http, https, ssh or oci. `insecure` says that no certificate is checked.
    pub fn of_url(url: &str, insecure: bool) -> Self {
        Self {
            place: place(url, insecure),
            own_proxy: false,
            own_authorities: false,
        }
    }

    /// Asked by a proxy, or trusting certificate authorities, that the source itself names.
    #[must_use]
    pub fn asked_by(self, own_proxy: bool, own_authorities: bool) -> Self {
        Self {
            own_proxy,
            own_authorities,
            ..self
        }
    }

    /// Something at another address that is asked in the same way, such as a submodule.
    #[must_use]
    pub fn elsewhere(&self, url: &str) -> Self {
        Self::of_url(url, false).asked_by(self.own_proxy, self.own_authorities)
    }

    /// Returns whether anything may answer: the proxy is the source's own, and the certificate says what the source likes.
    pub(super) fn is_intercepted(&self) -> bool {
        let is_open = self.place.as_ref().is_ok_and(|place| place.starts_with(INSECURE));
        self.own_proxy && (self.own_authorities || is_open)
    }

    /// Something with a name at this place, such as a chart of a repository.
    #[must_use]
    pub fn with_name(self, name: &str) -> Self {
        let place = self.place.and_then(|place| {
            let name = clean(name)?;
            Ok(format!("{place}/{name}"))
        });
        Self { place, ..self }
    }
}

fn place(url: &str, insecure: bool) -> Result<String, String> {
    if let Some(name) = url.strip_prefix(OCI) {
        // Tags and digests are not part of such an address.
        let name = ImageName::parse(name).map_err(|error| error.to_string())?;
        let prefix = if insecure { INSECURE } else { "" };
        return Ok(format!("{prefix}{}", name.repository()));
    }
    // Some read a backslash as a slash, and others as part of a user's name: `ssh://good\\@evil/app` is at evil.
    if url.contains(['\\', ' ']) || url.contains(char::is_control) {
        return Err("its address has a backslash, a space or a control character".to_owned());
    }
    let (scheme, rest) = url.split_once("://").ok_or("its address has no scheme")?;
    let default_port = match scheme.to_ascii_lowercase().as_str() {
        "https" => 443,
        "http" => 80,
        "ssh" => 22,
        _ => return Err("its address is none over http, https, ssh or oci".to_owned()),
    };
    // Of what the standard for addresses knows well, so that hosts and paths are read as they are asked for.
    let parsed =
        Url::parse(&format!("https://{rest}")).map_err(|error| format!("its address is none: {error}"))?;
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err("its address has a query or a fragment".to_owned());
    }
    // As who asks reads it: hosts of ssh are not read as those of https.
    let asked = Url::parse(url).map_err(|error| format!("its address is none: {error}"))?;
    let asked = asked.host_str().unwrap_or_default().to_lowercase();
    if parsed.host_str() != Some(asked.as_str()) {
        return Err("its host can be read in two ways".to_owned());
    }
    let host = asked.trim_end_matches('.');
    if host.is_empty() {
        return Err("its address has no host".to_owned());
    }
    // The port 443 is not shown, as it is that of https.
    let port = parsed
        .port()
        .unwrap_or_else(|| match rest.split(['/', '?', '#']).next() {
            Some(authority) if authority.ends_with(":443") => 443,
            _ => default_port,
        });
    let port = match port == default_port {
        true => String::new(),
        false => format!(":{port}"),
    };
    let insecure = insecure || default_port == 80;
    let prefix = if insecure { INSECURE } else { "" };
    let path = clean(parsed.path())?;
    let path = path.strip_suffix(".git").unwrap_or(&path);
    Ok(match path.is_empty() {
        true => format!("{prefix}{host}{port}"),
        false => format!("{prefix}{host}{port}/{path}"),
    })
}

/// A path without what servers read over.
fn clean(path: &str) -> Result<String, String> {
    let path = percent_decode_str(path).decode_utf8();
    let path = path.map_err(|_| "its path is no text".to_owned())?;
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let is_odd = |name: &&str| {
        matches!(*name, "." | "..")
            || name.contains(['\\', '%', '?', '#', '*'])
            || name.chars().any(char::is_control)
    };
    match names.iter().find(|name| is_odd(name)) {
        Some(odd) => Err(format!("its path has '{}' in it", odd.escape_debug())),
        None => Ok(names.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> Result<String, String> {
        Origin::of_url(url, false).place
    }

    #[test]
    fn a_place_has_one_spelling() {
        for url in [
            "https://git.example.com/org/app",
            "https://git.example.com/org/app.git",
            "https://git.example.com/org/app.git/",
            "HTTPS://GIT.example.com:443//org/app",
            "https://github.com@git.example.com./org/x/../app",
            "https://git.example.com/%6frg/a%70p",
            "ssh://git@git.example.com/org/app.git",
            "ssh://git@git.example.com:22/org/app",
            "oci://git.example.com/org/app",
        ] {
            assert_eq!(at(url).unwrap(), "git.example.com/org/app", "{url}");
        }
        for (url, place) in [
            ("http://git.example.com/org/app", "http://git.example.com/org/app"),
            ("http://git.example.com:443/app", "http://git.example.com:443/app"),
            ("http://git.example.com:80/app", "http://git.example.com/app"),
            ("https://git.example.com:80/app", "git.example.com:80/app"),
            ("ssh://git@h:2222/app", "h:2222/app"),
            ("ssh://git@h:443/app", "h:443/app"),
            ("https://charts.example.com", "charts.example.com"),
            ("oci://index.docker.io/org/app", "docker.io/org/app"),
        ] {
            assert_eq!(at(url).unwrap(), place, "{url}");
        }
        assert_eq!(
            Origin::of_url("oci://h.io/org/app", true).place.unwrap(),
            "http://h.io/org/app"
        );
        let chart = Origin::of_url("https://charts.example.com/stable/", false).with_name("web");
        assert_eq!(chart.place.unwrap(), "charts.example.com/stable/web");
    }

    #[test]
    fn what_can_be_read_in_two_ways_has_no_place() {
        for url in [
            "git.example.com/org/app",
            "file:///etc",
            "https://",
            "https://h/org/app?x=y",
            "https://h/org/app#x",
            "https://h/org/%252e%252e/app",
            "https://h/org/..%5capp",
            "https://h/org/a%0ap",
            "https://h/%ff",
            r"ssh://good.example.com\@evil.example.com/app",
            r"https://good.example.com\@evil.example.com/app",
            "ssh://%67ood.example.com/app",
            "https://h/a b",
            "oci://",
        ] {
            assert!(at(url).is_err(), "{url}: {:?}", at(url));
        }
        let chart = Origin::of_url("https://charts.example.com", false).with_name("../other");
        assert!(chart.place.is_err());
    }

    #[test]
    fn who_brings_proxy_and_authorities_answers_for_any_host() {
        let is_intercepted = |url: &str, proxy, authorities| {
            let origin = Origin::of_url(url, false).asked_by(proxy, authorities);
            assert_eq!(origin.elsewhere(url), origin);
            origin.is_intercepted()
        };
        assert!(is_intercepted("https://h/app", true, true));
        assert!(is_intercepted("http://h/app", true, false));
        assert!(!is_intercepted("https://h/app", true, false));
        assert!(!is_intercepted("https://h/app", false, true));
    }
}
