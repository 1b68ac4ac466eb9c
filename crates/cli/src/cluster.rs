//! The way to a cluster, for all commands that speak to one: which cluster and namespace, in what form answers are printed,
//! and with which exit code a command ends ([`Failure::exit_code`]).
//!
//! Neither a runtime nor a client is made before a command asks for it here, so that the commands without a cluster start
//! as fast as they would alone.

pub(crate) mod anything;
pub(crate) mod controllers;
mod failure;
pub(crate) mod output;
pub(crate) mod pipeline;
mod read;
mod reader;
pub(crate) mod select;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kube::config::{self, Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Error};

pub(crate) use failure::{EXIT_CODES, Failure, USAGE};
pub(crate) use output::{Output, print};
pub(crate) use read::{Change, Told};
pub(crate) use reader::Reader;
pub(crate) use select::Target;

/// Which cluster, and where in it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterFlags {
    /// Kubeconfig file; defaults to $KUBECONFIG, ~/.kube/config, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Namespace; defaults to that of the context, or flux-system
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,

    #[arg(skip)]
    overrides: Overrides,
}

/// What is used instead of what the kubeconfig says. Flags of a command that is used as `helm` is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    /// The API server's address.
    pub(crate) server: Option<String>,
    /// File with its certificate authorities.
    pub(crate) ca_file: Option<String>,
    /// Name in its certificate.
    pub(crate) tls_server_name: Option<String>,
    /// Its certificate is not verified.
    pub(crate) insecure: bool,
    /// Bearer token.
    pub(crate) token: Option<String>,
    /// Who is impersonated.
    pub(crate) user: Option<String>,
    /// And in which groups.
    pub(crate) groups: Vec<String>,
}

impl ClusterFlags {
    /// For a command with flags of its own for the connection.
    pub(crate) fn with_overrides(
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
        overrides: Overrides,
    ) -> Self {
        Self {
            kubeconfig,
            context,
            namespace: None,
            overrides,
        }
    }

    /// For a command with words of its own for the namespace.
    pub(crate) fn in_namespace(
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
        namespace: &str,
    ) -> Self {
        Self {
            kubeconfig,
            context,
            namespace: Some(namespace.to_owned()),
            overrides: Overrides::default(),
        }
    }

    /// For a command that asks several clusters.
    pub(crate) fn of_context(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self {
            kubeconfig,
            context,
            namespace: None,
            overrides: Overrides::default(),
        }
    }

    fn read(&self) -> Result<Kubeconfig, KubeconfigError> {
        match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        }
    }
}

/// Which cluster, and in one namespace of it or in all.
#[derive(Clone, Debug, Args)]
pub(crate) struct Scope {
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,

    /// Include all namespaces
    #[arg(long, short = 'A')]
    pub(crate) all_namespaces: bool,
}

impl ClusterFlags {
    /// The namespace, if one was typed.
    pub(crate) fn named_namespace(&self) -> Option<String> {
        self.namespace.clone()
    }
}

/// A cluster that can be asked, and the namespace of what is named without one.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    pub(crate) namespace: String,
    /// The namespace that was typed or that the context names.
    pub(crate) named_namespace: Option<String>,
}

#[cfg(test)]
impl Cluster {
    /// A stand-in's, for tests.
    pub(crate) fn at(address: &str) -> Self {
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let config = Config::new(format!("http://{address}").parse().unwrap());
        Self {
            client: Client::try_from(config).unwrap(),
            namespace: FLUX_NAMESPACE.to_owned(),
            named_namespace: None,
        }
    }
}

/// Where Flux's own command looks when nothing says otherwise.
const FLUX_NAMESPACE: &str = "flux-system";
/// A person waits in front of the terminal: kube's 30 s say "it hangs", not "it is not there".
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Does what needs a cluster.
pub(crate) fn run<T>(
    flags: &ClusterFlags,
    work: impl AsyncFnOnce(Cluster) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    runtime.block_on(async { work(connect(flags).await?).await })
}

/// The way to a cluster.
pub(crate) async fn connect(flags: &ClusterFlags) -> Result<Cluster, Failure> {
    // Whoever else installed one has installed the same: there is one TLS provider in the tree.
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (mut config, namespace) = configuration(flags).await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let client = Client::try_from(config).map_err(|source| Failure::request("set up the client", source))?;
    let named_namespace = flags.namespace.clone().or(namespace);
    Ok(Cluster {
        client,
        namespace: named_namespace
            .clone()
            .unwrap_or_else(|| FLUX_NAMESPACE.to_owned()),
        named_namespace,
    })
}

/// The context that is used if none is named.
pub(crate) fn current_context(flags: &ClusterFlags) -> Option<String> {
    flags.read().ok()?.current_context
}

/// The configuration, and the namespace that it names.
async fn configuration(flags: &ClusterFlags) -> Result<(Config, Option<String>), Failure> {
    let configure = |error: &dyn std::error::Error| Failure::configure(error);
    let kubeconfig = match flags.read() {
        Ok(kubeconfig) => kubeconfig,
        Err(_) if flags.overrides.server.is_some() && flags.context.is_none() => Kubeconfig::default(),
        // In a pod there is no kubeconfig, and no one asked for one.
        Err(error) if flags.kubeconfig.is_none() && flags.context.is_none() => {
            let config = Config::incluster().map_err(|_| configure(&error))?;
            let namespace = config.default_namespace.clone();
            return Ok((config, Some(namespace)));
        }
        Err(error) => return Err(configure(&error)),
    };
    let kubeconfig = flags.overrides.applied(kubeconfig, flags.context.as_deref());
    let namespace = namespace_of_context(&kubeconfig, flags.context.as_deref());
    if let Some(provider) = auth_provider_of_context(&kubeconfig, flags.context.as_deref()) {
        return Err(Failure::Usage(format!(
            "the kubeconfig signs in with the auth-provider {provider:?}, which kubectl has dropped as well; have it sign in \
             with a program (users[].user.exec), for example kubelogin or `kubectl oidc-login` for OIDC"
        )));
    }
    let options = KubeConfigOptions {
        context: flags.context.clone(),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| configure(&error))?;
    Ok((config, namespace))
}

/// kube says "default" where a context names no namespace; no one chose that.
fn namespace_of_context(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(kubeconfig.current_context.as_deref())?;
    let named = kubeconfig.contexts.iter().find(|named| named.name == context)?;
    let namespace = named.context.as_ref()?.namespace.clone()?;
    Some(namespace).filter(|namespace| !namespace.is_empty())
}

impl Overrides {
    /// Replaces what the context's cluster and user say; creates them where there are none.
    fn applied(&self, mut kubeconfig: Kubeconfig, context: Option<&str>) -> Kubeconfig {
        let chosen = context
            .or(kubeconfig.current_context.as_deref())
            .map(str::to_owned);
        let named = kubeconfig
            .contexts
            .iter()
            .find(|named| Some(&named.name) == chosen.as_ref());
        let named = named.and_then(|named| named.context.clone());
        let of_context = match (named, &self.server) {
            (Some(named), _) => named,
            (None, Some(_)) if context.is_none() => made_context(&mut kubeconfig),
            // The error that follows names the context.
            (None, _) => return kubeconfig,
        };
        let cluster = kubeconfig
            .clusters
            .iter_mut()
            .find(|named| named.name == of_context.cluster);
        if let Some(cluster) = cluster {
            self.change_cluster(cluster.cluster.get_or_insert_default());
        }
        let user = kubeconfig
            .auth_infos
            .iter_mut()
            .find(|named| Some(&named.name) == of_context.user.as_ref());
        if let Some(user) = user {
            self.change_user(user.auth_info.get_or_insert_default());
        }
        kubeconfig
    }

    fn change_cluster(&self, cluster: &mut config::Cluster) {
        let replace = |field: &mut Option<String>, by: &Option<String>| {
            if by.is_some() {
                field.clone_from(by);
            }
        };
        replace(&mut cluster.server, &self.server);
        replace(&mut cluster.tls_server_name, &self.tls_server_name);
        replace(&mut cluster.certificate_authority, &self.ca_file);
        if self.ca_file.is_some() {
            cluster.certificate_authority_data = None;
        }
        if self.insecure {
            cluster.insecure_skip_tls_verify = Some(true);
            cluster.certificate_authority = None;
            cluster.certificate_authority_data = None;
        }
    }

    fn change_user(&self, user: &mut config::AuthInfo) {
        if let Some(token) = &self.token {
            user.token = Some(token.clone().into());
            user.token_file = None;
        }
        if self.user.is_some() {
            user.impersonate.clone_from(&self.user);
            user.impersonate_groups = Some(self.groups.clone()).filter(|groups| !groups.is_empty());
        }
    }
}

/// A context for an address that no kubeconfig knows.
fn made_context(kubeconfig: &mut Kubeconfig) -> config::Context {
    const NAME: &str = "of-flags";
    let context = config::Context {
        cluster: NAME.to_owned(),
        user: Some(NAME.to_owned()),
        ..config::Context::default()
    };
    kubeconfig.current_context = Some(NAME.to_owned());
    kubeconfig.clusters.push(config::NamedCluster {
        name: NAME.to_owned(),
        cluster: None,
        ..Default::default()
    });
    kubeconfig.auth_infos.push(config::NamedAuthInfo {
        name: NAME.to_owned(),
        auth_info: None,
        ..Default::default()
    });
    kubeconfig.contexts.push(config::NamedContext {
        name: NAME.to_owned(),
        context: Some(context.clone()),
        ..Default::default()
    });
    context
}

/// The way to sign in that programs (`exec`) have taken the place of.
fn auth_provider_of_context(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let context = context.or(kubeconfig.current_context.as_deref())?;
    let named = kubeconfig.contexts.iter().find(|named| named.name == context)?;
    let user = named.context.as_ref()?.user.as_ref()?;
    let named = kubeconfig.auth_infos.iter().find(|named| named.name == *user)?;
    let provider = named.auth_info.as_ref()?.auth_provider.as_ref()?;
    Some(provider.name.clone())
}

/// Reads a duration as Flux's flags have it: `90s`, `5m`, `1h30m`.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    let parsed: api::meta::Duration = text
        .parse()
        .map_err(|_| format!("{text:?} is no duration; write for example 90s, 5m or 1h30m"))?;
    Ok(parsed.into())
}

/// Returns whether the API server does not have what was asked for.
fn is_absent(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_that_of_the_context_only_if_it_names_one() {
        let kubeconfig = Kubeconfig::from_yaml(
            "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n\
             - {name: b, context: {cluster: c, user: u, namespace: shop}}\n",
        )
        .unwrap();
        assert_eq!(namespace_of_context(&kubeconfig, None), None);
        assert_eq!(
            namespace_of_context(&kubeconfig, Some("b")).as_deref(),
            Some("shop")
        );
        assert_eq!(namespace_of_context(&kubeconfig, Some("c")), None);
    }

    #[test]
    fn a_way_to_sign_in_that_nobody_has_any_more_is_named() {
        let kubeconfig = Kubeconfig::from_yaml(
            "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n\
             - {name: b, context: {cluster: c, user: v}}\nusers:\n\
             - {name: u, user: {auth-provider: {name: oidc, config: {}}}}\n- {name: v, user: {token: t}}\n",
        )
        .unwrap();
        assert_eq!(
            auth_provider_of_context(&kubeconfig, None).as_deref(),
            Some("oidc")
        );
        assert_eq!(auth_provider_of_context(&kubeconfig, Some("b")), None);
    }

    #[test]
    fn overrides_take_the_place_of_what_the_context_says() {
        let kubeconfig = Kubeconfig::from_yaml(
            "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n\
             clusters:\n- {name: c, cluster: {server: https://one, certificate-authority-data: eA==}}\n\
             users:\n- {name: u, user: {token: t}}\n",
        )
        .unwrap();
        let overrides = Overrides {
            server: Some("https://two".to_owned()),
            insecure: true,
            user: Some("ana".to_owned()),
            groups: vec!["staff".to_owned()],
            ..Overrides::default()
        };
        for kubeconfig in [kubeconfig, Kubeconfig::default()] {
            let changed = overrides.applied(kubeconfig, None);
            let cluster = changed.clusters[0].cluster.as_ref().unwrap();
            assert_eq!(cluster.server.as_deref(), Some("https://two"));
            assert_eq!(cluster.insecure_skip_tls_verify, Some(true));
            assert_eq!(cluster.certificate_authority_data, None);
            let user = changed.auth_infos[0].auth_info.as_ref().unwrap();
            assert_eq!(user.impersonate.as_deref(), Some("ana"));
            assert_eq!(user.impersonate_groups, Some(vec!["staff".to_owned()]));
        }
    }

    #[test]
    fn timeouts_are_durations_as_go_writes_them() {
        assert_eq!(parse_timeout("1m30s"), Ok(Duration::from_secs(90)));
        assert!(parse_timeout("soon").is_err());
    }
}
