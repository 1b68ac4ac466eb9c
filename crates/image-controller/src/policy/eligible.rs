//! Which of the newest tags meets what a policy demands beyond its order: its age, its signature, its attestations,
//! its platforms.
//!
//! Tags are tried from the newest on, and the first that meets all demands is chosen. The registry says only where a tag
//! points to; when that was seen first is this controller's own observation, or the time of a transparency log whose
//! signature the policy demands. What the policy chose before is exempt from the age, so that neither a new annotation nor a
//! restart without a volume makes it go back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use api::image::{ImagePolicy, ImageRef, ImageRepository, ReflectionPolicy};
use artifact::digest::Digest;
use controller_kit::ObjectKey;
use image_policy::Newest;
use image_policy::demand::{self, Demands};
use image_policy::hold::{self, Holds};
use jiff::{Timestamp, Unit};
use oci_client::name::Name;
use oci_client::registry::Repository;
use oci_verify::{AttestationDemand, Attested, Material, Outcome, Statement};

use super::Error;
use super::rules::Rules;
use crate::context::Context;
use crate::repository::registry;
use crate::tags::Tags;

/// Tags that are tried. Each costs the registry a few requests.
pub(super) const MAX_CANDIDATES: usize = 20;
/// Tags that a message names.
const MAX_NAMED: usize = 5;
/// Characters of a reason in a message.
const MAX_REASON: usize = 500;

/// The tag that meets all demands.
pub(super) struct Picked {
    pub(super) tag: String,
    /// None if the policy does not want it.
    pub(super) digest: Option<String>,
    pub(super) passed_over: PassedOver,
}

/// Tags that stand before the chosen one and are not chosen yet.
#[derive(Debug, Default)]
pub(crate) struct PassedOver(Vec<Tag>);

/// One of them.
#[derive(Debug)]
struct Tag {
    /// With its digest if the tag was moved away from the chosen one.
    name: String,
    unmet: Unmet,
}

/// The demand that a tag does not meet.
#[derive(Debug, thiserror::Error)]
enum Unmet {
    #[error("is too young: first seen {since}, eligible from {from} on ({annotation})", annotation = demand::MINIMUM_AGE)]
    TooYoung { since: Timestamp, from: Timestamp },
    #[error("{0} ({annotation})", annotation = demand::VERIFY)]
    Unsigned(String),
    #[error("{0} ({annotation})", annotation = demand::VERIFY_ATTESTATIONS)]
    NotAttested(String),
    #[error("{0} ({annotation})", annotation = demand::PLATFORMS)]
    Platforms(String),
    #[error("is {0} ({annotation})", annotation = hold::ANNOTATION)]
    Held(String),
}

impl PassedOver {
    fn push(&mut self, name: String, unmet: Unmet) {
        self.0.push(Tag { name, unmet });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When to look again: when the first of them is old enough; at the interval, if a signature or a platform may be added
    /// without a new tag.
    pub(super) fn due(&self, interval: Duration, now: Timestamp) -> Option<Timestamp> {
        let at_interval = now.checked_add(interval).ok().filter(|_| !interval.is_zero());
        let due = self.0.iter().filter_map(|tag| match tag.unmet {
            Unmet::TooYoung { from, .. } => Some(from),
            Unmet::Held(_) => None,
            Unmet::Unsigned(_) | Unmet::NotAttested(_) | Unmet::Platforms(_) => at_interval,
        });
        due.min()
    }
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Tag { name, unmet }) in self.0.iter().take(MAX_NAMED).enumerate() {
            let separator = if number == 0 { "" } else { "\n" };
            let reason: String = unmet.to_string().chars().take(MAX_REASON).collect();
            write!(f, "{separator}{name}: {reason}")?;
        }
        match self.0.len().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// What a policy chooses from.
pub(super) struct Candidates<'a> {
    pub(super) object: &'a ImagePolicy,
    /// The ImageRepository.
    pub(super) key: ObjectKey,
    pub(super) repository: Arc<ImageRepository>,
    pub(super) name: Name,
    pub(super) known: Arc<Tags>,
    pub(super) context: &'a Context,
}

impl Candidates<'_> {
    /// Picks the first tag, of which nothing is demanded.
    pub(super) async fn first(&self, tag: &str) -> Result<Picked, Error> {
        let digest = match self.object.reflection() {
            ReflectionPolicy::Never => None,
            ReflectionPolicy::IfNotPresent if let Some(kept) = self.kept(tag) => Some(kept.to_owned()),
            _ => Some(self.digest(&self.remote().await?, tag).await?.to_string()),
        };
        Ok(Picked {
            tag: tag.to_owned(),
            digest,
            passed_over: PassedOver::default(),
        })
    }

    /// Picks the first tag that meets all demands.
    pub(super) async fn eligible(&self, rules: &Rules, newest: &Newest) -> Result<Picked, Error> {
        let demands = &rules.demands;
        let namespace = self.object.metadata.namespace.as_deref().unwrap_or_default();
        // Whoever demands a signature says by whom: the keys are in the namespace of the policy.
        let reader = self.context.reader(namespace);
        let mut materials = Vec::new();
        for wanted in demands.verifications() {
            let material = oci_verify::read(wanted, &reader).await;
            materials.push(material.map_err(Error::Material)?);
        }
        let attestations = materials.split_off(usize::from(demands.verification.is_some()));
        let inspection = Inspection {
            demands,
            statements: &rules.statements,
            holds: &rules.holds,
            signature: materials.pop().unwrap_or_default(),
            attestations,
            remote: self.remote().await?,
            now: now_in_seconds(),
            candidates: self,
        };
        inspection.pick(newest).await
    }

    async fn remote(&self) -> Result<Repository, Error> {
        Ok(registry::repository(&self.repository, self.name.clone(), self.context).await?)
    }

    async fn digest(&self, remote: &Repository, tag: &str) -> Result<Digest, Error> {
        let digest = oci_client::digest_of_tag(remote, tag).await;
        digest.map_err(|source| {
            registry::heed(&source, &self.repository, remote, self.context);
            Error::Digest {
                tag: tag.to_owned(),
                source,
            }
        })
    }

    /// The image in the status, if it has this tag.
    fn chosen_before(&self, tag: &str) -> Option<&ImageRef> {
        let chosen = self.object.status.as_ref()?.latest_ref.as_ref()?;
        (chosen.tag == tag && chosen.name == self.repository.spec.image).then_some(chosen)
    }

    /// Its digest.
    fn kept(&self, tag: &str) -> Option<&str> {
        self.chosen_before(tag)?.digest.as_deref()
    }
}

/// What is written and shown needs no fractions.
fn now_in_seconds() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Second).unwrap_or(now)
}

/// The candidates under their demands.
struct Inspection<'a> {
    candidates: &'a Candidates<'a>,
    demands: &'a Demands,
    /// Of the demanded attestations.
    statements: &'a [Statement],
    /// Of tags at one digest; those of whole tags are no candidates.
    holds: &'a Holds,
    /// Of the Secrets that the demanded signature names.
    signature: Material,
    /// Of those that each of the demanded attestations names.
    attestations: Vec<Material>,
    remote: Repository,
    now: Timestamp,
}

impl Inspection<'_> {
    async fn pick(&self, newest: &Newest) -> Result<Picked, Error> {
        let mut passed_over = PassedOver::default();
        for tag in newest.iter() {
            let was_chosen = self.candidates.chosen_before(tag).is_some();
            let kept = self.candidates.kept(tag).and_then(|kept| kept.parse().ok());
            if !was_chosen && let Some(unmet) = self.is_known_to_be_young(tag) {
                passed_over.push(tag.to_owned(), unmet);
                continue;
            }
            let digest = match kept {
                Some(kept) if self.candidates.object.reflection() == ReflectionPolicy::IfNotPresent => kept,
                _ => self.candidates.digest(&self.remote, tag).await?,
            };
            let is_old = was_chosen && kept.is_none_or(|kept| kept == digest);
            let Err(unmet) = self.judge(tag, digest, is_old).await? else {
                return Ok(self.picked(tag, digest, passed_over));
            };
            let instead = || self.instead(tag, digest);
            match kept.filter(|kept| *kept != digest).or_else(instead) {
                None => passed_over.push(tag.to_owned(), unmet),
                Some(kept) => {
                    passed_over.push(format!("{tag}@{digest}"), unmet);
                    // The tag was moved, or is held at this digest. What it pointed to stays chosen, rather than an older tag.
                    if self.judge(tag, kept, true).await?.is_ok() {
                        return Ok(self.picked(tag, kept, passed_over));
                    }
                }
            }
        }
        Err(Error::NoneEligible(passed_over))
    }

    /// The digest that is to be chosen in the place of one that is held.
    fn instead(&self, tag: &str, digest: Digest) -> Option<Digest> {
        let hold = self.holds.get_digest(tag, &digest.to_string())?;
        hold.instead.parse().ok().filter(|instead| *instead != digest)
    }

    fn picked(&self, tag: &str, digest: Digest, passed_over: PassedOver) -> Picked {
        let is_wanted = self.candidates.object.reflection() != ReflectionPolicy::Never;
        Picked {
            tag: tag.to_owned(),
            digest: is_wanted.then(|| digest.to_string()),
            passed_over,
        }
    }

    /// What the last look at the tag says already. A tag that was moved since would be younger still.
    fn is_known_to_be_young(&self, tag: &str) -> Option<Unmet> {
        if self.asks_log() {
            return None;
        }
        self.too_young(self.candidates.known.look(tag)?.since)
    }

    fn too_young(&self, since: Timestamp) -> Option<Unmet> {
        let age = self.demands.minimum_age?;
        let from = since.checked_add(age).unwrap_or(Timestamp::MAX);
        (from > self.now).then_some(Unmet::TooYoung { since, from })
    }

    /// Returns whether a log may know more about the age than this controller.
    fn asks_log(&self) -> bool {
        let mut verifications = self.demands.verifications();
        verifications.any(|wanted| wanted.secret_ref.is_none())
    }

    /// Holds what a tag points to against the demands.
    async fn judge(&self, tag: &str, digest: Digest, is_old: bool) -> Result<Result<(), Unmet>, Error> {
        if let Some(hold) = self.holds.get_digest(tag, &digest.to_string()) {
            return Ok(Err(Unmet::Held(hold.to_string())));
        }
        let since = match self.demands.minimum_age {
            Some(_) if !is_old => Some(self.first_seen(tag, digest).await),
            _ => None,
        };
        let too_young = |since| self.too_young(since);
        if !self.asks_log()
            && let Some(unmet) = since.and_then(too_young)
        {
            return Ok(Err(unmet));
        }
        if let Err(unmet) = self.has_platforms(tag, digest).await? {
            return Ok(Err(unmet));
        }
        let signed_at = match self.is_signed(tag, digest).await? {
            Ok(recorded_at) => recorded_at,
            Err(unmet) => return Ok(Err(unmet)),
        };
        let attested_at = match self.is_attested(tag, digest).await? {
            Ok(recorded_at) => recorded_at,
            Err(unmet) => return Ok(Err(unmet)),
        };
        let since = since.map(|since| {
            signed_at
                .into_iter()
                .chain(attested_at)
                .fold(since, Timestamp::min)
        });
        Ok(since.and_then(too_young).map_or(Ok(()), Err))
    }

    /// Records that the tag points to this digest. Returns since when that is known.
    async fn first_seen(&self, tag: &str, digest: Digest) -> Timestamp {
        let (candidates, now) = (self.candidates, self.now);
        let (store, key) = (candidates.context.tags.clone(), candidates.key.clone());
        let name = tag.to_owned();
        let look = tokio::task::spawn_blocking(move || store.look(&key, &name, &digest.to_string(), now));
        let Ok((since, written)) = look.await else {
            return now;
        };
        if let Err(error) = written {
            tracing::error!(%error, "failed to write the age of a tag to the storage path: it is new again after a restart");
        }
        since
    }

    async fn has_platforms(&self, tag: &str, digest: Digest) -> Result<Result<(), Unmet>, Error> {
        let wanted = &self.demands.platforms;
        if wanted.is_empty() {
            return Ok(Ok(()));
        }
        let found = match oci_client::platforms(&self.remote, digest).await {
            Ok(found) => found,
            Err(error) if error.is_about_content() => {
                return Ok(Err(Unmet::Platforms(error_chain::chain(&error))));
            }
            Err(source) => {
                let tag = tag.to_owned();
                return Err(Error::Platforms { tag, source });
            }
        };
        let is_missing = |wanted: &&demand::Platform| {
            let mut found = found.iter();
            !found.any(|one| wanted.is_met_by(&one.os, &one.architecture, &one.variant))
        };
        let missing: Vec<_> = wanted
            .iter()
            .filter(is_missing)
            .map(ToString::to_string)
            .collect();
        Ok(match missing.is_empty() {
            true => Ok(()),
            false => Err(Unmet::Platforms(format!(
                "has no image for {}",
                missing.join(", ")
            ))),
        })
    }

    /// Verifies the signature. Returns when a transparency log recorded it.
    async fn is_signed(&self, tag: &str, digest: Digest) -> Result<Result<Option<Timestamp>, Unmet>, Error> {
        let Some(wanted) = &self.demands.verification else {
            return Ok(Ok(None));
        };
        let sigstore = &self.candidates.context.sigstore;
        let outcome = oci_verify::verify(&self.remote, digest, wanted, &self.signature, sigstore).await;
        recorded_at(tag, outcome, Unmet::Unsigned)
    }

    /// Verifies the attestations. Returns when a transparency log recorded the first of them.
    async fn is_attested(
        &self,
        tag: &str,
        digest: Digest,
    ) -> Result<Result<Option<Timestamp>, Unmet>, Error> {
        if self.demands.attestations.is_empty() {
            return Ok(Ok(None));
        }
        let judges: Vec<_> = self.statements.iter().map(judge).collect();
        let demands = self
            .demands
            .attestations
            .iter()
            .zip(&self.attestations)
            .zip(&judges);
        let demands = demands.map(|((wanted, material), is_met)| AttestationDemand {
            predicate_type: &wanted.predicate_type,
            specification: &wanted.verification,
            material,
            is_met,
        });
        let demands: Vec<_> = demands.collect();
        let sigstore = &self.candidates.context.sigstore;
        let outcome = oci_verify::verify_attestations(&self.remote, digest, &demands, sigstore).await;
        recorded_at(tag, outcome, Unmet::NotAttested)
    }
}

fn judge(statement: &Statement) -> impl Fn(&Attested) -> Result<(), String> + Sync + '_ {
    |attested| statement.judge(&attested.predicate)
}

/// What a verification says of a tag: when it was recorded, or that the demand is not met.
fn recorded_at(
    tag: &str,
    outcome: Result<Outcome, oci_verify::Error>,
    unmet: fn(String) -> Unmet,
) -> Result<Result<Option<Timestamp>, Unmet>, Error> {
    match outcome {
        Ok(Outcome::Verified { recorded_at }) => Ok(Ok(recorded_at)),
        // The trust policy of the demand itself says so.
        Ok(Outcome::Ignored) => Ok(Ok(None)),
        Err(error) if error.is_about_the_artifact() => Ok(Err(unmet(error_chain::chain(&error)))),
        Err(source) => {
            let (tag, source) = (tag.to_owned(), Box::new(source));
            Err(Error::Verify { tag, source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn young(from: i64) -> Unmet {
        Unmet::TooYoung {
            since: at(0),
            from: at(from),
        }
    }

    fn passed_over(unmet: impl IntoIterator<Item = Unmet>) -> PassedOver {
        let mut all = PassedOver::default();
        for (number, unmet) in unmet.into_iter().enumerate() {
            all.push(format!("1.{number}"), unmet);
        }
        all
    }

    #[test]
    fn it_is_looked_again_when_the_first_is_old_enough_or_may_be_signed() {
        let hour = Duration::from_secs(3600);
        let due = |unmet: Vec<Unmet>, interval| {
            let due = passed_over(unmet).due(interval, at(100));
            due.map(Timestamp::as_second)
        };
        let unsigned = || Unmet::Unsigned(String::new());
        assert_eq!(due(vec![], hour), None);
        assert_eq!(due(vec![young(500), young(300)], hour), Some(300));
        assert_eq!(due(vec![young(9000), unsigned()], hour), Some(3700));
        assert_eq!(due(vec![unsigned()], Duration::ZERO), None);
        assert_eq!(due(vec![Unmet::Platforms(String::new())], hour), Some(3700));
    }

    #[test]
    fn the_first_of_many_are_named_and_none_at_length() {
        let text = passed_over([young(60), Unmet::Unsigned("no signatures found".to_owned())]).to_string();
        assert_eq!(
            text,
            "1.0: is too young: first seen 1970-01-01T00:00:00Z, eligible from 1970-01-01T00:01:00Z on \
             (windlass.dev/minimum-age)\n1.1: no signatures found (windlass.dev/verify)"
        );
        let text = passed_over((0..9).map(|_| Unmet::Unsigned("x".repeat(1000)))).to_string();
        assert!(text.ends_with("\nand 4 more") && text.len() < 2700, "{text}");
    }
}
