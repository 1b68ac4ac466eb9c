//! The flags that controllers share, under Flux's names and with Flux's defaults.
//!
//! In: the command line and the environment. Out: groups to be `#[command(flatten)]`ed into a controller's own
//! struct. Every value is parsed here, so that a wrong one ends the process before anything starts. The
//! spellings that Go's pflag takes are taken: `--flag=value`, `--flag value`, a bool with or without a value,
//! lists repeated or separated by commas, a flag given twice (the last one counts).

mod artifact_client;
mod feature_gates;
mod label_selector;
mod value;

use std::time::Duration;

use api::meta::{WATCH_LABEL, WATCH_LABEL_VALUE};
use clap::{ArgAction, Args};
use sha2::{Digest as _, Sha256};

pub use artifact_client::ArtifactClientFlags;
pub use feature_gates::{Error as FeatureGateError, FeatureGateFlags, FeatureGates};
pub use label_selector::{Error as LabelSelectorError, parse as parse_label_selector};
pub use value::{AddressError, ListenAddress, parse_address, parse_bool};

use crate::duration;

/// The flags of every controller that reconciles objects at intervals.
#[derive(Args, Debug, Clone)]
pub struct CommonFlags {
    /// Where metrics and health are served.
    #[command(flatten)]
    pub endpoints: EndpointFlags,
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
    /// How intervals are spread.
    #[command(flatten)]
    pub jitter: JitterFlags,
    /// Access between namespaces.
    #[command(flatten)]
    pub acl: AclFlags,
    /// How tokens of cloud providers are cached.
    #[command(flatten)]
    pub token: TokenCacheFlags,
}

impl CommonFlags {
    /// Returns the process that these flags describe, under the name that Flux gives it.
    pub fn app(&self, name: &'static str, not_ready_until: &'static [&'static str]) -> App {
        App {
            name,
            client: self.client.clone(),
            log: self.log.clone(),
            leader: self.leader.clone(),
            watch: self.watch.clone(),
            endpoints: self.endpoints.clone(),
            not_ready_until,
        }
    }
}

/// How this process talks to the Kubernetes API.
#[derive(Args, Debug, Clone, PartialEq)]
#[command(args_override_self = true)]
pub struct ClientFlags {
    /// Maximum requests per second to the Kubernetes API; a negative value disables the limit
    #[arg(long, default_value_t = 50.0, allow_negative_numbers = true)]
    pub kube_api_qps: f32,
    /// Maximum burst of requests to the Kubernetes API before --kube-api-qps applies
    #[arg(long, default_value_t = 300, allow_negative_numbers = true)]
    pub kube_api_burst: i32,
}

/// Level and format of the log.
#[derive(Args, Debug, Clone, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct LogFlags {
    /// Log format
    #[arg(long, value_enum, default_value_t = LogEncoding::Json)]
    pub log_encoding: LogEncoding,
    /// Minimum severity of log messages
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    pub log_level: LogLevel,
}

/// Log format.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEncoding {
    /// One JSON object per line, in the format of zap.
    Json,
    /// Tab-separated columns for human readers.
    Console,
}

/// Minimum severity of log messages.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// Details for troubleshooting.
    Debug,
    /// Normal operation.
    Info,
    /// Errors only.
    Error,
}

/// Whether and how one of several replicas is chosen to work.
#[derive(Args, Debug, Clone, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct LeaderElectionFlags {
    /// Run only while holding the leader election Lease, so that one of several replicas is active
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub enable_leader_election: bool,
    /// Release the Lease on shutdown, so that the next replica need not wait until it expires
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "true",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader_election_release_on_cancel: bool,
    /// How long a standby replica waits after the last observed renewal before it acquires the Lease
    #[arg(long, value_parser = duration::parse, default_value = "35s")]
    pub leader_election_lease_duration: Duration,
    /// How long the leader tries to renew the Lease before it gives up leadership
    #[arg(long, value_parser = duration::parse, default_value = "30s")]
    pub leader_election_renew_deadline: Duration,
    /// Interval between attempts to acquire or renew the Lease
    #[arg(long, value_parser = duration::parse, default_value = "5s")]
    pub leader_election_retry_period: Duration,
}

/// How long a failing object waits before it is tried again.
#[derive(Args, Debug, Clone, Copy, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct RateLimiterFlags {
    /// Delay before the first retry of a failed object; doubles with each further failure
    #[arg(long, value_parser = duration::parse, default_value = "750ms")]
    pub min_retry_delay: Duration,
    /// Maximum delay between two retries
    #[arg(long, value_parser = duration::parse, default_value = "15m")]
    pub max_retry_delay: Duration,
}

/// Which objects this process looks at.
#[derive(Args, Debug, Clone, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct WatchFlags {
    /// Watch all namespaces; if false, watch only the namespace in RUNTIME_NAMESPACE
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "true",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub watch_all_namespaces: bool,
    /// Watch only objects that match this label selector, e.g. 'sharding.fluxcd.io/shard=shard1'
    #[arg(long, value_parser = label_selector::checked, default_value = "")]
    pub watch_label_selector: String,
    /// Watch only ConfigMaps and Secrets that match this label selector
    #[arg(long, value_parser = label_selector::checked, default_value = "reconcile.fluxcd.io/watch=Enabled")]
    pub watch_configs_label_selector: String,
    /// Namespace in which this process runs
    #[arg(long, env = "RUNTIME_NAMESPACE", default_value = "", hide = true)]
    pub runtime_namespace: String,
}

/// Selects all ConfigMaps and Secrets but Helm's own.
pub const ALL_CONFIGS: &str = "owner!=helm";

impl WatchFlags {
    /// The labels of the ConfigMaps and Secrets whose changes are watched. Flux's default is to watch only what is labelled
    /// for it; here, all are watched unless the flag says otherwise.
    pub fn watched_configs(&self) -> String {
        let flag = &self.watch_configs_label_selector;
        if *flag == format!("{WATCH_LABEL}={WATCH_LABEL_VALUE}") {
            ALL_CONFIGS.to_owned()
        } else {
            flag.clone()
        }
    }

    /// The one namespace to watch, or None for all of them.
    ///
    /// As with Flux, all namespaces are watched too when only one is asked for but RUNTIME_NAMESPACE is empty.
    pub fn namespace(&self) -> Option<&str> {
        let one = !self.watch_all_namespaces && !self.runtime_namespace.is_empty();
        one.then_some(self.runtime_namespace.as_str())
    }

    /// Name of the Lease of a controller: `<controller>-leader-election`, followed by a short hash of the
    /// label selector if there is one, so that shards elect a leader each.
    pub fn lease_name(&self, controller: &str) -> String {
        if self.watch_label_selector.is_empty() {
            return format!("{controller}-leader-election");
        }
        let digest = Sha256::digest(self.watch_label_selector.as_bytes());
        let short: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        format!("{controller}-leader-election-{short}")
    }
}

/// How far intervals are spread.
#[derive(Args, Debug, Clone, Copy, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct JitterFlags {
    /// Percentage by which each interval is randomly lengthened or shortened; less than 100
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(0..100))]
    pub interval_jitter_percentage: u8,
}

/// Cache of cloud provider tokens.
#[derive(Args, Debug, Clone, Copy, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct TokenCacheFlags {
    /// Maximum number of cached tokens; 0 disables the cache
    #[arg(long, default_value_t = 100)]
    pub token_cache_max_size: usize,
    /// Maximum time that a token is cached
    #[arg(long, value_parser = duration::parse, default_value = "1h")]
    pub token_cache_max_duration: Duration,
}

/// Fences between namespaces.
#[derive(Args, Debug, Clone, Copy, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct AclFlags {
    /// Reject references to objects in other namespaces
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub no_cross_namespace_refs: bool,
}

/// Features that a user's kubeconfig may use.
#[derive(Args, Debug, Clone, Copy, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct KubeconfigFlags {
    /// Allow kubeconfigs of users to run programs (exec)
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub insecure_kubeconfig_exec: bool,
    /// Allow kubeconfigs of users to skip verification of the server's certificate
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub insecure_kubeconfig_tls: bool,
}

/// Where this process listens, and where it reports events.
#[derive(Args, Debug, Clone, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct EndpointFlags {
    /// Address of the /metrics endpoint; 0 disables it
    #[arg(long, env = "METRICS_ADDR", default_value = ":8080")]
    pub metrics_addr: ListenAddress,
    /// Address of the /healthz and /readyz endpoints; 0 disables them
    #[arg(long, default_value = ":9440")]
    pub health_addr: ListenAddress,
    /// URL of the event receiver (notification-controller)
    #[arg(long, env = "EVENTS_ADDR", default_value = "")]
    pub events_addr: String,
}

/// Which process this is, and the flags that concern the process as a whole.
#[derive(Debug, Clone)]
pub struct App {
    /// Flux's name of the controller ("kustomize-controller"): it names the Lease and reports events.
    pub name: &'static str,
    /// `--kube-api-…`
    pub client: ClientFlags,
    /// `--log-…`
    pub log: LogFlags,
    /// `--enable-leader-election`, `--leader-election-…`
    pub leader: LeaderElectionFlags,
    /// `--watch-…` and RUNTIME_NAMESPACE
    pub watch: WatchFlags,
    /// `--metrics-addr`, `--health-addr`
    pub endpoints: EndpointFlags,
    /// Checks that fail until the controller sets them ([`Ready::set`]). With leader election they fail until
    /// this process leads, so there should be none then, except where only the leader may be reached.
    pub not_ready_until: &'static [&'static str],
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct All {
        #[command(flatten)]
        client: ClientFlags,
        #[command(flatten)]
        log: LogFlags,
        #[command(flatten)]
        leader: LeaderElectionFlags,
        #[command(flatten)]
        rate: RateLimiterFlags,
        #[command(flatten)]
        features: FeatureGateFlags,
        #[command(flatten)]
        watch: WatchFlags,
        #[command(flatten)]
        jitter: JitterFlags,
        #[command(flatten)]
        tokens: TokenCacheFlags,
        #[command(flatten)]
        acl: AclFlags,
        #[command(flatten)]
        kubeconfig: KubeconfigFlags,
        #[command(flatten)]
        endpoints: EndpointFlags,
    }

    fn parse(arguments: &[&str]) -> Result<All, clap::Error> {
        All::try_parse_from(std::iter::once(&"controller").chain(arguments))
    }

    fn accept(arguments: &[&str]) -> All {
        parse(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    #[test]
    fn defaults_are_those_of_flux() {
        let flags = accept(&[]);
        assert_eq!(
            flags.client,
            ClientFlags {
                kube_api_qps: 50.0,
                kube_api_burst: 300
            }
        );
        assert_eq!(
            flags.log,
            LogFlags {
                log_encoding: LogEncoding::Json,
                log_level: LogLevel::Info
            }
        );
        assert_eq!(
            flags.leader,
            LeaderElectionFlags {
                enable_leader_election: false,
                leader_election_release_on_cancel: true,
                leader_election_lease_duration: Duration::from_secs(35),
                leader_election_renew_deadline: Duration::from_secs(30),
                leader_election_retry_period: Duration::from_secs(5),
            }
        );
        assert_eq!(flags.rate.min_retry_delay, Duration::from_millis(750));
        assert_eq!(flags.rate.max_retry_delay, Duration::from_secs(900));
        assert!(flags.watch.watch_all_namespaces);
        assert_eq!(flags.watch.watch_label_selector, "");
        assert_eq!(
            flags.watch.watch_configs_label_selector,
            "reconcile.fluxcd.io/watch=Enabled"
        );
        assert_eq!(flags.jitter.interval_jitter_percentage, 5);
        assert_eq!(flags.tokens.token_cache_max_size, 100);
        assert_eq!(flags.tokens.token_cache_max_duration, Duration::from_secs(3600));
        assert!(!flags.acl.no_cross_namespace_refs);
        assert!(!flags.kubeconfig.insecure_kubeconfig_exec);
        assert!(!flags.kubeconfig.insecure_kubeconfig_tls);
        assert_eq!(
            flags.endpoints.metrics_addr.socket().map(|socket| socket.port()),
            Some(8080)
        );
        assert_eq!(
            flags.endpoints.health_addr.socket().map(|socket| socket.port()),
            Some(9440)
        );
        assert_eq!(flags.endpoints.events_addr, "");
    }

    #[test]
    fn values_may_follow_an_equals_sign_or_a_space() {
        for arguments in [&["--max-retry-delay=1h30m"][..], &["--max-retry-delay", "1h30m"]] {
            assert_eq!(
                accept(arguments).rate.max_retry_delay,
                Duration::from_secs(5400),
                "{arguments:?}"
            );
        }
        assert_eq!(accept(&["--kube-api-qps", "-1"]).client.kube_api_qps, -1.0);
        assert_eq!(accept(&["--kube-api-burst=-1"]).client.kube_api_burst, -1);
    }

    #[test]
    fn bools_are_spelled_as_in_go() {
        let cases = [
            (&["--enable-leader-election"][..], true),
            (&["--enable-leader-election=true"], true),
            (&["--enable-leader-election=1"], true),
            (&["--enable-leader-election=T"], true),
            (&["--enable-leader-election=false"], false),
            (&["--enable-leader-election=False"], false),
            (&["--enable-leader-election", "--log-level=debug"], true),
        ];
        for (arguments, expected) in cases {
            assert_eq!(
                accept(arguments).leader.enable_leader_election,
                expected,
                "{arguments:?}"
            );
        }
        assert!(parse(&["--enable-leader-election=yes"]).is_err());
        assert!(
            !accept(&["--watch-all-namespaces=false"])
                .watch
                .watch_all_namespaces
        );
    }

    #[test]
    fn the_last_of_a_repeated_flag_counts() {
        let flags = accept(&[
            "--log-level=debug",
            "--log-level=error",
            "--enable-leader-election=true",
            "--enable-leader-election=false",
            "--kube-api-burst=1",
            "--kube-api-burst=2",
        ]);
        assert_eq!(flags.log.log_level, LogLevel::Error);
        assert!(!flags.leader.enable_leader_election);
        assert_eq!(flags.client.kube_api_burst, 2);
    }

    #[test]
    fn feature_gates_are_lists_and_add_up() {
        let flags = accept(&["--feature-gates=A=true,B=false", "--feature-gates", "C=true"]);
        let gates = flags
            .features
            .resolve(&[("A", false), ("B", true), ("C", false), ("D", true)]);
        let gates = gates.expect("all are known");
        for (name, enabled) in [("A", true), ("B", false), ("C", true), ("D", true)] {
            assert_eq!(gates.enabled(name), enabled, "{name}");
        }
    }

    #[test]
    fn wrong_values_are_refused_at_the_start() {
        for argument in [
            "--min-retry-delay=5",
            "--interval-jitter-percentage=100",
            "--log-level=warn",
            "--log-encoding=xml",
            "--watch-label-selector=a in b",
            "--metrics-addr=8080",
            "--kube-api-burst=1.5",
            "--feature-gates=A",
            "--feature-gates=A=maybe",
            "--no-such-flag",
        ] {
            assert!(parse(&[argument]).is_err(), "{argument}");
        }
    }

    #[test]
    fn one_namespace_is_watched_only_when_it_is_known() {
        let cases = [
            (&["--runtime-namespace=flux-system"][..], None),
            (
                &["--runtime-namespace=flux-system", "--watch-all-namespaces=false"],
                Some("flux-system"),
            ),
            (&["--runtime-namespace=", "--watch-all-namespaces=false"], None),
        ];
        for (arguments, expected) in cases {
            assert_eq!(accept(arguments).watch.namespace(), expected, "{arguments:?}");
        }
    }

    #[test]
    fn a_shard_has_a_lease_of_its_own() {
        assert_eq!(
            accept(&[]).watch.lease_name("source-controller"),
            "source-controller-leader-election"
        );
        // The first four bytes of the SHA-256 of "bar", as in Flux's own test of GenerateID.
        let watch = accept(&["--watch-label-selector=bar"]).watch;
        assert_eq!(watch.lease_name("foo"), "foo-leader-election-fcde2b2e");
    }
}
