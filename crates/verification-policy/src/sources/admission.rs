//! One run of one source: the policies that apply to it, and what it meets of them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use api::delivery::{PolicyAction, VerificationPolicy};
use sha2::{Digest as _, Sha256};

use super::origin::Origin;
use crate::scope;
use crate::tally::{Outcome, Tally};
use crate::trust::{Trust, Trusts};

/// Policies that a message names.
const MAX_NAMED: usize = 3;
/// Warnings of one run that are kept.
const MAX_WARNINGS: usize = 5;
/// Characters of a reason in a message.
const MAX_REASON: usize = 500;

/// The policies that may apply to a source and to what it brings along from elsewhere. By default there are none.
#[derive(Clone, Default)]
pub struct Admission {
    inner: Option<Arc<Inner>>,
}

struct Inner {
    namespace: String,
    policies: Vec<Arc<VerificationPolicy>>,
    trusts: Arc<Trusts>,
    tally: Tally,
    warnings: Mutex<BTreeSet<String>>,
}

/// A source that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    said: String,
    /// True if only another spec or policy helps: it is where it may not be.
    pub is_final: bool,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.said)
    }
}

/// What a revision meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// What it does not meet of policies with the action Warn.
    pub warnings: Vec<String>,
    /// The policies, as [`Admission::signature`] says it.
    pub by: String,
}

impl Admission {
    /// The policies of the cluster for the sources of a namespace.
    pub(super) fn new(
        namespace: &str,
        policies: Vec<Arc<VerificationPolicy>>,
        trusts: Arc<Trusts>,
        tally: Tally,
    ) -> Self {
        let inner = (!policies.is_empty()).then(|| {
            Arc::new(Inner {
                namespace: namespace.to_owned(),
                policies,
                trusts,
                tally,
                warnings: Mutex::default(),
            })
        });
        Self { inner }
    }

    /// The same, without the policies that are not about a source at this place. Not for sources that bring along others.
    #[must_use]
    pub fn about(&self, origin: &Origin) -> Self {
        let Some(inner) = &self.inner else {
            return Self::default();
        };
        let about = inner
            .about(origin)
            .map(|(_, policy)| Arc::clone(policy))
            .collect();
        Self::new(
            &inner.namespace,
            about,
            Arc::clone(&inner.trusts),
            inner.tally.clone(),
        )
    }

    /// Names the policies and their content. None if there are none. It stands in the status of what met them, and when
    /// that says something else, the source is verified again.
    pub fn signature(&self) -> Option<String> {
        let policies = &self.inner.as_ref()?.policies;
        let mut specs = Sha256::new();
        for policy in policies {
            specs.update(scope::id(policy));
            // It was read from JSON.
            specs.update(serde_json::to_vec(&policy.spec).unwrap_or_default());
        }
        let specs: String = specs
            .finalize()
            .iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let names: Vec<_> = policies
            .iter()
            .take(MAX_NAMED)
            .map(|policy| scope::id(policy))
            .collect();
        let more = match policies.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let kind = if policies.len() == 1 {
            "VerificationPolicy"
        } else {
            "VerificationPolicies"
        };
        Some(format!("({kind} {}{more}; specs {specs})", names.join(", ")))
    }

    /// Looks whether something may be fetched from there, before it is asked.
    ///
    /// # Errors
    /// When a policy refuses it.
    pub fn admit(&self, origin: &Origin) -> Result<(), Refusal> {
        let Some(inner) = &self.inner else {
            return Ok(());
        };
        for (place, policy) in inner.about(origin) {
            let problem = match &place {
                Err(problem) => Some((*problem).clone()),
                Ok(place) if !scope::lets_in_place(policy, place) => Some(format!("nothing may come from {place}")),
                Ok(_) if origin.is_intercepted() && has_from(policy) => Some(
                    "what is fetched by a proxy of its own, without the system's certificate authorities, may come from \
                     anywhere"
                        .to_owned(),
                ),
                Ok(_) => None,
            };
            match problem {
                Some(problem) => inner.conclude(policy, Err(problem), true)?,
                // Whether the others are met is known later.
                None if !demands_signature(policy) => inner.tally.count(Outcome::Met),
                None => {}
            }
        }
        Ok(())
    }

    /// The policies that demand a signature of what comes from there.
    pub fn demanding(&self, origin: &Origin) -> Vec<Arc<VerificationPolicy>> {
        let inner = self.inner.iter();
        let about = inner.flat_map(|inner| inner.about(origin));
        let demanding = about.filter(|(_, policy)| demands_signature(policy));
        demanding.map(|(_, policy)| Arc::clone(policy)).collect()
    }

    /// What a policy trusts, or why that is not known.
    ///
    /// # Errors
    /// When its Secrets or expressions cannot be read.
    pub async fn trust(&self, policy: &VerificationPolicy) -> Result<Arc<Trust>, String> {
        match &self.inner {
            Some(inner) => inner.trusts.of(&inner.namespace, policy).await,
            None => Err("it does not apply here".to_owned()),
        }
    }

    /// Says what came of a policy that demands a signature.
    ///
    /// # Errors
    /// When it is not met, and not only to be warned of.
    pub fn conclude(&self, policy: &VerificationPolicy, result: Result<(), String>) -> Result<(), Refusal> {
        match &self.inner {
            Some(inner) => inner.conclude(policy, result, false),
            None => Ok(()),
        }
    }

    /// Refuses something that comes along and cannot be verified, such as a chart that another one needs.
    ///
    /// # Errors
    /// When a policy demands a signature of it, and not only to be warned of.
    pub fn cannot_verify(&self, what: &str, origin: &Origin) -> Result<(), Refusal> {
        for policy in self.demanding(origin) {
            self.conclude(&policy, Err(format!("{what} cannot be verified")))?;
        }
        Ok(())
    }

    /// What was met, after all of it was looked at. None if there are no policies.
    pub fn met(&self) -> Option<Met> {
        let inner = self.inner.as_ref()?;
        let warnings = inner.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Met {
            warnings: warnings.iter().cloned().collect(),
            by: self.signature()?,
        })
    }
}

impl Inner {
    /// The policies that are about a place, with the place.
    fn about<'a>(
        &'a self,
        origin: &'a Origin,
    ) -> impl Iterator<Item = (Result<&'a str, &'a String>, &'a Arc<VerificationPolicy>)> {
        let place = origin.place.as_deref();
        let about = self.policies.iter().filter(move |policy| {
            // What has no place may be at any.
            place.is_ok_and(|place| scope::is_about_place(policy, place)) || place.is_err()
        });
        about.map(move |policy| (place, policy))
    }

    fn conclude(
        &self,
        policy: &VerificationPolicy,
        result: Result<(), String>,
        is_final: bool,
    ) -> Result<(), Refusal> {
        let Err(problem) = result else {
            self.tally.count(Outcome::Met);
            return Ok(());
        };
        let problem: String = problem.chars().take(MAX_REASON).collect();
        let why = policy.spec.reason.as_ref();
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let id = scope::id(policy);
        match policy.spec.action.unwrap_or_default() {
            PolicyAction::Enforce => {
                self.tally.count(Outcome::Refused);
                Err(Refusal {
                    said: format!("refused by VerificationPolicy {id}: {problem}{why}"),
                    is_final,
                })
            }
            PolicyAction::Warn => {
                self.tally.count(Outcome::Warned);
                let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
                if warnings.len() < MAX_WARNINGS {
                    warnings.insert(format!("does not meet VerificationPolicy {id}: {problem}{why}"));
                }
                Ok(())
            }
        }
    }
}

fn has_from(policy: &VerificationPolicy) -> bool {
    policy
        .spec
        .sources
        .as_ref()
        .is_some_and(|sources| !sources.from.is_empty())
}

fn demands_signature(policy: &VerificationPolicy) -> bool {
    let spec = &policy.spec;
    let git = spec.sources.as_ref().and_then(|sources| sources.git.as_ref());
    git.is_some() || spec.verify.is_some() || !spec.attestations.is_empty()
}
