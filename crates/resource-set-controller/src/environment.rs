//! One reconcile of one EnvironmentPolicy: which pull requests have an environment, how healthy it is, and what is said of it.
//!
//! The ResourceSet leaves out what the status does not admit. Waits for health go on in the background, one for each environment, and
//! bring the policy back when they end.

mod announced;
mod health;
mod said;
mod test;

use std::sync::Arc;
use std::time::Duration;

use api::delivery::{
    EnvironmentPolicy, EnvironmentPolicySpec, EnvironmentPolicyStatus, EnvironmentTestResult,
    EnvironmentTestState as TestState, RequestEnvironment, RequestEnvironmentState as State,
};
use api::flux_operator::{AnyMap, ResourceSet, StrategyName};
use api::meta::{StatusObject as _, condition_types, reasons};
use controller_kit::conditions::{self, Fact};
use controller_kit::events::Severity;
use controller_kit::queue::{Outcome, Queue, Slot};
use controller_kit::record::{Failed, Unrecorded, Writer, begun};
use controller_kit::{ObjectKey, pace};
use forge::markdown::cut;
use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use reconcile_kit::base::placement;
use resource_set::environment::{self, Limits, Request, is_admitted};

use self::announced::{announce, summary};
use self::health::{Looks, What};
use self::said::Forges;
use crate::context::Context;
use crate::set;

/// How often health is looked at, if the spec does not say, and at most.
const INTERVAL: Duration = Duration::from_mins(10);
const SHORTEST: Duration = Duration::from_secs(30);
/// The same for environments that have failed.
const RETRY: Duration = Duration::from_mins(1);
/// How long an environment may take, if the spec does not say.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Longest time for reports, until the next turn.
const REPORTS: Duration = Duration::from_secs(30);
/// Characters of a message in a status.
const LONGEST: usize = 1000;

/// Reason of the condition for a spec that cannot be followed.
const INVALID_SPEC: &str = "InvalidSpec";

/// What is known of EnvironmentPolicies.
pub(crate) struct Environments {
    pub(crate) writer: Writer<EnvironmentPolicy>,
    pub(crate) queue: Queue<ObjectKey>,
    pub(crate) looks: Looks,
}

/// Why a policy is not followed.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// There is no such ResourceSet.
    #[error("the ResourceSet '{0}' does not exist in the namespace")]
    Missing(String),
    /// Which inputs there are is not known.
    #[error(transparent)]
    Inputs(#[from] set::Error),
    /// They cannot be told apart.
    #[error(transparent)]
    Combine(#[from] resource_set::inputs::Error),
    /// A combination of inputs is not that of one pull request.
    #[error("the ResourceSet permutes its inputs: what it makes is not the environment of one pull request")]
    Permuted,
}

impl Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Missing(_) | Self::Inputs(_) => reasons::DEPENDENCY_NOT_READY,
            Self::Combine(_) => reasons::RECONCILIATION_FAILED,
            Self::Permuted => INVALID_SPEC,
        }
    }
}

/// Brings what is known and said of environments up to date.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>, slot: Slot) -> Outcome {
    let environments = &context.environments;
    let known = environments.writer.cache.get(&key.object_ref());
    if known.is_some_and(|known| !context.is_ours(&*known)) {
        return Outcome::Done;
    }
    let forget = |gone: Option<&EnvironmentPolicy>| {
        environments.looks.forget(&key);
        // Nothing is held back any more.
        if let Some(gone) = gone {
            context.wake(set_of(gone, &key));
        }
    };
    let work = |object| update(&key, object, &context, &slot);
    environments.writer.reconcile(&key, forget, work).await
}

/// The ResourceSet that a policy is about.
pub(crate) fn set_of(policy: &EnvironmentPolicy, key: &ObjectKey) -> ObjectKey {
    ObjectKey::new(&key.namespace, &policy.spec.resource_set_ref.name)
}

/// Returns whether a status says which environments there may be. Without a word of ours, the API server says that it observed
/// generation -1.
pub(crate) fn has_spoken(status: &EnvironmentPolicyStatus) -> bool {
    status
        .observed_generation
        .is_some_and(|generation| generation > 0)
        && !conditions::is_stalled(&status.conditions)
}

/// The ResourceSet, and the open pull requests of its providers with their inputs.
struct Found {
    set: Arc<ResourceSet>,
    requests: Vec<(Request, AnyMap)>,
}

fn find(key: &ObjectKey, object: &EnvironmentPolicy, context: &Context) -> Result<Found, Error> {
    let name = &object.spec.resource_set_ref.name;
    let set = context
        .sets
        .cache
        .get(&ObjectRef::new(name).within(&key.namespace));
    let set = set.ok_or_else(|| Error::Missing(name.clone()))?;
    let strategy = set.spec.input_strategy.as_ref();
    if strategy.is_some_and(|strategy| strategy.name != StrategyName::Flatten) {
        return Err(Error::Permuted);
    }
    let mut exports = set::inputs::exports(&set, context)?;
    exports.retain(|export| export.is_of_requests);
    let mut requests = Vec::new();
    for export in exports {
        let name = export.name.clone();
        let sets = resource_set::combine(None, &[export])?;
        let named = sets.into_iter();
        requests.extend(named.filter_map(|set| Some((Request::of(&name, &set)?, set))));
    }
    requests.truncate(environment::MAX);
    Ok(Found { set, requests })
}

fn limits(spec: &EnvironmentPolicySpec) -> Limits {
    Limits {
        max: spec.max_environments.map(|max| max as usize),
        expires_after: spec.expires_after.map(api::meta::Duration::to_std),
    }
}

async fn update(
    key: &ObjectKey,
    object: Arc<EnvironmentPolicy>,
    context: &Arc<Context>,
    slot: &Slot,
) -> Result<Outcome, Unrecorded> {
    let (now, writer) = (Timestamp::now(), &context.environments.writer);
    let found = match find(key, &object, context) {
        Ok(found) => found,
        Err(error) => {
            let is_final = matches!(error, Error::Permuted);
            let failed = Failed::new(&*object, &error, (error.reason(), is_final), now);
            if error.reason() == reasons::DEPENDENCY_NOT_READY {
                // A watch tells when it is there.
                writer.write(object, &failed.status).await?;
                return Ok(Outcome::Done);
            }
            return writer.fail(object, failed).await;
        }
    };
    let mut next = begun(&*object);
    let before = std::mem::take(&mut next.environments);
    let limits = limits(&object.spec);
    let requests: Vec<Request> = found
        .requests
        .iter()
        .map(|(request, _)| request.clone())
        .collect();
    next.environments = environment::admit(&before, &requests, limits, now);
    let problem = place(&object, &found, &mut next.environments).await;
    look(key, &object, &found, &mut next, context).await;

    // Before a word is said: the ResourceSet waits for what is admitted.
    let is_first = !has_spoken(&next);
    next.observed_generation = object.metadata.generation;
    conclude(&object, &mut next, problem.as_deref(), now);
    let object = writer.write(object, &next).await?;
    if is_first || admitted(&before) != admitted(&next.environments) {
        context.wake(set_of(&object, key));
    }
    announce(&object, &before, &next.environments, context);

    let is_gone = |known: &&RequestEnvironment| !requests.iter().any(|request| is_of(request, known));
    let gone: Vec<_> = before.iter().filter(is_gone).collect();
    let mut forges = Forges::new(&object, context);
    // A Git service of a tenant may be slow, and must not hold up others.
    slot.pause();
    let reports = forges.report(&gone, &mut next.environments, limits);
    let reported = tokio::time::timeout(REPORTS, reports).await;
    slot.resume().await;
    let late = || {
        Err(format!(
            "the Git service took longer than {} s for reports",
            REPORTS.as_secs()
        ))
    };
    let problem = problem.or(reported.unwrap_or_else(|_| late()).err());
    conclude(&object, &mut next, problem.as_deref(), now);
    let object = writer.write(object, &next).await?;
    if let Some(problem) = problem {
        writer.publish(&object, Severity::Error, reasons::RECONCILIATION_FAILED, &problem);
        return Ok(Outcome::Backoff);
    }
    let expiries = next
        .environments
        .iter()
        .filter(|environment| !environment::is_over(environment.state));
    let expiries = expiries.filter_map(|environment| limits.expiry(environment.since.as_ref()?.0));
    let has_failed = next
        .environments
        .iter()
        .any(|environment| environment.state == State::Failed);
    let interval = interval(&object.spec);
    let interval = if has_failed { interval.min(RETRY) } else { interval };
    Ok(pace::by(
        pace::after(interval, context.jitter_percentage),
        expiries.min(),
        now,
    ))
}

fn interval(spec: &EnvironmentPolicySpec) -> Duration {
    spec.interval
        .map_or(INTERVAL, api::meta::Duration::to_std)
        .max(SHORTEST)
}

fn is_of(request: &Request, environment: &RequestEnvironment) -> bool {
    (request.number, &request.provider) == (environment.number, &environment.provider)
}

/// What a ResourceSet is to know of environments.
fn admitted(environments: &[RequestEnvironment]) -> Vec<(&str, u64)> {
    let admitted = environments
        .iter()
        .filter(|environment| is_admitted(environment.state));
    admitted
        .map(|environment| (environment.provider.as_str(), environment.number))
        .collect()
}

/// Puts addresses in. Returns why there are none, if their template is at fault.
async fn place(
    object: &EnvironmentPolicy,
    found: &Found,
    environments: &mut [RequestEnvironment],
) -> Option<String> {
    let (template, sets) = (object.spec.address.clone(), found.requests.clone());
    let rendered = tokio::task::spawn_blocking(move || {
        let (requests, sets): (Vec<_>, Vec<_>) = sets.into_iter().unzip();
        let addresses = environment::addresses(&template, &sets)?;
        Ok::<_, String>(requests.into_iter().zip(addresses).collect::<Vec<_>>())
    });
    let addresses = match rendered.await {
        Ok(Ok(addresses)) => addresses,
        Ok(Err(error)) => return Some(format!("spec.address: {error}")),
        Err(_) => return Some("spec.address: the template was not carried out".to_owned()),
    };
    for environment in environments {
        let own = addresses.iter().find(|(request, _)| is_of(request, environment));
        environment.address = own.map(|(_, address)| address.clone()).unwrap_or_default();
    }
    None
}

/// Puts in what is known of the environments' health, and has looked at what is not.
async fn look(
    key: &ObjectKey,
    object: &EnvironmentPolicy,
    found: &Found,
    next: &mut EnvironmentPolicyStatus,
    context: &Arc<Context>,
) {
    let set = set_of(object, key);
    let (looks, requests) = (&context.environments.looks, &found.requests);
    let is_followed = |environment: &RequestEnvironment| is_admitted(environment.state);
    looks.keep(key, next.environments.iter().filter(|one| is_followed(one)));
    if found.set.suspended() {
        return;
    }
    // Without a connection nothing is known: the ResourceSet says why.
    let Ok(target) = context.targets.target_of(placement(&*found.set)).await else {
        return;
    };
    let timeout = object.spec.timeout.map_or(TIMEOUT, api::meta::Duration::to_std);
    for environment in next.environments.iter_mut().filter(|one| is_followed(one)) {
        let request = Request {
            provider: environment.provider.clone(),
            number: environment.number,
            commit: environment.commit.clone(),
        };
        let Some(made) = context.memory.made_of(&set, &request) else {
            let failure = context.memory.failure(&set, &request);
            if let Some(failure) = failure.filter(|_| environment.state == State::Pending) {
                environment.state = State::Failed;
                environment.message = cut(
                    &format!("ResourceSet/{}/{}: {failure}", set.namespace, set.name),
                    LONGEST,
                );
            }
            continue;
        };
        let again = match environment.state {
            State::Failed => RETRY.min(interval(&object.spec)),
            _ => interval(&object.spec),
        };
        let look = health::Look {
            target: Arc::clone(&target),
            made,
            timeout,
        };
        let about = (look.digest(), Some(again));
        let found = looks.verdict(key, (environment, What::Health), about, context, || {
            let context = Arc::clone(context);
            async move { look.carry_out(&context.environments.looks).await }
        });
        if let Some(found) = found {
            (environment.state, environment.message) = match found {
                Ok(()) => (State::Ready, String::new()),
                Err(why) => (State::Failed, cut(&why, LONGEST)),
            };
        }
        if let Some(spec) = &object.spec.test {
            let inputs = requests.iter().find(|(other, _)| *other == request);
            let test = test::Test {
                context: Arc::clone(context),
                target: Arc::clone(&target),
                spec: spec.clone(),
                policy: key.clone(),
                inputs: inputs.map(|(_, inputs)| inputs.clone()).unwrap_or_default(),
                request,
                address: environment.address.clone(),
            };
            follow_test(key, environment, test, context);
        } else {
            environment.test = None;
        }
    }
}

/// Has an environment tested that is ready and has not been, and puts in what came of it.
fn follow_test(
    key: &ObjectKey,
    environment: &mut RequestEnvironment,
    test: test::Test,
    context: &Arc<Context>,
) {
    let is_due = match &environment.test {
        None => environment.state == State::Ready,
        Some(test) => test.state == TestState::Running,
    };
    let removes = test.spec.remove_environment;
    if is_due {
        let (looks, of) = (&context.environments.looks, (&*environment, What::Test));
        let found = looks.verdict(key, of, (test.digest(), None), context, || test.carry_out());
        let (state, message) = match found {
            None => (TestState::Running, String::new()),
            Some(Ok(())) => (TestState::Passed, String::new()),
            Some(Err(why)) => (TestState::Failed, cut(&why, LONGEST)),
        };
        environment.test = Some(EnvironmentTestResult { state, message });
    }
    let known = environment.test.as_ref();
    if removes && known.is_some_and(|test| test.state != TestState::Running) {
        environment.state = State::Tested;
        environment.message.clear();
    }
}

/// The condition: whether all is known and said.
fn conclude(
    object: &EnvironmentPolicy,
    next: &mut EnvironmentPolicyStatus,
    problem: Option<&str>,
    now: Timestamp,
) {
    let generation = object.metadata.generation.unwrap_or_default();
    let ready = match problem {
        None => Fact::holds(
            condition_types::READY,
            reasons::RECONCILIATION_SUCCEEDED,
            summary(&next.environments),
        ),
        Some(problem) => Fact::does_not_hold(condition_types::READY, reasons::RECONCILIATION_FAILED, problem),
    };
    conditions::set(&mut next.conditions, ready, generation, now);
    conditions::remove(&mut next.conditions, condition_types::RECONCILING);
    conditions::remove(&mut next.conditions, condition_types::STALLED);
}
