//! `spec.recurseSubmodules`: the commits of other repositories that a commit refers to.
//!
//! In: a received commit and how to reach its remote. Out: the commits of its submodules, and of theirs, each with the
//! folder where it belongs. `.gitmodules` is the author's word and hostile: only addresses over the network are
//! followed, credentials go to the server of the repository alone, number and depth are bounded.

use git_client::ObjectId;
use git_client::pack::{self, Node, Pack};
use git_client::reference::Reference;
use git_client::sparse::Sparse;
use tokio::time::Instant;
use transport::http;
use url::Url;
use verification_policy::sources::Origin;

use super::content::{Content, Part, Source};
use crate::reconcile::fetch::Fetcher;
use remote_access::git::Remotes;

const FILE: &str = ".gitmodules";
/// Larger files are refused.
const MAX_FILE: u64 = 1 << 20;
/// As in go-git.
const MAX_DEPTH: usize = 10;
/// All levels together.
const MAX_SUBMODULES: usize = 256;

/// Why submodules cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The list of submodules is none.
    #[error("failed to read '.gitmodules': {0}")]
    ReadFile(#[from] git_client::submodules::Malformed),
    /// An address that is not followed.
    #[error("submodule '{path}' has the address '{url}', which is none over http, https or ssh")]
    Address {
        /// Folder in the artifact.
        path: String,
        /// Without credentials.
        url: String,
    },
    /// No one has that many.
    #[error("there are more than {MAX_SUBMODULES} submodules")]
    TooMany,
    /// They go on and on.
    #[error("submodules are nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The received objects cannot be read.
    #[error(transparent)]
    Read(#[from] pack::Error),
}

/// Fetches the submodules of a commit and puts all of them into the content, the commit first.
pub(super) async fn fetch(
    pack: Pack,
    content: &mut Content,
    remotes: &Remotes,
    fetcher: &Fetcher,
    (origin, deadline): (&Origin, Instant),
) -> Result<(), crate::error::Error> {
    let mut queue = Queue::default();
    let mut packs = fetcher.packs();
    let mut current = (pack, remotes.url.clone(), None);
    loop {
        let (pack, url, of) = current;
        let mut sparse = content.sparse.clone();
        let reading = tokio::task::spawn_blocking(move || {
            queue.add(&pack, &url, of.as_ref(), &mut sparse)?;
            Ok::<_, Error>((queue, pack, of))
        });
        let (rest, pack, of) = reading.await.map_err(|_| crate::error::Error::Abandoned)??;
        queue = rest;
        // All of them together are held.
        packs.limits.objects = packs
            .limits
            .objects
            .saturating_sub(u32::try_from(pack.objects()).unwrap_or(u32::MAX));
        content.parts.push(Part {
            prefix: of.map(|submodule| submodule.path).unwrap_or_default(),
            source: Source::Commit(Box::new(pack)),
        });
        let Some(next) = queue.next() else {
            return Ok(());
        };
        fetcher.admission.admit(&origin.elsewhere(next.url.as_str()))?;
        let remote = remotes.other(next.url.clone())?;
        let (url, shown) = (remote.url.clone(), http::public(&remote.url));
        let request = git_client::Request {
            remote,
            reference: Reference::Commit {
                id: next.commit.to_string(),
                known_as: None,
            },
            sparse: None,
            unless_revision: None,
            over: None,
            directory: fetcher.directory.clone(),
            packs: packs.clone(),
            deadline,
            stop: fetcher.stop.clone(),
        };
        let fetched = git_client::fetch(request).await;
        let outcome = fetched.map_err(|error| crate::error::GitError::of_fetch(shown, error))?;
        let git_client::Outcome::Fetched(checkout) = outcome else {
            return Err(crate::error::Error::Abandoned); // no revision was given that it could be at
        };
        current = (checkout.pack, url, Some(next));
    }
}

/// A submodule that is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Submodule {
    /// Folder in the artifact.
    path: String,
    url: Url,
    commit: ObjectId,
    depth: usize,
}

/// The submodules that are still to be fetched. Each fetched one may add others.
#[derive(Default)]
struct Queue {
    waiting: Vec<Submodule>,
    count: usize,
}

impl Queue {
    /// Adds the submodules of a commit that was fetched from this address, at this folder. Blocks.
    fn add(
        &mut self,
        pack: &Pack,
        url: &Url,
        of: Option<&Submodule>,
        sparse: &mut Sparse,
    ) -> Result<(), Error> {
        let Some((Node::File { .. }, file)) = pack.entry(FILE)? else {
            return Ok(()); // without addresses they stay empty folders, as in Flux
        };
        let mut bytes = Vec::new();
        pack.read_blob(file, MAX_FILE, &mut bytes)?;
        let addresses = git_client::submodules::addresses(&bytes)?;
        let (prefix, depth) = of.map_or(("", 0), |submodule| (submodule.path.as_str(), submodule.depth));
        let mut found = Vec::new();
        pack.walk(|entry| {
            let (wanted, descend) = if of.is_none() {
                sparse.look_at(entry.path, entry.kind)
            } else {
                (true, true)
            };
            if let (true, Node::Submodule, Some(address)) = (wanted, entry.kind, addresses.get(entry.path)) {
                let path = if prefix.is_empty() {
                    entry.path.to_owned()
                } else {
                    format!("{prefix}/{}", entry.path)
                };
                found.push(Submodule {
                    url: resolve(address, url, &path)?,
                    path,
                    commit: entry.id,
                    depth: depth + 1,
                });
            }
            Ok::<_, Error>(descend)
        })?;
        self.count += found.len();
        if self.count > MAX_SUBMODULES {
            return Err(Error::TooMany);
        }
        if depth >= MAX_DEPTH && !found.is_empty() {
            return Err(Error::TooDeep);
        }
        self.waiting.append(&mut found);
        Ok(())
    }

    /// The next one to fetch.
    fn next(&mut self) -> Option<Submodule> {
        self.waiting.pop()
    }
}

/// The address of a submodule, relative ones joined with that of the repository above it.
fn resolve(address: &str, base: &Url, path: &str) -> Result<Url, Error> {
    let refused = || Error::Address {
        path: path.to_owned(),
        url: without_userinfo(address),
    };
    if address.starts_with("./") || address.starts_with("../") {
        let mut names: Vec<&str> = base.path().split('/').filter(|name| !name.is_empty()).collect();
        for name in address.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop().ok_or_else(refused)?),
                name => names.push(name),
            }
        }
        let joined = names.join("/");
        let mut url = base.clone();
        url.set_path(&joined);
        return Ok(url);
    }
    let url = if address.contains("://") {
        Url::parse(address)
    } else {
        Url::parse(&from_scp(address).ok_or_else(refused)?)
    };
    let url = url.map_err(|_| refused())?;
    if !matches!(url.scheme(), "http" | "https" | "ssh") || url.host().is_none() {
        return Err(refused());
    }
    Ok(url)
}

/// `git@host:path` is how people write `ssh://git@host/path`.
fn from_scp(address: &str) -> Option<String> {
    let (host, path) = address.split_once(':')?;
    let is_host = !host.is_empty() && !host.contains(['/', '\\']) && !path.starts_with([':', '/']);
    is_host.then(|| format!("ssh://{host}/{}", path.trim_start_matches('/')))
}

fn without_userinfo(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remote_access::git::is_same_server;

    #[test]
    fn addresses_are_followed_only_over_the_network() {
        let base = Url::parse("https://h:8443/org/app.git").unwrap();
        let cases = [
            ("../lib.git", Some("https://h:8443/org/lib.git")),
            ("../../other/lib", Some("https://h:8443/other/lib")),
            ("./sub/lib.git", Some("https://h:8443/org/app.git/sub/lib.git")),
            ("../../../lib", None),
            ("https://x/y.git", Some("https://x/y.git")),
            ("git@x:y/z.git", Some("ssh://git@x/y/z.git")),
            ("ssh://git@x:22/y", Some("ssh://git@x:22/y")),
            ("file:///etc/passwd", None),
            ("/etc/passwd", None),
            ("lib", None),
            ("ext::sh -c true", None),
            ("git://x/y", None),
            ("-u x:y", None),
        ];
        for (address, expected) in cases {
            let url = resolve(address, &base, "lib").ok().map(|url| url.to_string());
            assert_eq!(url.as_deref(), expected, "{address}");
        }
        let error = resolve("file://u:secret@h/x", &base, "lib").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn credentials_are_for_one_server() {
        let same =
            |one: &str, other: &str| is_same_server(&Url::parse(one).unwrap(), &Url::parse(other).unwrap());
        assert!(same("https://h/a", "https://h:443/b"));
        assert!(!same("https://h/a", "http://h/b"));
        assert!(!same("https://h/a", "https://h:8443/b"));
        assert!(!same("https://h/a", "https://h.evil/b"));
    }
}
