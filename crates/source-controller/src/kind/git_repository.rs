//! `GitRepository`: a commit of a Git repository.

use std::collections::{BTreeMap, BTreeSet};

use api::meta::Artifact;
use api::source::{GitProvider, GitRepository, GitRepositoryStatus, Source as _};
use artifact::ignore::{IGNORE_FILE, Matcher};
use artifact::store::Ingest;
use url::Url;

use super::{Failure, Fetch, Fetched, Kind, Seen};
use crate::error::{Error, TransportError};
use crate::fetch::git::auth::{self, SecretData};
use crate::fetch::git::pack::{Entry, Node, Pack};
use crate::fetch::git::reference::{Fields, Reference};
use crate::fetch::{git, http};
use crate::reconcile::fetch::Fetcher;
use crate::reconcile::observe::Reader;

/// Longest first line of a commit message in an event, in characters, as in Flux.
const MAX_HEADLINE: usize = 50;

/// Secrets of a GitRepository.
#[derive(Default)]
pub(crate) struct References {
    secret: SecretData,
    proxy: Option<http::Proxy>,
}

/// A commit, and what of it becomes the artifact.
pub(crate) struct Content {
    pack: Pack,
    ignore: Option<String>,
    sparse: Sparse,
}

impl Kind for GitRepository {
    const NAME: &'static str = "GitRepository";
    const HAS_LATEST_URL: bool = false;
    type References = References;
    type Content = Content;

    fn refusal(&self) -> Option<Error> {
        let spec = &self.spec;
        let unsupported = [
            (spec.verification.is_some(), "spec.verify"),
            (spec.recurse_submodules, "spec.recurseSubmodules"),
            (!spec.include.is_empty(), "spec.include"),
            (
                self.provider() != GitProvider::Generic,
                "spec.provider other than generic",
            ),
            (spec.url.starts_with("ssh://"), "spec.url with the scheme ssh"),
        ];
        if let Some((_, field)) = unsupported.into_iter().find(|(used, _)| *used) {
            return Some(Error::Unsupported {
                field: field.to_owned(),
            });
        }
        self.parsed_url().err()
    }

    async fn read_references(&self, reader: &Reader<'_>) -> Result<References, Error> {
        let proxy = match &self.spec.proxy_secret_ref {
            Some(reference) => Some(
                reader
                    .proxy(&reference.name)
                    .await
                    .map_err(Error::ConfigureProxy)?,
            ),
            None => None,
        };
        let secret = match &self.spec.secret_ref {
            Some(reference) => reader.secret(&reference.name).await?,
            None => SecretData::new(),
        };
        Ok(References { secret, proxy })
    }

    fn settings_changed(&self) -> bool {
        let (spec, nothing) = (&self.spec, GitRepositoryStatus::default());
        let status = self.status.as_ref().unwrap_or(&nothing);
        spec.ignore != status.observed_ignore
            || spec.recurse_submodules != status.observed_recurse_submodules
            || spec.include != status.observed_include
            || spec.sparse_checkout != status.observed_sparse_checkout
    }

    async fn fetch(
        &self,
        references: &References,
        unless_revision: Option<String>,
        fetcher: &Fetcher,
    ) -> Result<Fetch<Content>, Failure> {
        let mut url = self.parsed_url()?;
        let access = auth::access(&mut url, &references.secret).map_err(Error::ConfigureAuthentication)?;
        let shown = http::public(&url);
        let settings = http::Settings {
            proxy: references.proxy.clone(),
            ..access.settings
        };
        let settings = settings.towards(url.host_str().unwrap_or_default());
        let client = fetcher
            .clients
            .get(&settings)
            .map_err(|error| Error::GenerateTransport {
                url: shown.clone(),
                source: TransportError::Build(error),
            })?;
        let request = git::Request {
            remote: git::Remote {
                url,
                client,
                authorization: access.authorization,
            },
            reference: Reference::from_fields(self.reference_fields()),
            unless_revision,
            directory: fetcher.directory.clone(),
            deadline: fetcher.deadline(self.timeout()),
        };
        let checkout = match git::fetch(request)
            .await
            .map_err(|error| Error::of_git(shown, error))?
        {
            git::Outcome::Unchanged(resolved) => {
                return Ok(Fetch::Unchanged {
                    revision: resolved.revision,
                });
            }
            git::Outcome::Fetched(checkout) => checkout,
        };
        let git::Checkout {
            resolved,
            subject,
            pack,
        } = *checkout;
        let message = format!("new upstream revision '{}'", resolved.revision);
        Ok(Fetch::New(Fetched {
            filename: format!("{}.tar.gz", resolved.commit),
            seen: Seen {
                revision: resolved.revision,
                message,
            },
            metadata: BTreeMap::new(),
            headline: Some(shortened(&subject)),
            content: Content {
                pack,
                ignore: self.spec.ignore.clone(),
                sparse: Sparse::new(&self.spec.sparse_checkout),
            },
        }))
    }

    fn fill(mut content: Content, ingest: &mut Ingest) -> Result<(), Error> {
        let matcher = load_ignore(&mut content)?;
        let Content { pack, mut sparse, .. } = content;
        let mut bytes = Vec::new();
        pack.walk(|Entry { path, kind, id }| {
            let (wanted, descend) = sparse.look_at(path, kind);
            let is_directory = matches!(kind, Node::Directory | Node::Submodule);
            if wanted && !matcher.is_ignored(path, is_directory) {
                match kind {
                    // Flux's checkout leaves an empty folder where another repository belongs.
                    Node::Directory | Node::Submodule => ingest.add_directory(path)?,
                    Node::File { executable } => {
                        pack.read_blob(id, &mut bytes)?;
                        ingest.add_file(path, executable, bytes.as_slice())?;
                    }
                    // As in Flux's archives: a link would point out of the artifact, or to what is in it anyway.
                    Node::Symlink => {}
                }
            }
            Ok::<_, Error>(descend)
        })?;
        match sparse.missing() {
            Some(missing) => Err(Error::SparseCheckout(missing)),
            None => Ok(()),
        }
    }

    fn in_storage_message(revision: &str) -> String {
        format!("stored artifact for revision '{revision}'")
    }

    fn announcement(&self, artifact: &Artifact, headline: Option<&str>) -> String {
        format!(
            "stored artifact for commit '{}'",
            headline.unwrap_or(&artifact.revision)
        )
    }

    fn set_artifact(
        status: &mut GitRepositoryStatus,
        artifact: Option<Artifact>,
        _latest_url: Option<String>,
    ) {
        status.artifact = artifact;
    }

    fn note_settings(&self, status: &mut GitRepositoryStatus) {
        status.observed_ignore = self.spec.ignore.clone();
        status.observed_recurse_submodules = self.spec.recurse_submodules;
        status.observed_include = self.spec.include.clone();
        status.observed_sparse_checkout = self.spec.sparse_checkout.clone();
        // What a controller with includes and verification may have left behind.
        status.included_artifacts.clear();
        status.source_verification_mode = None;
    }
}

/// Reads all `.sourceignore` files first: a file deep in the tree can be ruled by one that comes later in its order.
fn load_ignore(content: &mut Content) -> Result<Matcher, Error> {
    let mut matcher = Matcher::new(content.ignore.as_deref());
    let (pack, sparse) = (&content.pack, &mut content.sparse);
    let mut bytes = Vec::new();
    pack.walk(|Entry { path, kind, id }| {
        let (wanted, descend) = sparse.look_at(path, kind);
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if wanted && name == IGNORE_FILE && matches!(kind, Node::File { .. }) {
            pack.read_blob(id, &mut bytes)?;
            matcher
                .add_file(folder, &String::from_utf8_lossy(&bytes))
                .map_err(Error::LoadIgnore)?;
        }
        Ok::<_, Error>(descend)
    })?;
    Ok(matcher)
}

/// `spec.sparseCheckout`: the folders that become the artifact; all when there are none.
#[derive(Debug)]
struct Sparse {
    folders: Vec<String>,
    found: BTreeSet<String>,
}

impl Sparse {
    fn new(folders: &[String]) -> Self {
        let clean = |folder: &String| {
            let folder = folder.trim_start_matches("./").trim_matches('/');
            if folder == "." {
                String::new()
            } else {
                folder.to_owned()
            }
        };
        Self {
            folders: folders.iter().map(clean).collect(),
            found: BTreeSet::new(),
        }
    }

    /// Whether the entry belongs to the artifact, and whether something below it may.
    fn look_at(&mut self, path: &str, kind: Node) -> (bool, bool) {
        if self.folders.is_empty() {
            return (true, true);
        }
        let below = |path: &str, folder: &str| {
            let rest = path.strip_prefix(folder);
            folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(exact) = self.folders.iter().find(|folder| *folder == path) {
            self.found.insert(exact.clone());
        }
        let wanted = self.folders.iter().any(|folder| below(path, folder));
        let above = kind == Node::Directory && self.folders.iter().any(|folder| below(folder, path));
        (wanted, wanted || above)
    }

    /// The first folder that was not there.
    fn missing(&self) -> Option<String> {
        let wanted = self.folders.iter().filter(|folder| !folder.is_empty());
        wanted
            .into_iter()
            .find(|folder| !self.found.contains(*folder))
            .cloned()
    }
}

trait GitRepositoryExt {
    fn parsed_url(&self) -> Result<Url, Error>;
    fn reference_fields(&self) -> Fields<'_>;
}

impl GitRepositoryExt for GitRepository {
    fn parsed_url(&self) -> Result<Url, Error> {
        let url = Url::parse(&self.spec.url);
        url.map_err(|source| Error::ParseUrl {
            url: without_userinfo(&self.spec.url),
            source,
        })
    }

    fn reference_fields(&self) -> Fields<'_> {
        let Some(reference) = &self.spec.reference else {
            return Fields::default();
        };
        Fields {
            branch: reference.branch.as_deref(),
            tag: reference.tag.as_deref(),
            semver: reference.semver.as_deref(),
            name: reference.name.as_deref(),
            commit: reference.commit.as_deref(),
        }
    }
}

/// A text that is no URL may hold a password all the same.
fn without_userinfo(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => text.to_owned(),
    }
}

fn shortened(subject: &str) -> String {
    let mut characters = subject.chars();
    let start: String = characters.by_ref().take(MAX_HEADLINE).collect();
    if characters.next().is_some() {
        format!("{start}...")
    } else {
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(spec: serde_json::Value) -> GitRepository {
        serde_json::from_value(serde_json::json!({"metadata": {"name": "a", "namespace": "b"}, "spec": spec}))
            .unwrap()
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let url = "https://h/r";
        let cases = [
            (serde_json::json!({"url": url}), None),
            (serde_json::json!({"url": url, "provider": "generic"}), None),
            (
                serde_json::json!({"url": url, "verify": {"secretRef": {"name": "x"}}}),
                Some("spec.verify"),
            ),
            (
                serde_json::json!({"url": url, "recurseSubmodules": true}),
                Some("spec.recurseSubmodules"),
            ),
            (
                serde_json::json!({"url": url, "include": [{"repository": {"name": "x"}}]}),
                Some("spec.include"),
            ),
            (
                serde_json::json!({"url": url, "provider": "github"}),
                Some("spec.provider other than generic"),
            ),
            (
                serde_json::json!({"url": "ssh://git@h/r"}),
                Some("spec.url with the scheme ssh"),
            ),
        ];
        for (mut spec, field) in cases {
            spec["interval"] = "1m".into();
            let refusal = repository(spec).refusal().map(|error| error.message());
            let expected = field.map(|field| format!("{field} is not supported by this controller yet"));
            assert_eq!(refusal, expected);
        }
        let broken = repository(serde_json::json!({"url": "https://u:secret@h:port/r", "interval": "1m"}));
        assert_eq!(
            broken.refusal().map(|error| error.message()).unwrap(),
            "failed to parse url 'https://h:port/r': invalid port number"
        );
    }

    #[test]
    fn long_subjects_are_cut_like_in_flux() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"ä".repeat(50)), "ä".repeat(50));
        assert_eq!(shortened(&"ä".repeat(51)), format!("{}...", "ä".repeat(50)));
    }

    #[test]
    fn sparse_folders_are_taken_with_what_is_below_them() {
        let mut sparse = Sparse::new(&["./deploy/a".to_owned(), "charts/".to_owned()]);
        let directory = Node::Directory;
        let file = Node::File { executable: false };
        assert_eq!(sparse.look_at("deploy", directory), (false, true));
        assert_eq!(sparse.look_at("deploy/a", directory), (true, true));
        assert_eq!(sparse.look_at("deploy/a/x.yaml", file), (true, true));
        assert_eq!(sparse.look_at("deploy/ab", directory), (false, false));
        assert_eq!(sparse.look_at("README.md", file), (false, false));
        assert_eq!(sparse.missing().as_deref(), Some("charts"));
        assert_eq!(sparse.look_at("charts", directory), (true, true));
        assert_eq!(sparse.missing(), None);
        let mut all = Sparse::new(&[]);
        assert_eq!(all.look_at("x", file), (true, true));
        assert_eq!(all.missing(), None);
    }
}
