//! Keeps two commands that change the installation apart, and tells a later one that an earlier one was killed.
//!
//! A Lease that is renewed while the command works, and deleted at its end. One that no one renews is of a command that was
//! killed; that is found out by looking at it for as long as it holds, so that the clocks of two machines need not agree.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::Failure;

/// The name of the Lease.
pub(crate) const NAME: &str = "windlass-cli";
/// For how long it holds without being renewed.
const HOLDS: Duration = Duration::from_secs(12);
const RENEWED: Duration = Duration::from_secs(4);
/// No clocks differ so much.
const LONG_AGO: i64 = 600;

/// The right to change the installation, until it is given up.
pub(crate) struct Lock {
    leases: Api<Lease>,
    holder: String,
    namespace: String,
    renewal: JoinHandle<()>,
    lost: CancellationToken,
    /// Whoever had it before did not give it up.
    pub(crate) after_a_kill: bool,
}

impl Lock {
    /// Takes it. The namespace has to be there.
    pub(crate) async fn take(
        client: &Client,
        namespace: &str,
        report_line: &dyn Fn(&str),
    ) -> Result<Self, Failure> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
        let holder = holder();
        let after_a_kill = match create(&leases, &holder).await? {
            true => false,
            false => {
                inherit(&leases, &holder, namespace, report_line).await?;
                true
            }
        };
        let lost = CancellationToken::new();
        let renewal = tokio::spawn(renew(leases.clone(), holder.clone(), lost.clone()));
        Ok(Self {
            leases,
            holder,
            namespace: namespace.to_owned(),
            renewal,
            lost,
            after_a_kill,
        })
    }

    /// Ends when someone else may have it: the work must not go on then.
    pub(crate) async fn lost(&self) -> Failure {
        self.lost.cancelled().await;
        Failure::Request {
            what: format!("change the installation in namespace {}", self.namespace),
            why: format!(
                "the lease {NAME} could not be renewed for {}s, or is somebody else's by now; run the command again to go on",
                HOLDS.as_secs()
            ),
        }
    }

    /// Gives it up.
    pub(crate) async fn give_up(self) {
        self.renewal.abort();
        // Who comes next finds out by itself if that fails. What is someone else's by now stays.
        let Ok(Some(lease)) = self.leases.get_opt(NAME).await else {
            return;
        };
        if holder_of(&lease) == self.holder {
            let parameters = DeleteParams::default().preconditions(Preconditions {
                uid: lease.metadata.uid,
                resource_version: lease.metadata.resource_version,
            });
            _ = self.leases.delete(NAME, &parameters).await;
        }
    }
}

fn holder_of(lease: &Lease) -> String {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.clone())
        .unwrap_or_default()
}

/// Describes the holder for people.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|host| host.trim().to_owned())
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .unwrap_or_else(|| "somewhere".to_owned());
    format!("process {} on {host}", std::process::id())
}

fn spec(holder: &str) -> LeaseSpec {
    let now = MicroTime(Timestamp::now());
    LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: i32::try_from(HOLDS.as_secs()).ok(),
        acquire_time: Some(now.clone()),
        renew_time: Some(now),
        ..LeaseSpec::default()
    }
}

/// Returns whether it was free.
async fn create(leases: &Api<Lease>, holder: &str) -> Result<bool, Failure> {
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(spec(holder)),
    };
    match leases.create(&PostParams::default(), &lease).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(Failure::request(format!("create the lease {NAME}"), error)),
    }
}

/// Takes it from someone who does not renew it.
async fn inherit(
    leases: &Api<Lease>,
    holder: &str,
    namespace: &str,
    report_line: &dyn Fn(&str),
) -> Result<(), Failure> {
    let get = async || {
        let found = leases.get_opt(NAME).await;
        found.map_err(|error| Failure::request(format!("get the lease {NAME}"), error))
    };
    let Some(seen) = get().await? else {
        return again(leases, holder, namespace).await;
    };
    let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
    let other = holder_of;
    let age = renewed(&seen).map(|at| Timestamp::now().as_second() - at.0.as_second());
    if age.is_none_or(|age| age < LONG_AGO) {
        report_line(&format!(
            "{} may be at work in namespace {namespace}; looking for {}s whether it is",
            other(&seen),
            HOLDS.as_secs()
        ));
        tokio::time::sleep(HOLDS).await;
    }
    let Some(mut lease) = get().await? else {
        return again(leases, holder, namespace).await;
    };
    if renewed(&lease) != renewed(&seen) || other(&lease) != other(&seen) {
        return Err(busy(&other(&lease), namespace));
    }
    report_line(&format!("{} was killed; going on from there", other(&lease)));
    lease.spec = Some(spec(holder));
    // It carries the version that was read: of two that inherit, one is told.
    match leases.replace(NAME, &PostParams::default(), &lease).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Err(busy("another command", namespace)),
        Err(error) => Err(Failure::request(format!("take the lease {NAME}"), error)),
    }
}

/// It was given up meanwhile.
async fn again(leases: &Api<Lease>, holder: &str, namespace: &str) -> Result<(), Failure> {
    match create(leases, holder).await? {
        true => Ok(()),
        false => Err(busy("another command", namespace)),
    }
}

fn busy(other: &str, namespace: &str) -> Failure {
    Failure::Request {
        what: format!("change the installation in namespace {namespace}"),
        why: format!("{other} is at it; wait until it has ended"),
    }
}

/// Renews it. A renewal that fails is made up for by the next one; when all do for as long as it holds, or it is someone
/// else's, as after this process was stopped for a while, it is lost.
async fn renew(leases: Api<Lease>, holder: String, lost: CancellationToken) {
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(RENEWED).await;
        let began = Instant::now();
        // An answer that comes too late is none.
        let left = (renewed + HOLDS).saturating_duration_since(began);
        match tokio::time::timeout(left, renew_once(&leases, &holder)).await {
            Ok(Ok(true)) if began < renewed + HOLDS => renewed = began,
            Ok(Err(_)) if began < renewed + HOLDS => {}
            _ => return lost.cancel(),
        }
    }
}

/// Returns whether it is still the holder's.
async fn renew_once(leases: &Api<Lease>, holder: &str) -> Result<bool, kube::Error> {
    let Some(mut lease) = leases.get_opt(NAME).await? else {
        return Ok(false);
    };
    if holder_of(&lease) != holder {
        return Ok(false);
    }
    if let Some(spec) = &mut lease.spec {
        spec.renew_time = Some(MicroTime(Timestamp::now()));
    }
    // It carries the version that was read: who has taken it since keeps it, and is seen the next time.
    leases.replace(NAME, &PostParams::default(), &lease).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::Cluster;
    use crate::stand_in;

    fn leases(
        holder: &'static str,
    ) -> (
        Api<Lease>,
        std::sync::Arc<std::sync::Mutex<Vec<stand_in::Request>>>,
    ) {
        let (address, asked) = stand_in::serve(move |_| {
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": NAME, "uid": "u", "resourceVersion": "1"}, "spec": {"holderIdentity": holder}});
            (200, String::new(), lease.to_string())
        });
        (Api::namespaced(Cluster::at(&address).client(), "n"), asked)
    }

    #[tokio::test]
    async fn a_lease_that_is_somebody_elses_is_neither_renewed_nor_deleted() {
        for (holder, expected) in [
            ("me", ["GET", "PUT", "GET", "DELETE"].as_slice()),
            ("other", &["GET", "GET"]),
        ] {
            let (leases, asked) = leases(holder);
            assert_eq!(renew_once(&leases, "me").await.unwrap(), holder == "me");
            let lock = Lock {
                leases,
                holder: "me".to_owned(),
                namespace: "n".to_owned(),
                renewal: tokio::spawn(async {}),
                lost: CancellationToken::new(),
                after_a_kill: false,
            };
            lock.give_up().await;
            let asked = asked.lock().unwrap();
            let verbs: Vec<&str> = asked
                .iter()
                .filter_map(|one| one.what.split(' ').next())
                .collect();
            assert_eq!(verbs, expected, "{holder}");
        }
    }
}
