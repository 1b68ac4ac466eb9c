//! What pull requests would change in clusters (ADR 24): said in a comment and a commit status, and kept up to date while they are open.

mod checks;
mod clusters;
mod comparison;
mod helpers;
mod repositories;
mod said;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::delivery::{ForgeProvider, Preview, PreviewState, PreviewStatus, PreviewedRequest};
use api::meta::{condition_types, reasons};
use controller_kit::conditions::{self, Fact};
use controller_kit::events::Severity;
use controller_kit::queue::{Outcome, Queue};
use controller_kit::record::{Unrecorded, Writer, begun};
use controller_kit::runtime::requested_at;
use controller_kit::{ObjectKey, pace};
use delivery_diff::Archives;
use forge::Forge;
use forge::incoming::Incoming;
use git_client::ObjectId;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use remote_access::error::ReadError;

use crate::context::Context;
use crate::place;

use self::comparison::{Comparison, Newest};
use self::repositories::Group;

/// How often a forge is asked, if the spec does not say.
const INTERVAL: Duration = Duration::from_secs(60);
/// Longest time for a pull request, if the spec does not say.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Longest time for a request to the forge.
const FORGE_TIMEOUT: Duration = Duration::from_secs(15);
/// Pull requests that are followed.
const MAX_REQUESTS: usize = 100;
/// Pull requests that are compared before it is the turn of other Previews.
const AT_ONCE: usize = 4;
/// One that could not be compared is tried again after this time, unless it changes: it must not take the turns of others.
const RETRY: SignedDuration = SignedDuration::from_mins(5);
/// A list is worked off for so long; then the forge is asked again.
const NEXT_LIST: Duration = Duration::from_secs(30);
/// When the next ones have their turn.
const NEXT: Duration = Duration::from_millis(1);

/// Reasons of the condition and of events.
const COMPARED: &str = "Compared";
const COMPARING: &str = "Comparing";
const NOT_COMPARED: &str = "NotCompared";

/// What is known of Previews.
pub(crate) struct Previews {
    pub(crate) writer: Writer<Preview>,
    pub(crate) queue: Queue<ObjectKey>,
    /// Where charts of this cluster are had from.
    pub(crate) archives: Archives,
    pub(crate) listed: Lists,
}

/// What forges listed last, by Preview and repository: they are asked for what is new.
#[derive(Default)]
pub(crate) struct Lists(Mutex<HashMap<(ObjectKey, String), Listed>>);

/// Open pull requests, and the entity tag of their list.
#[derive(Clone, Default)]
struct Listed {
    tag: Option<String>,
    incoming: Vec<Incoming>,
    /// When they were listed.
    at: Option<Instant>,
    /// Some of them wait for their turn: the next pass goes on with the same list.
    is_unfinished: bool,
}

impl Lists {
    fn lock(&self) -> MutexGuard<'_, HashMap<(ObjectKey, String), Listed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, preview: &ObjectKey) {
        self.lock().retain(|(of, _), _| of != preview);
    }

    /// Says that some of what was listed waits for its turn.
    fn unfinished(&self, preview: &ObjectKey) {
        for (_, listed) in self.lock().iter_mut().filter(|((of, _), _)| of == preview) {
            listed.is_unfinished = true;
        }
    }

    /// Asks a forge, unless a list is being worked off.
    async fn incoming(
        &self,
        preview: &ObjectKey,
        group: &Group,
        forge: &Forge<'_>,
        is_asked: bool,
    ) -> Result<Vec<Incoming>, forge::Error> {
        let key = (preview.clone(), format!("{} {}", group.url, group.branch));
        let (mut known, is_unfinished) = match self.lock().get_mut(&key) {
            Some(listed) => {
                let is_unfinished = std::mem::take(&mut listed.is_unfinished);
                (listed.clone(), is_unfinished)
            }
            None => (Listed::default(), false),
        };
        let is_fresh = known.at.is_some_and(|at| at.elapsed() < NEXT_LIST);
        if is_unfinished && is_fresh && !is_asked {
            return Ok(known.incoming);
        }
        if let Some(mut found) = forge.incoming(Some(&group.branch), &mut known.tag).await? {
            for one in &mut found {
                // They may be long, and are not looked at.
                one.request.body = String::new();
            }
            (known.incoming, known.at) = (found, Some(Instant::now()));
            self.lock().insert(key, known.clone());
        }
        Ok(known.incoming)
    }
}

/// Why pull requests are not looked at.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The repositories cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is nothing to look at.
    #[error("no GitRepository in the namespace follows a branch")]
    NoRepositories,
    /// A GitRepository follows something else.
    #[error("the GitRepository '{0}' must follow a branch, and nothing else, in .spec.ref")]
    NoBranch(String),
    /// The way to a repository.
    #[error(transparent)]
    Place(#[from] Box<place::Error>),
    /// Another forge.
    #[error("pull requests are previewed at GitHub, GitLab and Gitea only")]
    Unsupported,
    /// A forge that shows nothing beside lines.
    #[error(".spec.checks.annotations: findings are shown beside lines at GitHub only")]
    NoAnnotations,
    /// The forge.
    #[error(transparent)]
    Forge(#[from] remote_access::forge::Error),
    /// The branch.
    #[error("failed to fetch the branch '{branch}'")]
    Fetch {
        /// Its name.
        branch: String,
        /// Why.
        source: git_writer::branch::Error,
    },
}

impl From<forge::Error> for Error {
    fn from(error: forge::Error) -> Self {
        Self::Forge(error.into())
    }
}

/// Compares what is due.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let writer = &context.previews.writer;
    writer
        .reconcile(
            &key,
            |_| context.previews.listed.forget(&key),
            |object| follow(object, &context),
        )
        .await
}

async fn follow(object: Arc<Preview>, context: &Context) -> Result<Outcome, Unrecorded> {
    let status = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation.unwrap_or_default();
    let mut next = begun(&*object);
    next.observed_generation = Some(generation);
    let is_asked = requested_at(&*object) != status.last_handled_reconcile_at.as_deref();
    let mut pass = Pass {
        object: &object,
        context,
        is_asked,
        left: AT_ONCE,
        found: Vec::new(),
        waiting: 0,
        problem: None,
    };
    let looked = pass.look(&status).await;
    let Pass {
        found,
        waiting,
        problem,
        ..
    } = pass;
    let now = Timestamp::now();
    let interval = object.spec.interval.map_or(INTERVAL, api::meta::Duration::to_std);
    let again = pace::after(interval, context.jitter_percentage);
    let (ready, outcome) = match looked {
        Err(error) => {
            let text = error_chain::chain(&error);
            next.pull_requests = with_rest(found, &status);
            (
                Fact::does_not_hold(condition_types::READY, NOT_COMPARED, text),
                Outcome::Backoff,
            )
        }
        Ok(()) => {
            next.pull_requests = found;
            if waiting > 0 {
                let key = ObjectKey::from_object(&*object);
                context.previews.listed.unfinished(&key);
            }
            concluded(&next, waiting, problem, again)
        }
    };
    let known = conditions::get(&status.conditions, condition_types::READY);
    let is_news =
        known.is_none_or(|known| (&known.reason, &known.message) != (&ready.reason, &ready.message));
    let failed = (ready.reason == NOT_COMPARED && is_news).then(|| ready.message.clone());
    conditions::remove(&mut next.conditions, condition_types::RECONCILING);
    conditions::set(&mut next.conditions, ready, generation, now);
    let news = news(&status, &next);
    let written = context.previews.writer.write(object, &next).await?;
    let publish =
        |severity, reason, text: &str| context.previews.writer.publish(&written, severity, reason, text);
    if let Some(text) = failed {
        publish(Severity::Error, NOT_COMPARED, &text);
    }
    for (severity, text) in news {
        publish(severity, COMPARED, &text);
    }
    Ok(outcome)
}

fn concluded(
    next: &PreviewStatus,
    waiting: usize,
    problem: Option<String>,
    again: Outcome,
) -> (Fact, Outcome) {
    let count = next.pull_requests.len();
    if waiting > 0 {
        let text = format!("{waiting} of {count} pull requests wait for their turn");
        return (
            Fact::is_unknown(condition_types::READY, COMPARING, text),
            Outcome::After(NEXT),
        );
    }
    if let Some(problem) = problem {
        // Others must not wait for it.
        return (
            Fact::does_not_hold(condition_types::READY, NOT_COMPARED, problem),
            again,
        );
    }
    let text = match count {
        0 => "no pull request is open that is to be compared".to_owned(),
        1 => "1 pull request is compared".to_owned(),
        count => format!("{count} pull requests are compared"),
    };
    (
        Fact::holds(condition_types::READY, reasons::SUCCEEDED, text),
        again,
    )
}

/// What was found before something failed, and what was known of the rest: nothing is compared and said again for that.
fn with_rest(mut found: Vec<PreviewedRequest>, status: &PreviewStatus) -> Vec<PreviewedRequest> {
    for known in &status.pull_requests {
        if !found
            .iter()
            .any(|one| is_same(one, &known.repository, known.number))
        {
            found.push(known.clone());
        }
    }
    found.truncate(MAX_REQUESTS);
    found
}

/// What events say: the results that are new.
fn news(before: &PreviewStatus, after: &PreviewStatus) -> Vec<(Severity, String)> {
    let is_known = |one: &&PreviewedRequest| {
        let same = before
            .pull_requests
            .iter()
            .find(|known| is_same(known, &one.repository, one.number));
        same.is_some_and(|known| {
            (known.state, &known.message, &known.head) == (one.state, &one.message, &one.head)
        })
    };
    let new = after.pull_requests.iter().filter(|one| !is_known(one));
    new.filter_map(|one| {
        let severity = match one.state {
            PreviewState::Pending => return None,
            PreviewState::Succeeded => Severity::Info,
            PreviewState::Failed => Severity::Error,
        };
        Some((
            severity,
            format!("pull request {} ({}): {}", one.number, one.url, one.message),
        ))
    })
    .collect()
}

/// Returns whether it could not be compared at this very commit.
fn has_failed(known: &PreviewedRequest, one: &Incoming) -> bool {
    known.state == PreviewState::Pending && !known.message.is_empty() && known.head == one.request.commit
}

/// Returns whether it was tried longer ago than that.
fn is_over(known: &PreviewedRequest, time: SignedDuration) -> bool {
    let tried = known.compared_at.as_ref();
    tried.is_none_or(|tried| Timestamp::now().duration_since(tried.0) >= time)
}

fn is_same(known: &PreviewedRequest, repository: &str, number: u64) -> bool {
    known.repository == repository && known.number == number
}

/// One look at all pull requests of a Preview.
struct Pass<'a> {
    object: &'a Preview,
    context: &'a Context,
    /// Whether a reconciliation was requested: then all are compared again.
    is_asked: bool,
    /// How many may be compared in this pass.
    left: usize,
    found: Vec<PreviewedRequest>,
    waiting: usize,
    /// Why one of them was not compared.
    problem: Option<String>,
}

impl Pass<'_> {
    async fn look(&mut self, status: &PreviewStatus) -> Result<(), Error> {
        let groups = repositories::groups(self.object, self.context).await?;
        for group in groups {
            self.look_at(&group, status).await?;
        }
        Ok(())
    }

    async fn look_at(&mut self, group: &Group, status: &PreviewStatus) -> Result<(), Error> {
        let spec = &self.object.spec;
        let forge = self.sign_in(group).await?;
        let listed = &self.context.previews.listed;
        let preview = ObjectKey::from_object(self.object);
        if !forge.keeps_comments() {
            return Err(Error::Unsupported);
        }
        let is_beside = spec.checks.as_ref().is_some_and(|checks| checks.annotations);
        if is_beside && spec.forge.provider != ForgeProvider::GitHub {
            return Err(Error::NoAnnotations);
        }
        let mut incoming = listed.incoming(&preview, group, &forge, self.is_asked).await?;
        incoming.retain(|one| merge_preview::accepts(spec.pull_requests.as_ref(), one));
        incoming.truncate(MAX_REQUESTS.saturating_sub(self.found.len()));
        if incoming.is_empty() {
            return Ok(());
        }
        let known = |one: &Incoming| {
            let mut all = status.pull_requests.iter();
            all.find(|known| is_same(known, &group.name, one.request.number))
        };
        // What failed before has its turn last: it must not keep the others waiting.
        incoming.sort_by_key(|one| known(one).is_some_and(|known| has_failed(known, one)));
        let seen = incoming.iter().filter_map(known).map(|known| known.base.clone());
        let mut newest =
            Newest::look(group, seen.filter(|base| !base.is_empty()).max(), self.context).await?;
        for one in &incoming {
            let mut entry = known(one).cloned().unwrap_or_default();
            entry.repository.clone_from(&group.name);
            (entry.number, entry.url) = (one.request.number, one.request.url.clone());
            self.bring(group, &forge, one, &mut newest, &mut entry).await;
            self.found.push(entry);
        }
        Ok(())
    }

    async fn sign_in(&self, group: &Group) -> Result<Forge<'static>, Error> {
        let spec = &self.object.spec.forge;
        let ways = remote_access::forge::Ways {
            clients: &self.context.clients,
            identities: &self.context.identities,
            timeout: FORGE_TIMEOUT,
        };
        let address = spec.url.as_deref().unwrap_or(&group.url);
        let reader = self.context.reader(&self.namespace());
        Ok(remote_access::forge::sign_in(spec, address, &reader, ways).await?)
    }

    fn namespace(&self) -> String {
        self.object.namespace().unwrap_or_default()
    }

    /// Brings what is known of a pull request up to date.
    async fn bring(
        &mut self,
        group: &Group,
        forge: &Forge<'_>,
        one: &Incoming,
        newest: &mut Newest,
        entry: &mut PreviewedRequest,
    ) {
        let generation = self.object.metadata.generation.unwrap_or_default();
        let base = newest.commit().to_string();
        let is_due = entry.state == PreviewState::Pending
            || self.is_asked
            || entry.generation != generation
            || (&entry.head, &entry.base) != (&one.request.commit, &base);
        if !is_due {
            return;
        }
        let is_tried = has_failed(entry, one) && entry.base == base && entry.generation == generation;
        if is_tried && !self.is_asked && !is_over(entry, RETRY) || self.left == 0 && has_failed(entry, one) {
            self.note(entry, Err(entry.message.clone()));
            return;
        }
        if self.left == 0 {
            self.waiting += 1;
            // It stays due, whatever made it so.
            entry.generation = 0;
            if entry.head != one.request.commit {
                // Branch protection must not take the result of the commit before for that of this one.
                entry.head.clone_from(&one.request.commit);
                (entry.state, entry.message) = (PreviewState::Pending, String::new());
                let told = said::pending(self.object, forge, &entry.head).await;
                self.note(entry, told.map_err(|error| error.to_string()));
            }
            return;
        }
        self.left -= 1;
        let compared = self.compared(group, forge, one, newest, entry);
        let timeout = self
            .object
            .spec
            .timeout
            .map_or(TIMEOUT, api::meta::Duration::to_std);
        let compared = tokio::time::timeout(timeout, compared).await;
        let late = || format!("the comparison took longer than {} s", timeout.as_secs());
        match compared.unwrap_or_else(|_| Err(late())) {
            Ok(updated) => {
                *entry = updated;
                entry.generation = generation;
            }
            Err(problem) => {
                entry.head.clone_from(&one.request.commit);
                entry.state = PreviewState::Pending;
                (entry.base, entry.generation) = (base, generation);
                entry.compared_at = Some(Time(Timestamp::now()));
                self.note(entry, Err(problem));
            }
        }
    }

    fn note(&mut self, entry: &mut PreviewedRequest, result: Result<(), String>) {
        if let Err(problem) = result {
            entry.message.clone_from(&problem);
            self.problem
                .get_or_insert_with(|| format!("pull request {}: {problem}", entry.number));
        }
    }

    /// Compares, and says what came of it.
    async fn compared(
        &self,
        group: &Group,
        forge: &Forge<'_>,
        one: &Incoming,
        newest: &mut Newest,
        entry: &PreviewedRequest,
    ) -> Result<PreviewedRequest, String> {
        let comparison = Comparison {
            object: self.object,
            group,
            context: self.context,
        };
        let found = comparison.run(forge, one, newest).await?;
        let told = said::told(self.object, group, one, &found);
        let mut entry = entry.clone();
        (entry.head, entry.base) = (found.head.to_string(), found.base.to_string());
        entry.state = match told.is_success() {
            true => PreviewState::Succeeded,
            false => PreviewState::Failed,
        };
        entry.message = told.line();
        let said = said::say(self.object, forge, &told, &entry).await;
        said.map_err(|error| error.to_string())?;
        entry.compared_at = Some(Time(Timestamp::now()));
        Ok(entry)
    }
}

/// A commit as statuses have it.
fn parsed(commit: &str) -> Option<ObjectId> {
    ObjectId::from_hex(commit.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use forge::pull_request::{PullRequest, State};

    use super::*;

    fn entry(repository: &str, number: u64) -> PreviewedRequest {
        PreviewedRequest {
            repository: repository.to_owned(),
            number,
            ..PreviewedRequest::default()
        }
    }

    #[test]
    fn what_was_found_is_kept_when_another_repository_fails() {
        let status = PreviewStatus {
            pull_requests: vec![entry("a", 1), entry("b", 1), entry("b", 2)],
            ..PreviewStatus::default()
        };
        let mut fresh = entry("a", 1);
        fresh.state = PreviewState::Succeeded;
        let kept = with_rest(vec![fresh.clone()], &status);
        assert_eq!(kept, [fresh, entry("b", 1), entry("b", 2)]);
    }

    #[test]
    fn what_cannot_be_compared_is_tried_again_later() {
        let incoming = |commit: &str| Incoming {
            request: PullRequest {
                number: 1,
                url: String::new(),
                title: String::new(),
                body: String::new(),
                state: State::Open,
                head: "more".to_owned(),
                base: "main".to_owned(),
                commit: commit.to_owned(),
                opened: None,
            },
            author: String::new(),
            labels: Vec::new(),
            is_fork: false,
        };
        let mut known = entry("a", 1);
        known.head = "1".to_owned();
        assert!(!has_failed(&known, &incoming("1")), "it waits for its turn");
        known.message = "no".to_owned();
        assert!(has_failed(&known, &incoming("1")));
        assert!(
            !has_failed(&known, &incoming("2")),
            "another commit is another try"
        );
        assert!(is_over(&known, RETRY));
        known.compared_at = Some(Time(Timestamp::now()));
        assert!(!is_over(&known, RETRY));
        known.compared_at = Timestamp::now().checked_sub(RETRY).ok().map(Time);
        assert!(is_over(&known, RETRY));
    }
}
