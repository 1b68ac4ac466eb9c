//! A branch of the repository: its files, and a commit over them.

use std::time::Duration;

use git_client::commit::{Draft, Person};
use git_client::edit::{self, Changes, Content};
use git_client::pack::{Node, Pack};
use git_client::push::{self, Move};
use git_client::reference::Reference;
use git_client::sparse::Sparse;
use git_client::{Error, ObjectId, Outcome, Request};
use jiff::Timestamp;
use tokio::time::Instant;
use transport::stop::Stop;

use super::flags::Shared;
use super::origin::{GIT_TIMEOUT, Origin, failed, scratch};
use crate::cluster::Failure;

/// Larger files are none of ours.
const MAX_FILE: u64 = 16 << 20;
/// How often a commit is made anew because someone else was faster.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(300);

/// A branch as it was read.
pub(super) struct Branch {
    name: String,
    folders: Vec<String>,
    /// The commit that a new one is made over; None in an empty repository.
    base: Option<(ObjectId, Pack)>,
    /// The branch is there, at the base.
    exists: bool,
}

/// What the branch is at.
pub(super) struct Pushed {
    pub(super) commit: ObjectId,
    /// The commit is ours, and was not there before.
    pub(super) is_new: bool,
}

impl Branch {
    /// Reads these folders of the branch; of the default branch, if this one is not there.
    pub(super) async fn read(
        origin: &Origin,
        is_there: bool,
        name: &str,
        folders: &[String],
    ) -> Result<Self, Failure> {
        let mut branch = Self {
            name: name.to_owned(),
            folders: folders.to_vec(),
            base: None,
            exists: false,
        };
        if !is_there {
            return Ok(branch);
        }
        match branch.fetch(origin, Reference::Branch(name.to_owned())).await {
            Ok(base) => {
                branch.base = Some(base);
                branch.exists = true;
            }
            Err(Error::EmptyRepository) => {}
            Err(Error::FindReference { .. }) => {
                let base = branch.fetch(origin, Reference::Name("HEAD".to_owned())).await;
                match base {
                    Ok(base) => branch.base = Some(base),
                    // An empty repository has neither.
                    Err(Error::EmptyRepository | Error::FindReference { .. } | Error::ResolveName { .. }) => {
                    }
                    Err(error) => return Err(unreadable(origin, &error)),
                }
            }
            Err(error) => return Err(unreadable(origin, &error)),
        }
        Ok(branch)
    }

    async fn fetch(&self, origin: &Origin, reference: Reference) -> Result<(ObjectId, Pack), Error> {
        let stop = Stop::default();
        let remote = origin.remote().map_err(|error| Error::Talk(error.to_string()))?;
        let request = Request {
            remote,
            reference,
            sparse: Some(Sparse::new(&self.folders)),
            unless_revision: None,
            over: None,
            directory: scratch(),
            packs: git_pack::Settings {
                cancelled: stop.flag().clone(),
                ..git_pack::Settings::default()
            },
            deadline: Instant::now() + GIT_TIMEOUT,
            stop,
        };
        match git_client::fetch(request).await? {
            Outcome::Fetched(checkout) => Ok((checkout.resolved.commit, checkout.pack)),
            Outcome::Unchanged(_) => Err(Error::EmptyRepository),
        }
    }

    /// The content of a file; None if it is not there.
    pub(super) fn file(&self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        let Some((_, pack)) = &self.base else {
            return Ok(None);
        };
        let unreadable = |error| failed(&format!("read {path} of the repository"), &error);
        match pack.entry(path).map_err(unreadable)? {
            Some((Node::File { .. }, id)) => {
                let mut bytes = Vec::new();
                pack.read_blob(id, MAX_FILE, &mut bytes).map_err(unreadable)?;
                Ok(Some(bytes))
            }
            Some(_) => Err(Failure::Request {
                what: format!("read {path} of the repository"),
                why: "it is not a file".to_owned(),
            }),
            None => Ok(None),
        }
    }

    /// The content of a file as it is stored.
    pub(super) fn stored(&self, id: ObjectId) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        if let Some((_, pack)) = &self.base {
            let read = pack.read_blob(id, MAX_FILE, &mut bytes);
            read.map_err(|error| failed("read the repository", &error))?;
        }
        Ok(bytes)
    }

    /// Returns whether something is at a path.
    pub(super) fn has(&self, path: &str) -> Result<bool, Failure> {
        let Some((_, pack)) = &self.base else {
            return Ok(false);
        };
        let entry = pack.entry(path);
        let entry = entry.map_err(|error| failed(&format!("read {path} of the repository"), &error))?;
        Ok(entry.is_some())
    }

    /// The files below a folder, as their contents are stored: path, content.
    pub(super) fn below(&self, folder: &str) -> Result<Vec<(String, Content)>, Failure> {
        let mut files = Vec::new();
        let Some((_, pack)) = &self.base else {
            return Ok(files);
        };
        let prefix = format!("{folder}/");
        let walked = pack.walk(|entry| {
            if let (Node::File { executable }, true) = (entry.kind, entry.path.starts_with(&prefix)) {
                let content = Content::Stored {
                    id: entry.id,
                    executable,
                };
                files.push((entry.path.to_owned(), content));
            }
            Ok::<_, git_client::pack::Error>(true)
        });
        walked.map_err(|error| failed(&format!("list {folder} of the repository"), &error))?;
        Ok(files)
    }

    /// Returns whether a change changes something.
    pub(super) fn differs(&self, path: &str, content: Option<&Content>) -> Result<bool, Failure> {
        Ok(match content {
            Some(Content::Bytes(bytes)) => self.file(path)?.as_ref() != Some(bytes),
            Some(Content::Stored { .. }) => true,
            None => self.has(path)?,
        })
    }

    /// Commits the changes and pushes them to the branch, over what others have pushed meanwhile. Without a change, nothing is pushed.
    pub(super) async fn push(
        self,
        origin: &Origin,
        changes: Changes,
        message: &str,
        shared: &Shared,
        report_line: &impl Fn(&str),
    ) -> Result<Pushed, Failure> {
        let name = self.name.clone();
        let mut branch = self;
        for _ in 0..TRIES {
            let changes = branch.needed(&changes)?;
            let moves = Some(&branch.base).filter(|_| branch.exists);
            let from = moves.and_then(Option::as_ref).map(|(commit, _)| *commit);
            if let (true, Some((commit, _))) = (changes.is_empty(), &branch.base) {
                let commit = *commit;
                if !branch.exists {
                    branch
                        .send(origin, &name, None, commit, Vec::new())
                        .await
                        .map_err(unpushed)?;
                }
                return Ok(Pushed {
                    commit,
                    is_new: false,
                });
            }
            let (commit, objects) = branch.commit(changes, message, shared)?;
            report_line(&format!("pushing commit {commit} to branch {name}"));
            match branch.send(origin, &name, from, commit, objects).await {
                Ok(()) => {
                    return Ok(Pushed { commit, is_new: true });
                }
                Err(error) if error.is_moved() => {
                    report_line("the branch has moved; making the commit again");
                    tokio::time::sleep(PAUSE).await;
                    branch = Self::read(origin, true, &name, &branch.folders).await?;
                }
                Err(error) => return Err(unpushed(error)),
            }
        }
        Err(Failure::Request {
            what: format!("push to branch {name}"),
            why: "others push to it all the time; run the command again".to_owned(),
        })
    }

    /// Pushes the changes to another branch, wherever that is.
    pub(super) async fn push_aside(
        &self,
        origin: &Origin,
        name: &str,
        changes: &Changes,
        message: &str,
        shared: &Shared,
    ) -> Result<Option<ObjectId>, Failure> {
        let changes = self.needed(changes)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let (commit, objects) = self.commit(changes, message, shared)?;
        let there = self.fetch(origin, Reference::Branch(name.to_owned())).await;
        let from = match there {
            Ok((commit, _)) => Some(commit),
            Err(Error::FindReference { .. } | Error::EmptyRepository) => None,
            Err(error) => return Err(unreadable(origin, &error)),
        };
        self.send(origin, name, from, commit, objects)
            .await
            .map_err(unpushed)?;
        Ok(Some(commit))
    }

    /// Returns whether there is a branch to open a pull request for.
    pub(super) fn exists(&self) -> bool {
        self.exists
    }

    fn needed(&self, changes: &Changes) -> Result<Changes, Failure> {
        let mut needed = Changes::new();
        for (path, content) in changes {
            if self.differs(path, content.as_ref())? {
                needed.insert(path.clone(), content.clone());
            }
        }
        Ok(needed)
    }

    fn commit(
        &self,
        changes: Changes,
        message: &str,
        shared: &Shared,
    ) -> Result<(ObjectId, Vec<git_client::Object>), Failure> {
        let unmade = |error: &dyn std::error::Error| failed("make the commit", error);
        let edited = match &self.base {
            Some((_, pack)) => edit::edit(pack, changes),
            None => edit::create(changes),
        };
        let edited = edited.map_err(|error| unmade(&error))?;
        let draft = Draft {
            tree: edited.tree,
            parents: self.base.iter().map(|(commit, _)| *commit).collect(),
            author: Person {
                name: shared.author_name.clone(),
                email: shared.author_email.clone(),
            },
            time: Timestamp::now().as_second(),
            message: message.to_owned(),
        };
        let commit = draft.commit(None).map_err(|error| unmade(&error))?;
        let id = commit.id();
        let mut objects = edited.objects;
        objects.push(commit);
        Ok((id, objects))
    }

    async fn send(
        &self,
        origin: &Origin,
        name: &str,
        from: Option<ObjectId>,
        to: ObjectId,
        objects: Vec<git_client::Object>,
    ) -> Result<(), push::Error> {
        let remote = origin
            .remote()
            .map_err(|error| push::Error::Talk(Error::Talk(error.to_string())))?;
        let request = push::Request {
            remote,
            moves: vec![Move {
                reference: format!("refs/heads/{name}"),
                from,
                to: Some(to),
            }],
            objects,
            options: Vec::new(),
            deadline: Instant::now() + GIT_TIMEOUT,
            stop: Stop::default(),
        };
        push::push(request).await.map(drop)
    }
}

fn unreadable(origin: &Origin, error: &Error) -> Failure {
    failed(&format!("read the repository {}", origin.url), error)
}

fn unpushed(error: push::Error) -> Failure {
    match error {
        push::Error::Rejected { .. } => Failure::Request {
            what: "push to the branch".to_owned(),
            why: format!("{error}; --pull-request opens a pull request instead"),
        },
        error => failed("push to the branch", &error),
    }
}
