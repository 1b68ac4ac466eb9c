//! The command line of source-controller, and what it means.
//!
//! All flags of Flux's source-controller are taken, so that its Deployment works unchanged; those of kinds that are not
//! here yet say so in their help.

pub(crate) mod artifact_service;
mod backup;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use api::source::BucketSpec;
use clap::{ArgAction, Parser};
use controller_kit::duration;
use controller_kit::flags::{CommonFlags, ListenAddress, parse_bool};
use controller_kit::leader::Fitness;
use git_client::Algorithms;
use oci_verify::{SigstoreFlags, SigstoreRoot};
use remote_access::identity::Identities;

use self::artifact_service::{ArtifactService, ArtifactServiceFlags};
use self::backup::BackupFlags;
use crate::fetch::helm_repository;

/// Gates that Flux has, with their defaults.
const FEATURE_GATES: [(&str, bool); 2] = [
    ("CacheSecretsAndConfigMaps", false),
    ("ObjectLevelWorkloadIdentity", false),
];

/// Fetches sources and serves them as artifacts. Accepts the flags of Flux's source-controller.
#[derive(Debug, Clone, Parser)]
#[command(name = "source-controller", version)]
pub(crate) struct Flags {
    /// Flags shared by all controllers. Those about references concern generators, which are Flux's
    /// source-watcher's.
    #[command(flatten)]
    pub(crate) common: CommonFlags,
    /// Where artifacts are kept and served.
    #[command(flatten)]
    pub(crate) storage: StorageFlags,
    /// How our own controllers read artifacts.
    #[command(flatten)]
    pub(crate) artifact_service: ArtifactServiceFlags,
    /// Where a copy of them is kept.
    #[command(flatten)]
    pub(crate) backup: BackupFlags,
    /// Helm's limits.
    #[command(flatten)]
    pub(crate) helm: HelmFlags,

    /// Maximum number of objects of each kind that are reconciled concurrently
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) concurrent: usize,
    /// Accepted for compatibility with Flux; has no effect, because dependencies are watched instead of polled
    #[arg(long, value_parser = duration::parse, default_value = "30s", value_name = "DURATION")]
    pub(crate) requeue_dependency: Duration,
    /// SSH key exchange algorithms in order of preference; if empty, those of Flux
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) ssh_kex_algos: Vec<String>,
    /// SSH host key algorithms in order of preference; if empty, those of Flux
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) ssh_hostkey_algos: Vec<String>,
    /// Origin of the Sigstore trusted root.
    #[command(flatten)]
    pub(crate) sigstore: SigstoreFlags,
    /// Service account used for workload identity when the object names none
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(crate) default_service_account: String,
}

/// Where artifacts are kept and served.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct StorageFlags {
    /// Directory in which artifacts are stored
    #[arg(long, env = "STORAGE_PATH", default_value = "/data", value_name = "PATH")]
    pub(crate) storage_path: PathBuf,
    /// Address of the HTTP server for artifacts, which Flux's controllers need; 0 disables it
    #[arg(
        long,
        env = "STORAGE_ADDRESS",
        default_value = ":9090",
        value_name = "ADDRESS"
    )]
    pub(crate) storage_addr: String,
    /// Advertised address of the HTTP server; derived from --storage-addr if empty
    #[arg(long, env = "STORAGE_ADV_ADDR", default_value = "", value_name = "ADDRESS")]
    pub(crate) storage_adv_addr: String,
    /// How long an artifact is retained after it was superseded
    #[arg(long, value_parser = duration::parse, default_value = "1m", value_name = "DURATION")]
    pub(crate) artifact_retention_ttl: Duration,
    /// Number of artifacts retained per object, including the current one
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) artifact_retention_records: usize,
    /// Keep a store in each replica, equal to the leader's, and serve it there. Without it, replicas share a volume, and only the leader
    /// serves. Requires --enable-leader-election and the environment variable POD_IP
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) storage_replicas: bool,
    /// Copy the artifacts of the process that leads before taking its place: for one replica whose Pods have storage of their own and are
    /// replaced one after the other. Needs what --storage-replicas requires, and does nothing without it
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) storage_handover: bool,
    /// Digest algorithm of artifacts; only sha256 is supported
    #[arg(long, value_parser = ["sha256"], default_value = "sha256", value_name = "NAME")]
    pub(crate) artifact_digest_algo: String,
}

/// Limits and caches for Helm repositories and charts.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct HelmFlags {
    /// Maximum size of a Helm repository index, in bytes
    #[arg(long, default_value_t = 50 << 20, value_name = "BYTES")]
    pub(crate) helm_index_max_size: i64,
    /// Maximum size of a chart, in bytes
    #[arg(long, default_value_t = 10 << 20, value_name = "BYTES")]
    pub(crate) helm_chart_max_size: i64,
    /// Maximum size of a file in a chart, in bytes
    #[arg(long, default_value_t = 5 << 20, value_name = "BYTES")]
    pub(crate) helm_chart_file_max_size: i64,
    /// Accepted for compatibility with Flux; has no effect, because indexes are read from disk
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) helm_cache_max_size: i64,
    /// Accepted for compatibility with Flux; has no effect: see --helm-cache-max-size
    #[arg(long, value_parser = duration::parse, default_value = "15m", value_name = "DURATION")]
    pub(crate) helm_cache_ttl: Duration,
    /// Accepted for compatibility with Flux; has no effect: see --helm-cache-max-size
    #[arg(long, value_parser = duration::parse, default_value = "1m", value_name = "DURATION")]
    pub(crate) helm_cache_purge_interval: Duration,
}

/// Parsed flags.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) storage_path: PathBuf,
    pub(crate) retention: artifact::store::Options,
    /// How fit this process is to lead before it has copied what the leader stores; None where processes share a store.
    pub(crate) copies: Option<Fitness>,
    /// The bucket with a copy of all artifacts.
    pub(crate) backup: Option<BucketSpec>,
    /// Size limits for Helm repositories.
    pub(crate) helm: helm_repository::Limits,
    /// Where archives are served; None where they are not.
    pub(crate) http: ListenAddress,
    /// How the artifact service is served.
    pub(crate) artifact_service: ArtifactService,
    /// How much is read of charts.
    pub(crate) charts: helm_package::Limits,
    /// Where the trusted Sigstore installation is described.
    pub(crate) sigstore: SigstoreRoot,
    /// Host and port, or URL, under which others reach the archives.
    pub(crate) advertised: String,
    /// Algorithms offered to ssh servers.
    pub(crate) ssh_algorithms: Algorithms,
    /// Tokens of cloud providers, and who may have them.
    pub(crate) identities: Identities,
}

impl Settings {
    /// Checks what parsing alone cannot.
    pub(crate) fn from_flags(flags: &Flags) -> anyhow::Result<Self> {
        let features = flags.common.features.resolve(&FEATURE_GATES)?;
        let storage = &flags.storage;
        let advertised = advertised(storage, std::env::var("HOSTNAME").ok().as_deref());
        let copies = copies(flags)?;
        Ok(Self {
            storage_path: storage.storage_path.clone(),
            retention: artifact::store::Options {
                retention_ttl: storage.artifact_retention_ttl,
                retention_records: storage.artifact_retention_records,
            },
            copies,
            backup: flags.backup.spec()?,
            helm: helm_repository::Limits {
                index: limit("--helm-index-max-size", flags.helm.helm_index_max_size)?,
                chart: limit("--helm-chart-max-size", flags.helm.helm_chart_max_size)?,
            },
            http: storage.storage_addr.parse()?,
            artifact_service: ArtifactService::new(&flags.artifact_service, &advertised),
            advertised,
            ssh_algorithms: Algorithms::new(&flags.ssh_kex_algos, &flags.ssh_hostkey_algos)?,
            charts: chart_limits(&flags.helm)?,
            sigstore: flags.sigstore.root()?,
            identities: Identities::new(
                flags.common.token.token_cache_max_size,
                flags.common.token.token_cache_max_duration,
                features.enabled("ObjectLevelWorkloadIdentity"),
                &flags.default_service_account,
            )
            .locked(flags.common.acl.no_cross_namespace_refs),
        })
    }
}

/// How fit this process is to lead before it has copied what the leader stores; None where it copies nothing.
///
/// The chart asks for a handover by default: where other flags make that impossible it is left out.
fn copies(flags: &Flags) -> anyhow::Result<Option<Fitness>> {
    let service = &flags.artifact_service;
    let problem = if !flags.common.leader.enable_leader_election {
        Some("needs --enable-leader-election: without it, each process leads")
    } else if service.grpc_addr.socket().is_none() {
        Some("needs the artifact service: --grpc-addr must not be 0")
    } else if service.grpc_tls_cert_file.is_some() && service.grpc_ca_file.is_none() {
        Some("with --grpc-tls-cert-file needs --grpc-ca-file")
    } else {
        None
    };
    let storage = &flags.storage;
    match (storage.storage_replicas, storage.storage_handover, problem) {
        (true, _, Some(problem)) => anyhow::bail!("--storage-replicas {problem}"),
        (true, _, None) => Ok(Some(Fitness::Behind)),
        (false, true, Some(problem)) => {
            tracing::warn!(logger = "setup", problem, "artifacts are not handed over");
            Ok(None)
        }
        (false, true, None) => Ok(Some(Fitness::Successor)),
        (false, false, _) => Ok(None),
    }
}

fn limit(flag: &str, bytes: i64) -> anyhow::Result<u64> {
    let limit = u64::try_from(bytes).ok().filter(|limit| *limit > 0);
    limit.with_context(|| format!("{flag} must be greater than zero, not {bytes}"))
}

fn chart_limits(flags: &HelmFlags) -> anyhow::Result<helm_package::Limits> {
    Ok(helm_package::Limits {
        archive: limit("--helm-chart-max-size", flags.helm_chart_max_size)?,
        file: limit("--helm-chart-file-max-size", flags.helm_chart_file_max_size)?,
        ..helm_package::Limits::default()
    })
}

/// As Flux: the given address, or the listening one with a host in it that means something.
fn advertised(flags: &StorageFlags, hostname: Option<&str>) -> String {
    if !flags.storage_adv_addr.is_empty() {
        return flags.storage_adv_addr.clone();
    }
    let (host, port) = flags
        .storage_addr
        .rsplit_once(':')
        .unwrap_or((&flags.storage_addr, "9090"));
    let host = match host {
        // "0" is no address: nothing is served, and the path alone is what says something.
        "" | "0" => "localhost",
        "0.0.0.0" => hostname.filter(|name| !name.is_empty()).unwrap_or("localhost"),
        host => host,
    };
    format!("{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Flags, clap::Error> {
        Flags::try_parse_from(std::iter::once(&"source-controller").chain(arguments))
    }

    #[test]
    fn the_command_line_is_sound() {
        <Flags as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_handover_that_is_impossible_is_left_out_and_replicas_are_refused() {
        let copies = |arguments: &[&str]| copies(&parse(arguments).unwrap());
        let both = [
            "--storage-replicas",
            "--storage-handover",
            "--enable-leader-election",
        ];
        assert_eq!(copies(&both).unwrap(), Some(Fitness::Behind));
        assert_eq!(copies(&both[1..]).unwrap(), Some(Fitness::Successor));
        assert_eq!(copies(&both[1..2]).unwrap(), None);
        assert_eq!(copies(&[both[1], both[2], "--grpc-addr=0"]).unwrap(), None);
        let error = copies(&both[..1]).unwrap_err().to_string();
        assert!(
            error.starts_with("--storage-replicas needs --enable-leader-election"),
            "{error}"
        );
    }

    #[test]
    fn every_flag_of_flux_is_taken() {
        let flags = [
            "--metrics-addr=:8080",
            "--events-addr=http://notification-controller/",
            "--health-addr=:9440",
            "--concurrent=2",
            "--helm-index-max-size=1",
            "--helm-chart-max-size=1",
            "--helm-chart-file-max-size=1",
            "--requeue-dependency=30s",
            "--helm-cache-max-size=0",
            "--helm-cache-ttl=15m",
            "--helm-cache-purge-interval=1m",
            "--ssh-kex-algos=curve25519-sha256,ecdh-sha2-nistp256",
            "--ssh-hostkey-algos=ssh-ed25519",
            "--default-service-account=x",
            "--storage-path=/data",
            "--storage-addr=:9090",
            "--storage-adv-addr=source-controller.$(RUNTIME_NAMESPACE).svc.cluster.local.",
            "--artifact-retention-ttl=1m",
            "--artifact-retention-records=2",
            "--artifact-digest-algo=sha256",
            "--kube-api-qps=50",
            "--kube-api-burst=300",
            "--log-encoding=json",
            "--log-level=info",
            "--enable-leader-election",
            "--leader-election-release-on-cancel=true",
            "--leader-election-lease-duration=35s",
            "--leader-election-renew-deadline=30s",
            "--leader-election-retry-period=5s",
            "--min-retry-delay=750ms",
            "--max-retry-delay=15m",
            "--feature-gates=ObjectLevelWorkloadIdentity=false",
            "--watch-all-namespaces=true",
            "--watch-label-selector=a=b",
            "--watch-configs-label-selector=a=b",
            "--interval-jitter-percentage=5",
            "--token-cache-max-size=100",
            "--token-cache-max-duration=1h",
            // Of source-watcher.
            "--no-cross-namespace-refs=true",
        ];
        let flags = parse(&flags).unwrap_or_else(|error| panic!("{error}"));
        Settings::from_flags(&flags).unwrap();
    }

    #[test]
    fn defaults_are_those_of_flux() {
        let flags = parse(&[]).unwrap();
        let settings = Settings::from_flags(&flags).unwrap();
        assert_eq!(settings.storage_path, PathBuf::from("/data"));
        assert_eq!(settings.retention.retention_ttl, Duration::from_secs(60));
        assert_eq!(settings.retention.retention_records, 2);
        assert_eq!(settings.http.socket().map(|address| address.port()), Some(9090));
        assert_eq!(
            settings
                .artifact_service
                .address
                .socket()
                .map(|address| address.port()),
            Some(9091)
        );
        assert_eq!(settings.advertised, "localhost:9090");
    }

    #[test]
    fn a_backup_needs_a_place() {
        let spec = |arguments: &[&str]| parse(arguments).unwrap().backup.spec();
        assert!(spec(&[]).unwrap().is_none());
        assert!(spec(&["--backup-bucket=b"]).is_err());
        let root = spec(&[
            "--backup-bucket=b",
            "--backup-endpoint=minio:9000",
            "--backup-prefix=/",
        ]);
        assert_eq!(root.unwrap().unwrap().prefix, None);
        let spec = spec(&[
            "--backup-bucket=b",
            "--backup-provider=aws",
            "--backup-prefix=/clusters/eu",
        ]);
        let spec = spec.unwrap().unwrap();
        assert_eq!(spec.endpoint, "s3.amazonaws.com");
        assert_eq!(spec.prefix.as_deref(), Some("clusters/eu/"));
    }

    #[test]
    fn the_advertised_address_means_something_to_others() {
        let advertised = |arguments: &[&str]| advertised(&parse(arguments).unwrap().storage, Some("pod-1"));
        assert_eq!(
            advertised(&["--storage-adv-addr=source-controller.flux-system.svc"]),
            "source-controller.flux-system.svc"
        );
        assert_eq!(advertised(&["--storage-addr=:80"]), "localhost:80");
        assert_eq!(advertised(&["--storage-addr=0.0.0.0:80"]), "pod-1:80");
        assert_eq!(advertised(&["--storage-addr=127.0.0.1:80"]), "127.0.0.1:80");
    }

    #[test]
    fn what_cannot_be_done_is_refused_at_the_start() {
        assert!(parse(&["--artifact-digest-algo=blake3"]).is_err());
        let flags = parse(&["--feature-gates=NoSuchGate=true"]).unwrap();
        assert!(Settings::from_flags(&flags).is_err());
    }
}
