//! Checks that the API server is new enough for the chart.

use kube::Client;

use crate::cluster::Failure;

/// The oldest minor version of Kubernetes 1 that the chart takes (its kubeVersion); a test compares.
const OLDEST: u32 = 33;

/// The version of a cluster.
pub(crate) struct Version {
    pub(crate) text: String,
    minor: Option<u32>,
}

impl Version {
    pub(crate) async fn from_client(client: &Client) -> Result<Self, Failure> {
        let info = client.apiserver_version().await;
        let info = info.map_err(|error| Failure::request("ask the API server for its version", error))?;
        Ok(Self {
            minor: minor(&info.major, &info.minor),
            text: info.git_version,
        })
    }

    /// Says what is wrong with it.
    pub(crate) fn problem(&self) -> Option<String> {
        match self.minor {
            Some(minor) if minor < OLDEST => Some(format!(
                "Kubernetes {} is too old: Windlass needs 1.{OLDEST} or newer",
                self.text
            )),
            _ => None,
        }
    }
}

/// Clouds write minor versions as `33+`. None for what is no version 1.
fn minor(major: &str, minor: &str) -> Option<u32> {
    if major != "1" {
        return None;
    }
    let digits = minor.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_version_is_that_of_the_chart() {
        let chart = super::super::chart::load().unwrap();
        let wanted = &chart.chart().metadata.kube_version;
        assert_eq!(*wanted, format!(">=1.{OLDEST}.0-0"));
    }

    #[test]
    fn old_versions_are_refused_and_words_behind_the_number_do_no_harm() {
        for (text, refused) in [
            ("32", true),
            ("33", false),
            ("33+", false),
            ("40", false),
            ("32+", true),
        ] {
            let version = Version {
                text: format!("v1.{text}"),
                minor: minor("1", text),
            };
            assert_eq!(version.problem().is_some(), refused, "{text}");
        }
        assert_eq!(minor("2", "0"), None);
    }
}
