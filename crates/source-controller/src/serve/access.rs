//! Access to artifacts: a service account that may `get` a source object may read its artifacts (ADR 8).
//!
//! In come a call's token and what it asks for; out comes yes, or a status that says what is missing. Permission is asked
//! for in the widest form first (the kind in the cluster, then in the namespace, then the object), so that a
//! controller costs one review per kind. What is asked for by digest is allowed through an object that holds it; the answer
//! to a refused digest does not name that object.

mod members;

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use artifact::{
    Digest,
    store::{ObjectKey, Store},
};
use kube::Client;
use tonic::{Status, metadata::MetadataMap};

use access_review::{Caller, Error, Reviews, Target};

use self::members::Members;
use access_review::limit::{Limiter, Permit};

/// API group of the sources.
const GROUP: &str = api::meta::SOURCE_GROUP;
/// Kinds with artifacts, in lower case, and their resources.
const RESOURCES: [(&str, &str); 6] = [
    ("bucket", "buckets"),
    ("externalartifact", "externalartifacts"),
    ("gitrepository", "gitrepositories"),
    ("helmchart", "helmcharts"),
    ("helmrepository", "helmrepositories"),
    ("ocirepository", "ocirepositories"),
];
/// Holders of one digest that are asked about; more objects with the same content are not looked at.
const MOST_HOLDERS: usize = 64;
/// Calls of one address whose token is being looked at.
const MOST_UNKNOWN: usize = 32;
/// Seconds after which a caller with too many calls may try again.
const RETRY_AFTER: &str = "1";

/// Decides about calls.
#[derive(Clone)]
pub struct Access {
    guard: Option<Arc<Guard>>,
    /// By caller.
    calls: Limiter,
    /// By address, before the caller is known.
    unknown: Limiter,
}

struct Guard {
    reviews: Reviews,
    members: Members,
}

/// A call that may go on. It counts as running until this is dropped.
pub struct Admitted {
    /// None: everybody may do everything.
    who: Option<(Arc<Guard>, Arc<Caller>)>,
    permit: Permit,
}

impl Access {
    /// Lets everybody read everything, within a number of calls at once per address.
    pub fn open(calls: usize) -> Self {
        Self {
            guard: None,
            calls: Limiter::new(calls),
            unknown: Limiter::new(0),
        }
    }

    /// Lets service accounts with tokens for the audience read what they may get, within a number of calls at once for each.
    pub fn guarded(client: Client, audience: String, calls: usize) -> Self {
        let guard = Guard {
            reviews: Reviews::for_audience(client, audience),
            members: Members::default(),
        };
        Self {
            guard: Some(Arc::new(guard)),
            calls: Limiter::new(calls),
            unknown: Limiter::new(MOST_UNKNOWN),
        }
    }

    /// Finds out who calls, and whether there is room for one more of their calls.
    ///
    /// # Errors
    /// `UNAUTHENTICATED` without a good token, `RESOURCE_EXHAUSTED` with too many calls, `UNAVAILABLE` when the API
    /// server does not answer.
    pub async fn admit(&self, metadata: &MetadataMap, address: IpAddr) -> Result<Admitted, Status> {
        let address = address.to_string();
        let Some(guard) = &self.guard else {
            let permit = self.calls.begin(&address).ok_or_else(|| too_many(&self.calls))?;
            return Ok(Admitted { who: None, permit });
        };
        let token = bearer(metadata)?;
        let turn = self
            .unknown
            .begin(&address)
            .ok_or_else(|| too_many(&self.unknown))?;
        let caller = guard
            .reviews
            .caller(token)
            .await
            .map_err(|error| status(&error))?;
        drop(turn);
        let permit = self.calls.begin(&caller.username);
        Ok(Admitted {
            permit: permit.ok_or_else(|| too_many(&self.calls))?,
            who: Some((guard.clone(), caller)),
        })
    }
}

impl Admitted {
    /// Converts the wait into a permit: the call is running.
    pub fn into_permit(self) -> Permit {
        self.permit
    }

    /// Fails unless the caller may get the object.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` with the permission that is missing.
    pub async fn check_object(&self, object: &ObjectKey) -> Result<(), Status> {
        if self.may_get(object).await? {
            return Ok(());
        }
        let caller = self.name();
        let ObjectKey {
            kind,
            namespace,
            name,
        } = object;
        Err(Status::permission_denied(match resource(kind) {
            Some(resource) => format!(
                "{caller} may not read the artifacts of {kind}/{namespace}/{name}: grant it the verb get on \
                 {resource}.{GROUP} in the namespace {namespace}"
            ),
            None => format!("{caller} may not read the artifacts of {kind}/{namespace}/{name}: no such kind"),
        }))
    }

    /// Returns whether the caller may get the object.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn may_get(&self, object: &ObjectKey) -> Result<bool, Status> {
        let Some((guard, caller)) = &self.who else {
            return Ok(true);
        };
        let Some(resource) = resource(&object.kind) else {
            return Ok(false);
        };
        let target = Target {
            group: GROUP,
            resource,
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        };
        let answer = guard.reviews.may_get(caller, &target).await;
        answer.map_err(|error| status(&error))
    }

    /// Finds one of the objects that hold some content that the caller may get. Without a holder there is nothing.
    ///
    /// # Errors
    /// `NOT_FOUND`, or `PERMISSION_DENIED`.
    pub async fn check_holders(
        &self,
        what: &str,
        holders: &BTreeSet<ObjectKey>,
    ) -> Result<Option<ObjectKey>, Status> {
        if self.who.is_none() {
            return Ok(holders.first().cloned());
        }
        if holders.is_empty() {
            return Err(Status::not_found(format!("the store has no {what}")));
        }
        for object in holders.iter().take(MOST_HOLDERS) {
            if self.may_get(object).await? {
                return Ok(Some(object.clone()));
            }
        }
        Err(Status::permission_denied(format!(
            "{} may not read {what}: it needs the verb get on a source (group {GROUP}) that has it",
            self.name()
        )))
    }

    /// Fails unless all digests are in the tree of an artifact that the caller may read.
    ///
    /// # Errors
    /// `NOT_FOUND`, or `PERMISSION_DENIED`.
    pub async fn check_content(
        &self,
        store: &Arc<Store>,
        root: Option<Digest>,
        digests: &[Digest],
    ) -> Result<(), Status> {
        let Some((guard, _)) = &self.who else {
            return Ok(());
        };
        if self.may_get_everything().await? {
            return Ok(());
        }
        let Some(root) = root else {
            return Err(Status::permission_denied(format!(
                "{} may not read by digest alone: name the root of the artifact",
                self.name()
            )));
        };
        let holders = store.holders_of_tree(&root);
        self.check_holders(&format!("tree {root}"), &holders).await?;
        if digests.iter().all(|digest| *digest == root) {
            return Ok(());
        }
        let (guard, walked) = (guard.clone(), store.clone());
        let members = tokio::task::spawn_blocking(move || guard.members.members_of(&walked, &root)).await;
        let members = members
            .map_err(|_| Status::internal("the artifact service failed"))?
            .map_err(|error| super::grpc::status(&error))?;
        match digests.iter().find(|digest| !members.contains(digest)) {
            None => Ok(()),
            Some(digest) => Err(Status::not_found(format!("the tree {root} has no {digest}"))),
        }
    }

    async fn may_get_everything(&self) -> Result<bool, Status> {
        let Some((guard, caller)) = &self.who else {
            return Ok(true);
        };
        for (_, resource) in RESOURCES {
            let all = Target {
                group: GROUP,
                resource,
                ..Target::default()
            };
            let answer = guard.reviews.may_get_exactly(caller, all).await;
            if !answer.map_err(|error| status(&error))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn name(&self) -> &str {
        self.who
            .as_ref()
            .map_or("anybody", |(_, caller)| &caller.username)
    }
}

fn resource(kind: &str) -> Option<&'static str> {
    let found = RESOURCES.iter().find(|(lower, _)| *lower == kind);
    found.map(|(_, resource)| *resource)
}

#[allow(clippy::result_large_err, reason = "tonic's own type")]
fn bearer(metadata: &MetadataMap) -> Result<&str, Status> {
    let missing = || {
        Status::unauthenticated(
            "the call has no token: send the token of a service account as 'authorization: Bearer <token>'",
        )
    };
    let header = metadata.get("authorization").ok_or_else(missing)?;
    let text = header.to_str().map_err(|_| missing())?;
    let (scheme, token) = text.split_once(' ').ok_or_else(missing)?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty();
    if is_bearer {
        Ok(token.trim())
    } else {
        Err(missing())
    }
}

fn status(error: &Error) -> Status {
    match error {
        Error::Token(_) => Status::unauthenticated(error.to_string()),
        Error::Ask { .. } | Error::Slow { .. } | Error::Away => {
            let error = error as &dyn std::error::Error;
            tracing::error!(logger = "artifact-service", error, "failed to review a caller");
            Status::unavailable(format!("{error}; the log of source-controller says why"))
        }
    }
}

fn too_many(limiter: &Limiter) -> Status {
    let most = limiter.most();
    let mut status =
        Status::resource_exhausted(format!("the caller has {most} calls running: try again later"));
    let seconds = tonic::metadata::MetadataValue::from_static(RETRY_AFTER);
    status.metadata_mut().insert("retry-after", seconds);
    status
}

#[cfg(test)]
mod tests;
