//! What callers decide about pipelines: whose annotations are set then.
//!
//! Read from the picture, and written only if no one changed it since: the console needs no right to get it.

use api::delivery::Pipeline;
use fleet::picture::Known;
use fleet::row::Key;
use jiff::{SignedDuration, Timestamp};
use promotion::decide::{self, Wish};
use serde_json::{Value, json};

use super::{Acted, Error, Subject, Verb, describe};
use crate::clusters::Judge;
use crate::sight::{Answer, Sight};

/// The kind that decisions are about.
pub const PIPELINE: &str = "Pipeline";

/// What a decision is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// The environment; every one if empty, where that means something.
    pub environment: String,
    /// Number of the release.
    pub number: Option<u64>,
    /// How long a hold lasts, such as `12h`; until it is released if empty.
    pub duration: String,
}

/// A decision, ready to be written.
pub struct Decided {
    pub patch: Value,
    pub said: String,
}

/// Has a caller decide. Who may not get the pipeline learns nothing of it so.
pub async fn decide(
    sight: &Sight,
    subject: &Subject,
    verb: Verb,
    about: &Decision,
    reason: &str,
    judge: &Judge,
) -> Result<Decided, Error> {
    let absent = || Error::Absent(describe(subject));
    let Acted::Flux(kind) = subject.kind else {
        return Err(absent());
    };
    let key = Key::new(&subject.cluster, kind, &subject.namespace, &subject.name);
    match sight.may_get(&key).await {
        Ok(Answer::Yes) => {}
        Ok(_) => return Err(absent()),
        Err(_) => return Err(Error::Silent),
    }
    let Known::Whole(object) = sight.console.picture.object(&key) else {
        return Err(absent());
    };
    let version = object.pointer("/metadata/resourceVersion").cloned();
    let pipeline: Pipeline = serde_json::from_value(object)
        .map_err(|error| Error::Undecided(format!("{} cannot be read: {error}", describe(subject))))?;
    let wish = wish(verb, about, reason)?;
    let person = decide::Person {
        name: &judge.caller.username,
        groups: judge.caller.groups(),
    };
    let decided = decide::decide(&pipeline, &wish, person, Timestamp::now());
    let decided = decided.map_err(|refusal| Error::Undecided(refusal.to_string()))?;
    Ok(Decided {
        patch: json!({"metadata": {"resourceVersion": version, "annotations": decided.annotations}}),
        said: decided.said,
    })
}

fn wish(verb: Verb, about: &Decision, reason: &str) -> Result<Wish, Error> {
    let Decision {
        environment, number, ..
    } = about.clone();
    let one = || match environment.is_empty() {
        true => Err(Error::Undecided(format!(
            "environment: {} needs one",
            verb.word()
        ))),
        false => Ok(environment.clone()),
    };
    let any = Some(environment.clone()).filter(|environment| !environment.is_empty());
    let reason = reason.to_owned();
    let needs_reason = || match reason.trim().is_empty() {
        true => Err(Error::Undecided(format!("reason: {} needs one", verb.word()))),
        false => Ok(reason.clone()),
    };
    Ok(match verb {
        Verb::Promote => Wish::Promote {
            environment: one()?,
            release: number,
            reason,
        },
        Verb::Rollback => Wish::RollBack {
            environment: one()?,
            to: number,
            reason: needs_reason()?,
        },
        Verb::Approve => Wish::Approve {
            environment: one()?,
            release: number,
        },
        Verb::Hold => Wish::Hold {
            environment: any,
            release: number,
            reason: needs_reason()?,
            duration: lasting(&about.duration)?,
        },
        _ => Wish::Release {
            environment: any,
            release: number,
        },
    })
}

fn lasting(text: &str) -> Result<Option<SignedDuration>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || Error::Undecided("duration: it is none; write it as 12h or 30m".to_owned());
    let duration: api::meta::Duration = text.parse().map_err(|_| wrong())?;
    SignedDuration::try_from(duration.to_std())
        .map(Some)
        .map_err(|_| wrong())
}
