//! The command line of helm-controller, and what it means.

use std::path::PathBuf;
use std::time::Duration;

use artifact::client::ClientOptions;
use clap::Parser;
use controller_kit::duration;
use controller_kit::flags::{
    AclFlags, ArtifactClientFlags, ClientFlags, EndpointFlags, FeatureGateFlags, JitterFlags,
    KubeconfigFlags, LeaderElectionFlags, LogFlags, RateLimiterFlags, TokenCacheFlags, WatchFlags,
    parse_label_selector,
};
use kube::core::Selector;

/// Flux's name of the controller: of the field manager, the Lease and the reporter of events.
pub const NAME: &str = "helm-controller";

/// Reconciles HelmReleases. Accepts the flags of Flux's helm-controller.
#[derive(Debug, Clone, Parser)]
#[command(name = "helm-controller", version)]
pub struct Flags {
    /// Where metrics and health are served.
    #[command(flatten)]
    pub endpoints: EndpointFlags,
    /// How the API server is spoken to.
    #[command(flatten)]
    pub client: ClientFlags,
    /// What is logged.
    #[command(flatten)]
    pub log: LogFlags,
    /// Who leads.
    #[command(flatten)]
    pub leader: LeaderElectionFlags,
    /// How failures back off.
    #[command(flatten)]
    pub rate: RateLimiterFlags,
    /// Optional features.
    #[command(flatten)]
    pub features: FeatureGateFlags,
    /// Which objects are in scope.
    #[command(flatten)]
    pub watch: WatchFlags,
    /// How intervals are spread.
    #[command(flatten)]
    pub jitter: JitterFlags,
    /// Who may refer to whom.
    #[command(flatten)]
    pub acl: AclFlags,
    /// How the artifact service is called.
    #[command(flatten)]
    pub artifact: ArtifactClientFlags,
    /// What kubeconfigs of remote clusters may ask for.
    #[command(flatten)]
    pub kubeconfig: KubeconfigFlags,
    /// How tokens of cloud providers are cached.
    #[command(flatten)]
    pub token: TokenCacheFlags,

    /// Maximum number of HelmReleases that are reconciled concurrently, not counting those that wait for health.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent: u16,
    /// Accepted for compatibility with Flux; has no effect, because dependencies are watched instead of polled.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration::parse, hide_short_help = true)]
    pub requeue_dependency: Duration,
    /// How long running actions may take to finish when the controller shuts down.
    #[arg(long, default_value = "600s", value_name = "DURATION", value_parser = duration::parse)]
    pub graceful_shutdown_timeout: Duration,
    /// Number of retries when an artifact download fails.
    #[arg(long, default_value_t = 9, value_name = "N")]
    pub http_retry: u32,
    /// Accepted for compatibility with Flux; has no effect: a download may last as long as it makes progress.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration::parse, hide_short_help = true)]
    pub http_timeout: Duration,
    /// Service account, in the namespace of the HelmRelease, used when spec.serviceAccountName is empty. If unset, such
    /// HelmReleases are installed with the controller's own permissions.
    #[arg(long, value_name = "NAME")]
    pub default_service_account: Option<String>,
    /// Service account, in the namespace of the object, used to authenticate to remote clusters whose ConfigMap names
    /// none.
    #[arg(long, value_name = "NAME")]
    pub default_kubeconfig_service_account: Option<String>,
    /// Algorithm of the digests in status.history; only sha256 is supported.
    #[arg(long, default_value = "sha256", value_name = "NAME")]
    pub snapshot_digest_algo: String,
    /// Field managers whose fields are taken over during drift detection.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub override_manager: Vec<String>,
    /// Accepted for compatibility with Flux; has no effect: memory is bounded in other ways.
    #[arg(long, default_value_t = 95, value_name = "PERCENT", hide_short_help = true)]
    pub oom_watch_memory_threshold: u8,
    /// Accepted for compatibility with Flux; has no effect.
    #[arg(long, default_value = "500ms", value_name = "DURATION", value_parser = duration::parse, hide_short_help = true)]
    pub oom_watch_interval: Duration,
    /// Accepted for compatibility with Flux; has no effect.
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub oom_watch_max_memory_path: Option<PathBuf>,
    /// Accepted for compatibility with Flux; has no effect.
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub oom_watch_current_memory_path: Option<PathBuf>,

    /// Host that replaces the one in artifact URLs, for running outside of the cluster.
    #[arg(long, env = "SOURCE_CONTROLLER_LOCALHOST", value_name = "HOST")]
    pub source_controller_localhost: Option<String>,
    /// Size of the in-memory cache of charts, in bytes; releases of the same chart load it once.
    #[arg(long, default_value_t = 32 << 20, value_name = "BYTES")]
    pub chart_cache_bytes: usize,
}

/// What the flags mean.
#[derive(Debug)]
pub struct Settings {
    /// How objects are applied.
    pub apply: kube_apply::Settings,
    /// Where artifacts come from.
    pub artifacts: ClientOptions,
    /// Which HelmReleases are ours.
    pub shard: Selector,
    /// What is allowed, and which gates are open.
    pub policy: Policy,
    /// Labels of the ConfigMaps and Secrets that are watched; None if none are.
    pub watched_configs: Option<String>,
}

/// What decisions depend on besides the object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    /// References to sources in other namespaces are refused (`--no-cross-namespace-refs`).
    pub no_cross_namespace_refs: bool,
    /// A dependency must be ready beside what its expression says (gate `AdditiveCELDependencyCheck`).
    pub additive_expressions: bool,
    /// ExternalArtifacts may be charts (gate `ExternalArtifact`).
    pub external_artifacts: bool,
    /// Objects may be ServiceAccounts at cloud providers (gate `ObjectLevelWorkloadIdentity`).
    pub object_level_identity: bool,
    /// Templates may look up names in the DNS (gate `AllowDNSLookups`).
    pub allow_dns: bool,
    /// The digest of an OCI artifact does not become part of the chart's version (gate `DisableChartDigestTracking`).
    pub ignore_chart_digest: bool,
    /// Where the spec does not say, Helm 3's ways are taken (gate `UseHelm3Defaults`).
    pub helm_3_defaults: bool,
    /// A change ends the wait of an action that is under way (gate `CancelHealthCheckOnNewRevision`).
    pub cancel_on_change: bool,
    /// Where the spec names no strategy, failures are tried again without end (gate `DefaultToRetryOnFailure`).
    pub default_to_retry: bool,
}

/// Flux's gates and their defaults. Those whose feature is not there have no effect; a misspelt one ends the start.
const FEATURE_GATES: [(&str, bool); 15] = [
    ("AdditiveCELDependencyCheck", false),
    ("AdoptLegacyReleases", false),
    ("AllowDNSLookups", false),
    ("CacheSecretsAndConfigMaps", false),
    ("CancelHealthCheckOnNewRevision", false),
    // Deprecated in Flux; spec.driftDetection says it.
    ("CorrectDrift", false),
    ("DefaultToRetryOnFailure", false),
    ("DetectDrift", false),
    ("DirectSourceFetch", false),
    ("DisableChartDigestTracking", false),
    ("DisableConfigWatchers", false),
    ("ExternalArtifact", false),
    // Without effect: what is read is bounded, and nothing must be ended in good order.
    ("OOMWatch", false),
    ("ObjectLevelWorkloadIdentity", false),
    ("UseHelm3Defaults", false),
];

impl Settings {
    /// Checks what parsing alone cannot.
    pub fn of(flags: &Flags) -> anyhow::Result<Self> {
        let gates = flags.features.resolve(&FEATURE_GATES)?;
        let object_level_identity = gates.enabled("ObjectLevelWorkloadIdentity");
        let default = flags.default_kubeconfig_service_account.as_deref();
        anyhow::ensure!(
            object_level_identity || default.is_none_or(str::is_empty),
            "cannot set default service accounts when the feature gate ObjectLevelWorkloadIdentity is not enabled"
        );
        anyhow::ensure!(
            flags.snapshot_digest_algo == "sha256",
            "failed to use --snapshot-digest-algo={}: only sha256 is supported",
            flags.snapshot_digest_algo
        );
        Ok(Self {
            apply: kube_apply::Settings {
                field_manager: NAME.to_owned(),
                group: api::meta::HELM_GROUP.to_owned(),
                disallowed_field_managers: flags.override_manager.clone(),
                ..kube_apply::Settings::default()
            },
            artifacts: ClientOptions {
                grpc_endpoint: flags.artifact.endpoint(),
                http_hosts: flags.artifact.artifact_http_hosts.clone(),
                // Charts are fetched as archives and kept as what they are parsed to.
                cache_bytes: 0,
                http_retries: flags.http_retry,
                hostname: flags
                    .source_controller_localhost
                    .clone()
                    .filter(|host| !host.is_empty()),
                ..ClientOptions::default()
            },
            shard: parse_label_selector(&flags.watch.watch_label_selector)?,
            watched_configs: (!gates.enabled("DisableConfigWatchers")).then(|| flags.watch.watched_configs()),
            policy: Policy {
                no_cross_namespace_refs: flags.acl.no_cross_namespace_refs,
                additive_expressions: gates.enabled("AdditiveCELDependencyCheck"),
                external_artifacts: gates.enabled("ExternalArtifact"),
                object_level_identity,
                allow_dns: gates.enabled("AllowDNSLookups"),
                ignore_chart_digest: gates.enabled("DisableChartDigestTracking"),
                helm_3_defaults: gates.enabled("UseHelm3Defaults"),
                cancel_on_change: gates.enabled("CancelHealthCheckOnNewRevision"),
                default_to_retry: gates.enabled("DefaultToRetryOnFailure"),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(arguments: &[&str]) -> anyhow::Result<Settings> {
        Settings::of(&Flags::try_parse_from(
            [&["helm-controller"], arguments].concat(),
        )?)
    }

    #[test]
    fn the_command_lines_of_fluxs_manifests_are_taken() {
        let settings = settings(&[
            "--events-addr=http://notification-controller.flux-system.svc.cluster.local./",
            "--watch-all-namespaces=true",
            "--log-level=info",
            "--log-encoding=json",
            "--enable-leader-election",
            "--no-cross-namespace-refs=true",
            "--default-service-account=default",
            "--requeue-dependency=5s",
            "--concurrent=20",
            "--graceful-shutdown-timeout=60s",
            "--http-timeout=15s",
            "--oom-watch-memory-threshold=90",
            "--oom-watch-interval=1s",
            "--oom-watch-max-memory-path=/sys/fs/cgroup/memory.max",
            "--oom-watch-current-memory-path=/sys/fs/cgroup/memory.current",
            "--override-manager=kubectl-edit",
            "--feature-gates=DetectDrift=true,CorrectDrift=false,OOMWatch=true,DefaultToRetryOnFailure=true",
        ])
        .unwrap();
        assert!(settings.policy.no_cross_namespace_refs && settings.policy.default_to_retry);
        assert!(!settings.policy.cancel_on_change && !settings.policy.external_artifacts);
        assert_eq!(settings.watched_configs.as_deref(), Some("owner!=helm"));
        assert_eq!(settings.apply.field_manager, "helm-controller");
        assert_eq!(settings.apply.name_label(), "helm.toolkit.fluxcd.io/name");
        assert_eq!(settings.apply.disallowed_field_managers, ["kubectl-edit"]);
    }

    #[test]
    fn what_cannot_be_held_or_is_misspelt_ends_the_start() {
        for argument in [
            "--default-kubeconfig-service-account=tenant",
            "--feature-gates=NoSuchGate=true",
            "--snapshot-digest-algo=blake3",
            "--requeue-dependency=soon",
            "--concurrent=0",
        ] {
            assert!(settings(&[argument]).is_err(), "{argument}");
        }
        let gate = "--feature-gates=ObjectLevelWorkloadIdentity=true";
        assert!(settings(&[gate, "--default-kubeconfig-service-account=tenant"]).is_ok());
    }

    #[test]
    fn configs_may_be_left_alone() {
        let watched = |argument| settings(&[argument]).unwrap().watched_configs;
        assert_eq!(watched("--feature-gates=DisableConfigWatchers=true"), None);
        let chosen = watched("--watch-configs-label-selector=team=a");
        assert_eq!(chosen.as_deref(), Some("team=a"));
    }
}
