//! The command line of helm-controller, and what it means.

use std::path::PathBuf;
use std::time::Duration;

use artifact::client::ClientOptions;
use clap::Parser;
use controller_kit::duration;
use controller_kit::flags::parse_label_selector;
use kube::core::Selector;
use oci_verify::SigstoreFlags;
use reconcile_kit::flags::{DeliveryFlags, check_default_accounts};

/// Flux's name of the controller: of the field manager, the Lease and the reporter of events.
pub const NAME: &str = "helm-controller";

/// Reconciles HelmReleases. Accepts the flags of Flux's helm-controller.
#[derive(Debug, Clone, Parser)]
#[command(name = "helm-controller", version)]
pub struct Flags {
    /// Flags shared by all controllers that deliver.
    #[command(flatten)]
    pub delivery: DeliveryFlags,
    /// What keyless signatures are verified with.
    #[command(flatten)]
    pub sigstore: SigstoreFlags,

    /// Maximum number of HelmReleases that are reconciled concurrently, not counting those that wait for health.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent: u16,
    /// How long running actions may take to finish when the controller shuts down.
    #[arg(long, default_value = "600s", value_name = "DURATION", value_parser = duration::parse)]
    pub graceful_shutdown_timeout: Duration,
    /// Accepted for compatibility with Flux; has no effect: a download may last as long as it makes progress.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration::parse, hide_short_help = true)]
    pub http_timeout: Duration,
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

    /// Size of the in-memory cache of charts, in bytes; releases of the same chart load it once.
    #[arg(long, default_value_t = 32 << 20, value_name = "BYTES")]
    pub chart_cache_bytes: usize,
}

/// Parsed flags.
#[derive(Debug)]
pub struct Settings {
    /// How objects are applied.
    pub apply: kube_apply::Settings,
    /// Where artifacts come from.
    pub artifacts: ClientOptions,
    /// Which HelmReleases are ours.
    pub shard: Selector,
    /// Policy set by flags and feature gates.
    pub policy: Policy,
    /// Labels of the ConfigMaps and Secrets that are watched; None if none are.
    pub watched_configs: Option<String>,
}

/// Policy that decisions depend on, besides the object.
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
    pub fn from_flags(flags: &Flags) -> anyhow::Result<Self> {
        let gates = flags.delivery.common.features.resolve(&FEATURE_GATES)?;
        let object_level_identity = gates.enabled("ObjectLevelWorkloadIdentity");
        let accounts = [&flags.delivery.default_kubeconfig_service_account];
        check_default_accounts(object_level_identity, accounts).map_err(anyhow::Error::msg)?;
        anyhow::ensure!(
            flags.snapshot_digest_algo == "sha256",
            "failed to use --snapshot-digest-algo={}: only sha256 is supported",
            flags.snapshot_digest_algo
        );
        Ok(Self {
            apply: kube_apply::Settings {
                field_manager: NAME.to_owned(),
                group: api::meta::HELM_GROUP.to_owned(),
                undoes_kubectl: false,
                disallowed_field_managers: flags.override_manager.clone(),
                ..kube_apply::Settings::default()
            },
            // Charts are fetched as archives and kept as what they are parsed to.
            artifacts: flags.delivery.artifacts(0),
            shard: parse_label_selector(&flags.delivery.common.watch.watch_label_selector)?,
            watched_configs: (!gates.enabled("DisableConfigWatchers"))
                .then(|| flags.delivery.common.watch.watched_configs()),
            policy: Policy {
                no_cross_namespace_refs: flags.delivery.common.acl.no_cross_namespace_refs,
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
        Settings::from_flags(&Flags::try_parse_from(
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
