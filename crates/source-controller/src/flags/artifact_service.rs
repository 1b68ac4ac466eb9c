//! The flags of the artifact service: where it listens, how it is encrypted, and who may call.

use std::path::PathBuf;

use clap::ArgAction;
use controller_kit::flags::{ListenAddress, parse_bool};

/// Where and how the artifact service (gRPC) is served.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ArtifactServiceFlags {
    /// Address of the artifact service (gRPC)
    #[arg(long, env = "GRPC_ADDR", default_value = ":9091", value_name = "ADDRESS")]
    pub(crate) grpc_addr: ListenAddress,
    /// Serve without TLS and authentication. For development only: anyone who reaches the port can read every artifact
    #[arg(long, value_parser = parse_bool, action = ArgAction::Set, default_value = "false",
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) grpc_insecure: bool,
    /// Name of the Secret with the service's certificate authority, and of the ConfigMap with the certificate that
    /// clients trust
    #[arg(long, default_value = "windlass-artifact-ca", value_name = "NAME")]
    pub(crate) grpc_ca_secret: String,
    /// Additional host names and IP addresses of the service's certificate
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) grpc_tls_names: Vec<String>,
    /// Certificate (PEM) of the service, instead of a generated one; reloaded when it changes
    #[arg(long, value_name = "PATH", requires = "grpc_tls_key_file")]
    pub(crate) grpc_tls_cert_file: Option<PathBuf>,
    /// Private key (PEM) of --grpc-tls-cert-file
    #[arg(long, value_name = "PATH", requires = "grpc_tls_cert_file")]
    pub(crate) grpc_tls_key_file: Option<PathBuf>,
    /// Audience that callers' tokens must have
    #[arg(long, default_value = "windlass-artifact", value_name = "NAME")]
    pub(crate) grpc_token_audience: String,
    /// Certificate authority (PEM) that signed --grpc-tls-cert-file; replicas verify the leader with it
    #[arg(long, value_name = "PATH", requires = "grpc_tls_cert_file")]
    pub(crate) grpc_ca_file: Option<PathBuf>,
    /// File with the token with which this replica authenticates to the leader, e.g. in a projected volume; read at
    /// each call
    #[arg(long, value_name = "PATH")]
    pub(crate) replica_token_file: Option<PathBuf>,
    /// Maximum concurrent calls of one caller; 0 disables the limit
    #[arg(long, default_value_t = 128, value_name = "N")]
    pub(crate) grpc_calls_per_caller: usize,
    /// Maximum concurrent HTTP downloads from one address; 0 disables the limit
    #[arg(long, default_value_t = 128, value_name = "N")]
    pub(crate) storage_downloads_per_address: usize,
}

/// How the artifact service is encrypted, and whom it lets.
#[derive(Debug, Clone)]
pub(crate) struct ArtifactService {
    /// Where it is served; None where it is not.
    pub(crate) address: ListenAddress,
    /// None: plain text, for everybody.
    pub(crate) protection: Option<Protection>,
    /// How others reach it.
    pub(crate) host: String,
    /// Authority of a certificate from files.
    pub(crate) ca_file: Option<PathBuf>,
    /// The token of a replica for the leader.
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) calls_per_caller: usize,
    pub(crate) downloads_per_address: usize,
}

/// Encryption and authentication, which go together: a token on a plain connection is anybody's.
#[derive(Debug, Clone)]
pub(crate) struct Protection {
    pub(crate) audience: String,
    pub(crate) certificate: CertificateFrom,
}

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub(crate) enum CertificateFrom {
    /// Certificate and key.
    Files(PathBuf, PathBuf),
    /// Our own authority in this Secret; the host names are those that the flags name.
    Authority { secret: String, hosts: Vec<String> },
}

impl ArtifactService {
    /// Parses the flags; `advertised` is how others reach the HTTP server, and so most often this one too.
    pub(crate) fn new(flags: &ArtifactServiceFlags, advertised: &str) -> Self {
        let certificate = match (&flags.grpc_tls_cert_file, &flags.grpc_tls_key_file) {
            (Some(certificate), Some(key)) => CertificateFrom::Files(certificate.clone(), key.clone()),
            _ => CertificateFrom::Authority {
                secret: flags.grpc_ca_secret.clone(),
                hosts: flags
                    .grpc_tls_names
                    .iter()
                    .cloned()
                    .chain(host_of(advertised))
                    .collect(),
            },
        };
        Self {
            address: flags.grpc_addr,
            host: host_of(advertised).unwrap_or_default(),
            ca_file: flags.grpc_ca_file.clone(),
            token_file: flags.replica_token_file.clone(),
            protection: (!flags.grpc_insecure).then(|| Protection {
                audience: flags.grpc_token_audience.clone(),
                certificate,
            }),
            calls_per_caller: flags.grpc_calls_per_caller,
            downloads_per_address: flags.storage_downloads_per_address,
        }
    }
}

/// Our Service.
const SERVICE: &str = "source-controller";

/// A name that each certificate of our own authority is for.
pub(crate) fn service_name(namespace: &str) -> String {
    format!("{SERVICE}.{namespace}.svc")
}

/// The names by which a certificate is known: those of the flags, and those of our Service in this namespace.
pub(crate) fn hosts(named: &[String], namespace: &str) -> Vec<String> {
    let service = [
        SERVICE.to_owned(),
        format!("{SERVICE}.{namespace}"),
        service_name(namespace),
        format!("{SERVICE}.{namespace}.svc.cluster.local"),
    ];
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut hosts = Vec::new();
    for host in named.iter().cloned().chain(service).chain(local) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}

/// The host of `host:port` or a URL, without the dot at the end of an absolute name.
fn host_of(address: &str) -> Option<String> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.');
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_all_names_that_clients_may_use() {
        for (address, host) in [
            (
                "source-controller.flux-system.svc.cluster.local.",
                "source-controller.flux-system.svc.cluster.local",
            ),
            ("localhost:9090", "localhost"),
            ("https://artifacts.example.com/x", "artifacts.example.com"),
            ("[::1]:9090", "::1"),
        ] {
            assert_eq!(host_of(address).as_deref(), Some(host));
        }
        assert_eq!(host_of(""), None);
        let hosts = hosts(&["localhost".to_owned(), "a.example".to_owned()], "apps");
        assert_eq!(hosts[..3], ["localhost", "a.example", "source-controller"]);
        assert!(hosts.contains(&"source-controller.apps.svc".to_owned()));
        assert_eq!(hosts.iter().filter(|host| *host == "localhost").count(), 1);
    }
}
