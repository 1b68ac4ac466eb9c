//! Where the images of a change come from: their source, its commits, their age, and who vouches for them.
//!
//! The labels of an image are the words of whoever built it, and are shown as such: as text that is no mark-up, and as links
//! only where they are plain https addresses. What cannot be read is left out; no change waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::image::{ImagePolicy, ImageRef};
use forge::address::Repository as Address;
use forge::log::Commit;
use forge::web::{Pages, is_hash};
use image_policy::demand;
use jiff::Timestamp;
use kube::ResourceExt as _;
use yaml_setters::Change;

use super::words::{Files, code};
use super::work::Work;
use crate::automation::labels::{self, CREATED, Images, REVISION, SOURCE};
use crate::automation::update;
use crate::context::Context;
use crate::policy::repository_of;

/// Images that are described. Each costs the registry a few requests.
const MAX_IMAGES: usize = 20;
/// All registries together may take so long.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Commits that are listed for each.
const MAX_COMMITS: usize = 20;
/// Characters of a commit that are shown.
const SHOWN: usize = 7;

/// What is known of a new image.
#[derive(Debug, Default)]
pub(super) struct Origin {
    /// With its tag.
    image: String,
    digest: Option<String>,
    labels: BTreeMap<String, String>,
    /// The commit that the image before was built from.
    old_revision: Option<String>,
    /// From there to this one's, if the ChangePolicy lets them be listed.
    log: Vec<Commit>,
    first_seen: Option<Timestamp>,
    demands_signature: bool,
    demands_attestations: bool,
}

/// Finds where the new images of a change come from.
pub(super) async fn find(policies: &[Arc<ImagePolicy>], files: &Files, work: &Work<'_>) -> Vec<Origin> {
    let context = work.context;
    let mut changes: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
    for change in files.values().flatten() {
        changes
            .entry(update::policy_of(&change.setter))
            .or_default()
            .push(change);
    }
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    let mut origins = Vec::new();
    for policy in policies {
        let Some(changes) = changes.get(&*update::key(policy)) else {
            continue;
        };
        let Some(image) = policy
            .status
            .as_ref()
            .and_then(|status| status.latest_ref.as_ref())
        else {
            continue;
        };
        if origins.len() == MAX_IMAGES {
            break;
        }
        let looking = tokio::time::timeout_at(deadline, one(policy, image, changes, context));
        match looking.await {
            Ok(Ok(origin)) => origins.push(origin),
            Ok(Err(error)) => {
                let name = policy.name_any();
                tracing::debug!(%error, "the image of ImagePolicy {name} is not described");
            }
            Err(_) => break,
        }
    }
    let logging = async {
        for origin in &mut origins {
            origin.log = work.log(origin).await;
        }
    };
    let _ = tokio::time::timeout_at(deadline, logging).await;
    origins
}

impl Work<'_> {
    /// The commits between an image and the one before, with the token of the forge: only of repositories that the
    /// ChangePolicy names, at the same service.
    async fn log(&self, origin: &Origin) -> Vec<Commit> {
        let (Some(source), Some(old), Some(new)) =
            (origin.label(SOURCE), &origin.old_revision, origin.label(REVISION))
        else {
            return Vec::new();
        };
        let is_allowed = old != new
            && is_hash(old)
            && is_hash(new)
            && may_list(&self.spec.source_repositories, &self.address, source);
        if !is_allowed {
            return Vec::new();
        }
        let limit = self.target.timeout;
        let commits = async {
            let forge = super::sign_in(self.object, self.spec, source, limit, self.context).await?;
            Ok::<_, super::Error>(forge.commits(old, new).await?)
        };
        commits.await.unwrap_or_else(|error| {
            tracing::debug!(%error, "the commits of an image are not listed");
            Vec::new()
        })
    }
}

/// Returns whether commits of `source` may be read with the token for `own`: at the same service, if the list names it.
fn may_list(list: &[String], own: &str, source: &str) -> bool {
    let (Ok(source), Ok(own)) = (Address::parse(source), Address::parse(own)) else {
        return false;
    };
    source.origin == own.origin && is_named(list, &source.id)
}

/// Returns whether a list has a repository by its path, or all of its folder.
fn is_named(list: &[String], id: &str) -> bool {
    list.iter().any(|entry| match entry.strip_suffix("/*") {
        Some(folder) => id.rsplit_once('/').is_some_and(|(own, _)| own == folder),
        None => entry == id,
    })
}

async fn one(
    policy: &ImagePolicy,
    image: &ImageRef,
    changes: &[&Change],
    context: &Context,
) -> Result<Origin, labels::Error> {
    let images = Images::open(policy, context).await?;
    let labels = images.labels(image.digest.as_deref(), &image.tag).await?;
    // Of a name alone nothing follows; the tag may stand in another place.
    let old = changes.iter().find_map(|change| before(change, &image.name));
    let old_revision = match old {
        Some((tag, digest)) => images.labels(digest, tag).await.ok(),
        None => None,
    };
    let known = context.tags.get(
        &repository_of(policy),
        &images.repository.uid().unwrap_or_default(),
        &images.canonical,
    );
    let look = known.as_ref().and_then(|known| known.look(&image.tag));
    let same = look.filter(|look| image.digest.as_ref().is_none_or(|digest| *digest == look.digest));
    Ok(Origin {
        image: format!("{}:{}", image.name, image.tag),
        digest: image.digest.clone(),
        log: Vec::new(),
        old_revision: old_revision.and_then(|mut labels| labels.remove(REVISION)),
        labels,
        first_seen: same.map(|look| look.since),
        demands_signature: policy.annotations().contains_key(demand::VERIFY),
        demands_attestations: policy.annotations().contains_key(demand::VERIFY_ATTESTATIONS),
    })
}

/// Tag and digest that a changed value had: it is an image of this name, a tag, or a digest.
fn before<'c>(change: &'c Change, name: &str) -> Option<(&'c str, Option<&'c str>)> {
    let rest = change.old.strip_prefix(name);
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with([':', '@']));
    let old = rest.map_or(&*change.old, |rest| rest.trim_start_matches(':'));
    if old.starts_with("sha256:") {
        return Some(("", Some(old)));
    }
    let (tag, digest) = match old.split_once('@') {
        Some((tag, digest)) => (tag, Some(digest)),
        None => (old, None),
    };
    (digest.is_some() || oci_client::is_tag(tag)).then_some((tag, digest))
}

impl Origin {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    /// What is known, in Markdown; empty if there is nothing but the name.
    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        if let Some(digest) = &self.digest {
            lines.push(format!("digest {}", code(digest)));
        }
        let pages = self.label(SOURCE).and_then(Pages::parse);
        if let Some(source) = self.label(SOURCE) {
            let shown = pages.as_ref().map(|pages| format!("<{}>", pages.root()));
            lines.push(format!(
                "built from {}, as its labels say",
                shown.unwrap_or_else(|| code(source))
            ));
        }
        if let Some(revision) = self.label(REVISION) {
            let short: String = revision.chars().take(SHOWN).collect();
            let page = pages.as_ref().and_then(|pages| pages.commit(revision));
            lines.push(match page {
                Some(page) => format!("commit [{}]({page})", code(&short)),
                None => format!("commit {}", code(revision)),
            });
            if let Some(old) = self.old_revision.as_deref().filter(|old| *old != revision)
                && let Some(page) = pages.as_ref().and_then(|pages| pages.compare(old, revision))
            {
                lines.push(format!("changes since the image before: <{page}>"));
            }
        }
        for Commit { hash, subject } in self.log.iter().take(MAX_COMMITS) {
            let short: String = hash.chars().take(SHOWN).collect();
            lines.push(format!("{} {}", code(&short), code(subject)));
        }
        if self.log.len() > MAX_COMMITS {
            lines.push(format!("and {} more", self.log.len() - MAX_COMMITS));
        }
        if let Some(time) = self.first_seen {
            lines.push(format!("in the registry since {time} at the latest"));
        } else if let Some(time) = self.label(CREATED) {
            lines.push(format!("built at {}, as its labels say", code(time)));
        }
        if self.demands_signature {
            lines.push(format!(
                "chosen only with a verified signature (`{}` of the ImagePolicy)",
                demand::VERIFY
            ));
        }
        if self.demands_attestations {
            lines.push(format!(
                "chosen only with verified attestations (`{}` of the ImagePolicy)",
                demand::VERIFY_ATTESTATIONS
            ));
        }
        if lines.is_empty() {
            return String::new();
        }
        let lines: String = lines.iter().map(|line| format!("- {line}\n")).collect();
        format!("\n**{}**\n{lines}", code(&self.image))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yaml_setters::ObjectIdentifier;

    fn origin(labels: &[(&str, &str)], old: Option<&str>) -> String {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let origin = Origin {
            image: "h.io/web:2".to_owned(),
            labels: labels.collect(),
            old_revision: old.map(str::to_owned),
            ..Origin::default()
        };
        origin.text()
    }

    #[test]
    fn source_and_commits_are_links() {
        let text = origin(
            &[
                (SOURCE, "https://github.com/o/web"),
                (REVISION, "bbbbbbbbbb"),
                (CREATED, "2026-11-25T00:00:00Z"),
            ],
            Some("aaaaaaaaaa"),
        );
        assert_eq!(
            text,
            "\n**`h.io/web:2`**\n- built from <https://github.com/o/web>, as its labels say\n\
             - commit [`bbbbbbb`](https://github.com/o/web/commit/bbbbbbbbbb)\n\
             - changes since the image before: <https://github.com/o/web/compare/aaaaaaaaaa...bbbbbbbbbb>\n\
             - built at `2026-11-25T00:00:00Z`, as its labels say\n"
        );
        assert_eq!(origin(&[], Some("aaaaaaaaaa")), "");
    }

    #[test]
    fn commits_are_listed_of_named_repositories_only_and_are_no_mark_up() {
        let list = ["shop/web", "lib/*", "a/b/*"].map(str::to_owned);
        for (id, expected) in [
            ("shop/web", true),
            ("lib/x", true),
            ("a/b/c", true),
            ("shop/other", false),
            ("lib", false),
            ("lib/x/y", false),
            ("a/b", false),
        ] {
            assert_eq!(is_named(&list, id), expected, "{id}");
        }
        assert!(!is_named(&[], "shop/web"));
        let may = |source: &str| may_list(&list, "https://git.example.com/shop/deploy.git", source);
        assert!(may("https://git.example.com/shop/web") && may("git@git.example.com:shop/web.git"));
        for elsewhere in [
            "https://evil.example/shop/web",
            "http://git.example.com/shop/web",
            "https://git.example.com:8443/shop/web",
            "https://git.example.com@evil.example/shop/web",
            "https://git.example.com/shop/../private/web",
            "https://git.example.com/private/web",
        ] {
            assert!(!may(elsewhere), "{elsewhere}");
        }
        let commit = |number: usize| Commit {
            hash: format!("{number:040}"),
            subject: "fix `it` @everyone ![](x)".to_owned(),
        };
        let origin = Origin {
            image: "h.io/web:2".to_owned(),
            log: (0..25).map(commit).collect(),
            ..Origin::default()
        };
        let text = origin.text();
        assert!(
            text.contains("- `0000000` `fix ?it? @everyone ![](x)`\n"),
            "{text}"
        );
        assert!(text.ends_with("- and 5 more\n"), "{text}");
    }

    #[test]
    fn labels_are_no_mark_up() {
        let hostile = "https://h/r)\n@everyone ![](x)`|<img src=x>";
        let text = origin(
            &[(SOURCE, hostile), (REVISION, hostile), (CREATED, hostile)],
            Some(hostile),
        );
        let lines: Vec<_> = text.trim().lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        for line in &lines[1..] {
            assert!(
                line.contains("`https://h/r)@everyone ![](x)??<img src=x>`")
                    || line.starts_with("- commit `"),
                "{line}"
            );
        }
    }

    #[test]
    fn the_value_before_is_an_image_a_tag_or_a_digest() {
        let before = |old: &str| {
            let change = Change {
                object: ObjectIdentifier::default(),
                old: old.to_owned(),
                new: String::new(),
                setter: String::new(),
                line: 1,
            };
            super::before(&change, "h.io/web")
                .map(|(tag, digest)| (tag.to_owned(), digest.map(str::to_owned)))
        };
        let digest = Some("sha256:1".to_owned());
        assert_eq!(before("h.io/web:1.0"), Some(("1.0".to_owned(), None)));
        assert_eq!(
            before("h.io/web:1.0@sha256:1"),
            Some(("1.0".to_owned(), digest.clone()))
        );
        assert_eq!(before("1.0"), Some(("1.0".to_owned(), None)));
        assert_eq!(before("sha256:1"), Some((String::new(), digest)));
        assert_eq!(
            before("h.io/web@sha256:1"),
            Some((String::new(), Some("sha256:1".to_owned())))
        );
        for other in ["other.io/x:1.0", "h.io/web2", "h.io/web", ""] {
            assert_eq!(before(other), None, "{other}");
        }
    }
}
