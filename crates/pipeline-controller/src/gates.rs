//! What else than time and people keeps a release out: the windows of ChangePolicies, expressions over objects and answers of servers,
//! and Jobs.
//!
//! Looked at only for environments that a release could enter now, or whose changes are on their way. Objects are read, and Jobs
//! made, as the pipeline's ServiceAccount; servers are those that the operator lists. What cannot be read or evaluated is closed, and says so.

mod commit;
mod job;
mod remote;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::delivery::{Gate, GateObject, Pipeline, PipelineSpec, PipelineStatus, Release};
use cel_expression::Expression;
use change_window::window;
use controller_kit::check_name;
use controller_kit::impersonation::{Account, as_account};
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _, discovery};
use promotion::decisions::Decisions;
use promotion::plan::{Situation, Wait, candidates};
use serde_json::{Value, json};

use tokio::time::Instant;

use crate::attest;
use crate::context::Context;
use crate::observe::DEFAULT_ACCOUNT;
use crate::proposal;

/// How long an object may take to be read.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long all gates of a pipeline may take: others wait for the worker.
pub(crate) const ALL_TIMEOUT: Duration = Duration::from_secs(30);
const LATE_GATES: &str = "it was not looked at: all gates together took too long";
/// What a gate is about that looks at nothing else.
const THE_EXPRESSION: &str = "the expression";
const LATE: &str = "the API server did not answer in time";
/// Characters of a problem that are shown.
const MAX_PROBLEM: usize = 400;

/// What was found, by environment.
#[derive(Default)]
pub(crate) struct Gates {
    closed: BTreeMap<String, Vec<Wait>>,
    /// Nothing wakes the pipeline when a gate opens.
    pub(crate) is_polled: bool,
}

impl promotion::plan::Gates for Gates {
    fn closed(&self, environment: &str, _: &Release) -> Vec<Wait> {
        self.closed.get(environment).cloned().unwrap_or_default()
    }
}

impl Gates {
    /// Looks at the gates of environments for which it matters.
    pub(crate) async fn look(
        object: &Pipeline,
        spec: &PipelineSpec,
        status: &PipelineStatus,
        decisions: &Decisions,
        context: &Context,
    ) -> Self {
        let (refused, open) = (BTreeMap::new(), BTreeSet::new());
        let candidates = candidates(&Situation {
            spec,
            status,
            decisions,
            gates: &(),
            refused: &refused,
            open: &open,
            now: Timestamp::now(),
        });
        let mut gates = Self::default();
        let deadline = Instant::now() + ALL_TIMEOUT;
        let environments = spec.environments.iter().zip(&status.environments);
        for ((environment, seen), candidate) in environments.zip(candidates) {
            let changing = seen.targets.iter().filter_map(|target| target.change.as_ref());
            let mut begun = changing.filter(|change| change.commit.is_none());
            let number = candidate.map(|release| release.number);
            let number = number.or_else(|| begun.next().map(|change| change.release));
            let mut releases = status.releases.iter();
            let release = number.and_then(|number| releases.find(|release| release.number == number));
            let Some(release) = release else {
                continue;
            };
            let mut closed: Vec<_> = window(object, &environment.name, context)
                .await
                .into_iter()
                .collect();
            for gate in &environment.gates {
                let looking = Looking {
                    pipeline: object,
                    status,
                    environment: &environment.name,
                    release,
                    deadline,
                };
                if let Err(why) = evaluate(gate, looking, context).await {
                    gates.is_polled = true;
                    closed.push(Wait::new(format!("gate {}: {}", gate.name, why.text())));
                }
            }
            gates.closed.insert(environment.name.clone(), closed);
        }
        gates
    }
}

/// The window of the ChangePolicy of an environment, if it is closed.
async fn window(object: &Pipeline, environment: &str, context: &Context) -> Option<Wait> {
    let policy = match proposal::policy(object, environment, context).await {
        Ok(policy) => policy?,
        // What cannot be read may have windows.
        Err(error) => return Some(Wait::new(error_chain::chain(&error))),
    };
    let name = policy.name_any();
    match window::gate(&policy.spec.windows, Timestamp::now()) {
        Ok(window::Gate::Open) => None,
        Ok(window::Gate::Opens(time)) => Some(Wait {
            cause: format!("window of ChangePolicy '{name}' opens"),
            until: Some(time),
        }),
        Err(error) => Some(Wait::new(format!("ChangePolicy '{name}': {error}"))),
    }
}

/// Why a gate is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closed {
    /// Its condition is false.
    False(String),
    /// It could not be evaluated.
    Unknown(String),
}

impl Closed {
    /// For people. What servers and objects say is others' text.
    pub(crate) fn text(&self) -> String {
        let (Self::False(text) | Self::Unknown(text)) = self;
        let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        plain.take(MAX_PROBLEM).collect()
    }
}

impl From<String> for Closed {
    fn from(text: String) -> Self {
        Self::Unknown(text)
    }
}

/// What a gate is looked at for.
#[derive(Clone, Copy)]
pub(crate) struct Looking<'a> {
    /// The pipeline.
    pub(crate) pipeline: &'a Pipeline,
    /// What is known of it by now.
    pub(crate) status: &'a PipelineStatus,
    /// The environment whose gate it is.
    pub(crate) environment: &'a str,
    /// The release that would enter, or is there.
    pub(crate) release: &'a Release,
    /// Until when an answer is waited for.
    pub(crate) deadline: Instant,
}

/// Returns why a gate is closed, if it is.
pub(crate) async fn evaluate(gate: &Gate, looking: Looking<'_>, context: &Context) -> Result<(), Closed> {
    tokio::time::timeout_at(looking.deadline, answer(gate, looking, context))
        .await
        .unwrap_or_else(|_| Err(LATE_GATES.to_owned().into()))
}

async fn answer(gate: &Gate, looking: Looking<'_>, context: &Context) -> Result<(), Closed> {
    let Looking {
        pipeline,
        status,
        environment,
        release,
        ..
    } = looking;
    let account = Account {
        namespace: pipeline.namespace().unwrap_or_default(),
        name: pipeline
            .spec
            .service_account_name
            .clone()
            .unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned()),
    };
    let told = told(pipeline, environment, release);
    let place = (account.namespace.as_str(), context);
    let (subject, mut variables) = match gate {
        Gate { job: Some(job), .. } => {
            let client = as_account(&context.client, &account).map_err(|error| error_chain::chain(&error))?;
            let running = job::run(job, gate, pipeline, (environment, release), client);
            let ran = tokio::time::timeout(TIMEOUT, running).await;
            return Ok(ran.unwrap_or_else(|_| Err(LATE.to_owned()))?);
        }
        Gate {
            http: Some(server), ..
        } => {
            let (asked, response) = remote::http(server, gate.expr.is_some(), &told, place).await?;
            (asked, json!({"response": response}))
        }
        Gate {
            prometheus: Some(query),
            ..
        } => {
            let (asked, value, result) = remote::prometheus(query, place).await?;
            (asked, json!({"value": value, "result": result}))
        }
        Gate {
            commit_status: Some(statuses),
            ..
        } => commit::statuses(statuses, gate.expr.is_some(), release, place).await?,
        Gate {
            attestation: Some(asked),
            ..
        } => {
            let predicate = attest::attested(asked, (pipeline, status, release), context).await?;
            let subject = format!("the attestation of {}", asked.environment);
            (subject, json!({"attestation": predicate}))
        }
        Gate {
            object: Some(named), ..
        } => {
            let client = as_account(&context.client, &account).map_err(|error| error_chain::chain(&error))?;
            let subject = format!("{}/{}", named.kind, named.name);
            let reading = tokio::time::timeout(TIMEOUT, read(named, &account.namespace, client));
            let object = reading.await.unwrap_or_else(|_| Err(LATE.to_owned()));
            let object = object.map_err(|problem| format!("{subject}: {problem}"))?;
            (subject, json!({"object": object}))
        }
        _ => (THE_EXPRESSION.to_owned(), json!({})),
    };
    let Some(expr) = &gate.expr else {
        // Of the others a good answer is enough.
        return match (&gate.http, &gate.commit_status, &gate.attestation) {
            (None, None, None) => Err("it has no expression".to_owned().into()),
            _ => Ok(()),
        };
    };
    if let (Some(variables), Value::Object(told)) = (variables.as_object_mut(), told) {
        variables.extend(told);
    }
    let names: Vec<&str> = variables
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
        .map(String::as_str)
        .collect();
    let expression = Expression::parse_with_variables(expr, &names);
    let expression = expression.map_err(|error| error_chain::chain(&error))?;
    // A stack of its own, and a bounded number of steps: it takes milliseconds at most.
    let answer = tokio::task::spawn_blocking(move || expression.evaluate_boolean(&variables)).await;
    match answer {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(Closed::False(match subject.as_str() {
            THE_EXPRESSION => "the expression is false".to_owned(),
            subject => format!("{subject} does not fulfil it yet"),
        })),
        Ok(Err(error)) => Err(format!("{subject}: {}", error_chain::chain(&error)).into()),
        Err(_) => Err("it was not evaluated".to_owned().into()),
    }
}

/// What a gate knows beside what it looks at.
fn told(pipeline: &Pipeline, environment: &str, release: &Release) -> Value {
    json!({
        "pipeline": {"namespace": pipeline.namespace(), "name": pipeline.name_any()},
        "environment": environment,
        "now": Timestamp::now().to_string(),
        "release": {"number": release.number, "digest": release.digest, "values": release.values},
    })
}

/// What the API server says of a failure.
fn said(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message,
        error => error_chain::chain(&error),
    }
}

/// Reads an object of any kind.
async fn read(object: &GateObject, own: &str, client: Client) -> Result<Value, String> {
    check_name(&object.name)?;
    let namespace = object.namespace.as_deref().unwrap_or(own);
    check_name(namespace)?;
    let (group, version) = match object.api_version.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", object.api_version.as_str()),
    };
    check_name(group)?;
    check_name(version)?;
    let kind = GroupVersionKind::gvk(group, version, &object.kind);
    let (resource, capabilities) = discovery::pinned_kind(&client, &kind).await.map_err(said)?;
    let api: Api<DynamicObject> = match capabilities.scope {
        discovery::Scope::Cluster => Api::all_with(client, &resource),
        discovery::Scope::Namespaced => Api::namespaced_with(client, namespace, &resource),
    };
    let found = api.get(&object.name).await.map_err(said)?;
    serde_json::to_value(found).map_err(|error| error.to_string())
}
