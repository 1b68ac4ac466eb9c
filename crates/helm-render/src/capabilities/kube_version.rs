//! The version of Kubernetes: read as Kubernetes' own `version.ParseGeneric` does.

use std::fmt;

use go_semver::{Constraints, Version};

use helm_chart::Helm;

/// `.Capabilities.KubeVersion`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeVersion {
    /// The version, with a leading `v`: as given for Helm 4, without what follows the numbers for Helm 3.
    pub version: String,
    /// Without what follows the numbers, for comparisons; empty where Helm has none.
    pub normalized: String,
    /// The first number.
    pub major: String,
    /// The second number.
    pub minor: String,
}

/// A version that Kubernetes cannot read; displayed in its words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KubeVersionError(String);

impl KubeVersion {
    /// Reads a version such as `1.33`, `v1.33.4` or `v1.33.4-gke.1245000`.
    pub fn parse(text: &str, helm: Helm) -> Result<Self, KubeVersionError> {
        let numbers = numbers(text)?;
        let shown: Vec<_> = numbers.iter().map(u64::to_string).collect();
        let normalized = format!("v{}", shown.join("."));
        let version = match helm {
            Helm::V3 => normalized.clone(),
            Helm::V4 if text.starts_with('v') => text.to_owned(),
            Helm::V4 => format!("v{text}"),
        };
        Ok(Self {
            version,
            normalized: match helm {
                Helm::V3 => String::new(),
                Helm::V4 => normalized,
            },
            major: shown[0].clone(),
            minor: shown[1].clone(),
        })
    }

    /// The version of Kubernetes that the followed releases of Helm are built with.
    pub(super) fn built_in() -> Self {
        Self {
            version: "v1.37.0".to_owned(),
            normalized: "v1.37.0".to_owned(),
            major: "1".to_owned(),
            minor: "37".to_owned(),
        }
    }

    /// Returns whether the version is in a range, such as `>=1.25.0-0`. What is no range holds nothing.
    pub fn is_in_range(&self, range: &str) -> bool {
        let (Ok(version), Ok(range)) = (Version::parse(&self.to_string()), Constraints::parse(range)) else {
            return false;
        };
        range.check(&version)
    }
}

impl fmt::Display for KubeVersion {
    /// Shows what versions are compared by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.normalized.is_empty() {
            &self.version
        } else {
            &self.normalized
        })
    }
}

/// Returns the numbers at the start, of which there are two or more.
fn numbers(text: &str) -> Result<Vec<u64>, KubeVersionError> {
    let unreadable = || KubeVersionError(format!("could not parse {text:?} as version"));
    let start = text.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
    let start = start.strip_prefix('v').unwrap_or(start);
    // What follows must be one line: the expression's dot does not match a line break.
    let digits = numeric_prefix(start);
    if digits.is_empty() || start[digits.len()..].contains('\n') {
        return Err(unreadable());
    }
    let components: Vec<&str> = digits.split('.').collect();
    if components.len() < 2 {
        return Err(KubeVersionError(format!("illegal version string {text:?}")));
    }
    if components[0].starts_with('0') && components[0] != "0" {
        let component = components[0];
        return Err(KubeVersionError(format!(
            "illegal zero-prefixed version component {component:?} in {text:?}"
        )));
    }
    components
        .iter()
        .map(|component| number(component, text))
        .collect()
}

fn number(component: &str, text: &str) -> Result<u64, KubeVersionError> {
    component.parse().map_err(|_| {
        KubeVersionError(format!(
            "illegal non-numeric version component {component:?} in {text:?}: strconv.ParseUint: parsing {component:?}: \
             value out of range"
        ))
    })
}

/// Returns the longest start that is numbers joined by dots.
fn numeric_prefix(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut end = 0;
    loop {
        let digits = bytes[end..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            return &text[..end.saturating_sub(1)];
        }
        end += digits;
        if bytes.get(end) != Some(&b'.') {
            return &text[..end];
        }
        end += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, helm: Helm, expected: &str) {
        let shown = match KubeVersion::parse(text, helm) {
            Ok(version) => format!(
                "{} {version} {} {}",
                version.version, version.major, version.minor
            ),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn versions_are_read_as_kubernetes_reads_them() {
        check("1.25.3", Helm::V4, "v1.25.3 v1.25.3 1 25");
        check("v1.33.4-gke.12", Helm::V4, "v1.33.4-gke.12 v1.33.4 1 33");
        check("v1.33.4-gke.12", Helm::V3, "v1.33.4 v1.33.4 1 33");
        check(" v1.25x", Helm::V4, "v v1.25x v1.25 1 25");
        check("1.02.", Helm::V4, "v1.02. v1.2 1 2");
        check("1", Helm::V4, "illegal version string \"1\"");
        check("x1.2", Helm::V4, "could not parse \"x1.2\" as version");
        check(
            "01.2",
            Helm::V4,
            "illegal zero-prefixed version component \"01\" in \"01.2\"",
        );
    }
}
