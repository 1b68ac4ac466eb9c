//! The commit that an object came from, read off the way to it. Pure.

use serde::Serialize;

use crate::walk::Finding;

/// Where something comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The commit, or another revision where there is none: `main@sha1:…`.
    pub revision: String,
    /// The address of the source.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.url.is_empty() {
            true => f.write_str(&self.revision),
            false => write!(f, "{} of {}", self.revision, self.url),
        }
    }
}

/// Returns whether the way leads to a Kustomization or HelmRelease, or begins at an object of Flux.
pub fn is_delivered(found: &Finding) -> bool {
    let is_deliverer = |found: &&Finding| {
        found.object.starts_with("Kustomization/") || found.object.starts_with("HelmRelease/")
    };
    found
        .chain()
        .iter()
        .skip(1)
        .any(|found| is_deliverer(found) && found.role == APPLIED_BY)
        || is_deliverer(&found)
        || found.because.iter().any(|found| found.role == MADE_OF)
}

/// Finds the nearest revision on the way: that which the first deliverer has applied, and where its source is.
pub fn origin_of(found: &Finding) -> Option<Origin> {
    let chain = found.chain();
    let deliverer = chain
        .iter()
        .find(|found| found.because.iter().any(|cause| cause.role == MADE_OF))?;
    let sources = sources(deliverer);
    let last = sources.iter().rev().find(|source| !source.url.is_empty());
    let url = last.map(|source| source.url.clone()).unwrap_or_default();
    // A commit behind an artifact tells more than the artifact's own digest; what was applied more than what is there.
    let candidates = [deliverer].into_iter().chain(sources.iter());
    let of_commit = candidates
        .clone()
        .map(|found| found.origin.as_str())
        .find(|origin| !origin.is_empty());
    let applied = candidates
        .map(|found| found.revision.as_str())
        .find(|revision| revision.contains(':'));
    Some(Origin {
        revision: of_commit.or(applied)?.to_owned(),
        url,
    })
}

fn sources<'f>(found: &&'f Finding) -> Vec<&'f Finding> {
    let mut sources = Vec::new();
    for source in found.because.iter().filter(|cause| cause.role == MADE_OF) {
        sources.push(source);
        sources.extend(self::sources(&source));
    }
    sources
}

impl Finding {
    /// Itself, what owns it, what applied that, and so on.
    pub fn chain(&self) -> Vec<&Finding> {
        let mut chain = vec![self];
        let mut here = self;
        let is_above = |cause: &&Finding| matches!(cause.role, APPLIED_BY | OWNED_BY);
        while let Some(above) = here.because.iter().find(is_above) {
            chain.push(above);
            here = above;
        }
        chain
    }
}

/// The role of what applied an object.
pub const APPLIED_BY: &str = "applied by";

/// The role of what owns an object.
pub const OWNED_BY: &str = "owned by";

/// The role of a source.
pub const MADE_OF: &str = "made of";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::{State, finding};

    fn one(object: &str, role: &'static str, because: Vec<Finding>) -> Finding {
        Finding {
            because,
            ..finding(object.to_owned(), role, State::Ready)
        }
    }

    #[test]
    fn the_commit_is_the_one_that_was_applied() {
        let git = Finding {
            url: "https://git.example/app".to_owned(),
            revision: "main@sha1:bb".to_owned(),
            ..one("GitRepository/shop/app", MADE_OF, vec![])
        };
        let app = Finding {
            revision: "main@sha1:aa".to_owned(),
            ..one("Kustomization/shop/app", APPLIED_BY, vec![git])
        };
        let pod = one(
            "Pod/shop/web",
            "object",
            vec![one("Deployment/shop/web", OWNED_BY, vec![app])],
        );
        let origin = origin_of(&pod).unwrap();
        assert_eq!(origin.to_string(), "main@sha1:aa of https://git.example/app");
        let names: Vec<_> = pod.chain().iter().map(|found| found.object.as_str()).collect();
        assert_eq!(
            names,
            ["Pod/shop/web", "Deployment/shop/web", "Kustomization/shop/app"]
        );
        assert!(is_delivered(&pod));
    }

    #[test]
    fn a_chart_has_the_commit_of_the_repository_that_it_lies_in() {
        let git = Finding {
            url: "https://git.example/charts".to_owned(),
            revision: "main@sha1:cc".to_owned(),
            ..one("GitRepository/shop/charts", MADE_OF, vec![])
        };
        let chart = Finding {
            origin: "main@sha1:aa".to_owned(),
            revision: "1.0.0".to_owned(),
            ..one("HelmChart/shop/shop-web", MADE_OF, vec![git])
        };
        let release = Finding {
            revision: "1.0.0".to_owned(),
            ..one("HelmRelease/shop/web", "object", vec![chart])
        };
        assert_eq!(
            origin_of(&release).unwrap().to_string(),
            "main@sha1:aa of https://git.example/charts"
        );
        let alone = one("Pod/shop/web", "object", vec![]);
        assert!(origin_of(&alone).is_none() && !is_delivered(&alone));
    }
}
