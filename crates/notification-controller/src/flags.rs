//! The command line of notification-controller, and what it means.

use std::time::Duration;

use clap::{ArgAction, Parser};

use crate::receiver::ReceiverFlags;
use controller_kit::duration;
use controller_kit::flags::{
    AclFlags, ClientFlags, EndpointFlags, FeatureGateFlags, LeaderElectionFlags, ListenAddress, LogFlags,
    RateLimiterFlags, TokenCacheFlags, WatchFlags, parse_bool,
};

/// Flux's name of the controller: of the field manager, the Lease and the reporter of events.
pub const NAME: &str = "notification-controller";

/// The readiness check: Alerts and Providers were read, and events are taken.
pub const READY: &str = "alerts";

/// Reconciles Alerts, Providers and Receivers: sends events to external services and handles incoming webhooks. Accepts
/// the flags of Flux's notification-controller.
#[derive(Debug, Clone, Parser)]
#[command(name = "notification-controller", version)]
pub struct Flags {
    /// Address of the /metrics endpoint; 0 disables it
    #[arg(long, env = "METRICS_ADDR", default_value = ":8080", value_name = "ADDRESS")]
    pub metrics_addr: ListenAddress,
    /// Address of the /healthz and /readyz endpoints; 0 disables them
    #[arg(long, default_value = ":9440", value_name = "ADDRESS")]
    pub health_addr: ListenAddress,
    /// Address of the event receiver; 0 disables it
    #[arg(long, default_value = ":9090", value_name = "ADDRESS")]
    pub events_addr: ListenAddress,
    /// Address of the webhook receiver; 0 disables it
    #[arg(
        long = "receiverAddr",
        alias = "receiver-addr",
        default_value = ":9292",
        value_name = "ADDRESS"
    )]
    pub receiver_addr: ListenAddress,
    /// How the API server is spoken to.
    #[command(flatten)]
    pub client: ClientFlags,
    /// Logging.
    #[command(flatten)]
    pub log: LogFlags,
    /// Leader election.
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
    /// Access between namespaces.
    #[command(flatten)]
    pub acl: AclFlags,
    /// How tokens of cloud providers are cached.
    #[command(flatten)]
    pub token: TokenCacheFlags,
    /// Limits for callers of webhooks.
    #[command(flatten)]
    pub receiver: ReceiverFlags,

    /// Maximum number of Receivers that are reconciled concurrently
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent: u16,
    /// How long repeated events are suppressed
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = duration::parse)]
    pub rate_limit_interval: Duration,
    /// Add the request path as a label to HTTP metrics; this can create many series
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub export_http_path_metrics: bool,
    /// Service account, in the namespace of the object, that authenticates to cloud providers when the object names
    /// none
    #[arg(long, value_name = "NAME")]
    pub default_service_account: Option<String>,

    /// Also send alerts for Kubernetes Events and for status changes, not only for events posted by controllers
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "true",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub watch_events: bool,
    /// How long delivery of a message to an unavailable provider is retried
    #[arg(long, default_value = "1h", value_name = "DURATION", value_parser = duration::parse)]
    pub notification_retry_window: Duration,
}

impl Flags {
    /// The addresses that every controller has. Where others name a receiver of events, this one listens.
    pub fn endpoints(&self) -> EndpointFlags {
        EndpointFlags {
            metrics_addr: self.metrics_addr,
            health_addr: self.health_addr,
            events_addr: String::new(),
        }
    }
}

/// Parsed flags.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Policy set by flags and feature gates.
    pub policy: Policy,
}

/// Policy that decisions depend on, besides the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Events of objects in other namespaces are refused (`--no-cross-namespace-refs`).
    pub no_cross_namespace_refs: bool,
    /// Providers may name ServiceAccounts for cloud providers (gate `ObjectLevelWorkloadIdentity`).
    pub object_level_identity: bool,
    /// The ServiceAccount of Providers that name none (`--default-service-account`).
    pub default_service_account: Option<String>,
    /// Secrets and ConfigMaps of Receivers are not watched (gate `DisableConfigWatchers`).
    pub ignore_config_changes: bool,
}

/// Flux's gates and their defaults. Those whose feature is not there have no effect; a misspelt one ends the start.
const FEATURE_GATES: [(&str, bool); 3] = [
    // Without effect: what is cached is bounded.
    ("CacheSecretsAndConfigMaps", false),
    ("DisableConfigWatchers", false),
    ("ObjectLevelWorkloadIdentity", false),
];

impl Settings {
    /// Checks what parsing alone cannot.
    pub fn from_flags(flags: &Flags) -> anyhow::Result<Self> {
        let gates = flags.features.resolve(&FEATURE_GATES)?;
        let object_level_identity = gates.enabled("ObjectLevelWorkloadIdentity");
        let default_service_account = flags
            .default_service_account
            .clone()
            .filter(|name| !name.is_empty());
        anyhow::ensure!(
            object_level_identity || default_service_account.is_none(),
            "cannot set default service accounts when the feature gate ObjectLevelWorkloadIdentity is not enabled"
        );
        Ok(Self {
            policy: Policy {
                no_cross_namespace_refs: flags.acl.no_cross_namespace_refs,
                object_level_identity,
                default_service_account,
                ignore_config_changes: gates.enabled("DisableConfigWatchers"),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(arguments: &[&str]) -> Result<Flags, clap::Error> {
        Flags::try_parse_from([&[NAME], arguments].concat())
    }

    fn settings(arguments: &[&str]) -> anyhow::Result<Settings> {
        Settings::from_flags(&flags(arguments)?)
    }

    #[test]
    fn the_command_lines_of_fluxs_manifests_are_taken() {
        let arguments = [
            "--watch-all-namespaces=true",
            "--log-level=info",
            "--log-encoding=json",
            "--enable-leader-election",
            "--no-cross-namespace-refs=true",
            "--events-addr=:9095",
            "--receiverAddr=:9295",
            "--rate-limit-interval=30s",
            "--export-http-path-metrics",
            "--concurrent=8",
            "--token-cache-max-size=0",
            "--watch-configs-label-selector=team=a",
            "--feature-gates=ObjectLevelWorkloadIdentity=true",
            "--default-service-account=tenant",
        ];
        let settings = settings(&arguments).unwrap();
        assert!(settings.policy.no_cross_namespace_refs);
        assert_eq!(settings.policy.default_service_account.as_deref(), Some("tenant"));
        let flags = flags(&arguments).unwrap();
        assert_eq!(flags.receiver_addr.socket().unwrap().port(), 9295);
        assert_eq!(flags.rate_limit_interval, Duration::from_secs(30));
        assert!(flags.export_http_path_metrics && flags.endpoints().events_addr.is_empty());
    }

    #[test]
    fn defaults_are_those_of_flux() {
        let flags = flags(&[]).unwrap();
        let port = |address: ListenAddress| address.socket().unwrap().port();
        assert_eq!((port(flags.events_addr), port(flags.receiver_addr)), (9090, 9292));
        assert_eq!((port(flags.metrics_addr), port(flags.health_addr)), (8080, 9440));
        assert_eq!(flags.rate_limit_interval, Duration::from_secs(300));
        assert_eq!(flags.concurrent, 4);
        assert!(!flags.export_http_path_metrics);
    }

    #[test]
    fn what_cannot_be_held_or_is_misspelt_ends_the_start() {
        for argument in [
            "--default-service-account=tenant",
            "--feature-gates=NoSuchGate=true",
            "--concurrent=0",
        ] {
            assert!(settings(&[argument]).is_err(), "{argument}");
        }
    }
}
