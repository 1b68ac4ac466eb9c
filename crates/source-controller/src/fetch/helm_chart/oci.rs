//! Charts in container registries: versions are tags, with `_` where a version has `+`.

use go_semver::tags;
use std::fs::File;
use std::io::{Read as _, Seek as _};

use oci_client::credentials::{self, Credentials};
use oci_client::layer::Layer;
use oci_client::name::Name;
use oci_client::registry::{self, Repository};
use oci_client::{HELM_CHART, Reference, Resolved};
use transport::{auth, http};
use workload_identity::Exchange;

use super::{Access, ClientError, DownloadError, Found, Login};
use crate::provider_name::provider_name;
use crate::reconcile::fetch::Fetcher;
use remote_access::identity::registry_credentials;

/// Where a chart is in a registry.
pub(crate) struct Place {
    pub(crate) request: oci_client::Request,
    pub(crate) resolved: Resolved,
}

/// Why no version was found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The registry could not be asked.
    #[error("could not get tags for '{name}': could not fetch tags for '{url}'")]
    List {
        /// The chart.
        name: String,
        /// Its address.
        url: String,
        /// Error of the registry.
        #[source]
        source: Box<registry::Error>,
    },
    /// There is nothing of that name.
    #[error("unable to locate any tags in provided repository: {0}")]
    NoTags(String),
    /// The range is none.
    #[error(transparent)]
    Range(go_semver::Error),
    /// Nothing is in the range.
    #[error("could not locate a version matching provided version string {range}{nearest}")]
    NoMatch {
        /// The range.
        range: String,
        /// The newest versions that there are, in a clause.
        nearest: String,
    },
    /// The chosen version has no manifest.
    #[error(transparent)]
    Resolve(Box<oci_client::Error>),
}

impl Error {
    pub(super) fn is_unauthorized(&self) -> bool {
        match self {
            Self::List { source, .. } => source.is_unauthorized(),
            Self::Resolve(error) => super::is_refused(error),
            _ => false,
        }
    }
}

/// How many versions are named to who asked for one that is not there.
const NAMED: usize = 5;

/// Finds the version.
pub(super) async fn find(
    access: &Access,
    name: &str,
    range: &str,
    fetcher: &Fetcher,
) -> Result<Found, super::Error> {
    let url = format!("{}/{name}", access.url.trim_end_matches('/'));
    let repository = repository(access, &url, fetcher).await?;
    let version = version(&repository, name, range, &url)
        .await
        .map_err(super::Error::FindVersion)?;
    let request = oci_client::Request {
        url,
        repository,
        reference: Reference::Tag(version.replace('+', "_")),
        layer_media_type: Some(HELM_CHART.to_owned()),
    };
    let resolved = oci_client::resolve(&request)
        .await
        .map_err(|error| super::Error::FindVersion(Error::Resolve(Box::new(error))))?;
    Ok(Found {
        name: name.to_owned(),
        version,
        place: Place { request, resolved },
    })
}

/// Downloads the layer with the chart.
pub(super) async fn download(found: &Found, fetcher: &Fetcher) -> Result<File, super::Error> {
    let Place { request, resolved } = &found.place;
    let pulled = oci_client::pull(request, resolved.digest).await;
    let layer = pulled
        .map_err(|error| super::Error::Download(DownloadError::Pull(Box::new(error))))?
        .layer;
    let chart = format!("{}-{}", found.name, found.version);
    let (directory, limit) = (fetcher.directory.clone(), fetcher.charts.archive);
    let spooled = tokio::task::spawn_blocking(move || {
        let file = tempfile::tempfile_in(directory).map_err(super::Error::MakeFile)?;
        spool(layer, file, chart, limit).map_err(super::Error::Download)
    });
    spooled.await.unwrap_or(Err(super::Error::Abandoned))
}

fn spool(mut layer: Layer, mut file: File, chart: String, limit: u64) -> Result<File, DownloadError> {
    let copied = std::io::copy(&mut layer.by_ref().take(limit + 1), &mut file)?;
    if copied > limit {
        return Err(DownloadError::TooLarge { chart, limit });
    }
    layer.finish()?;
    file.rewind()?;
    Ok(file)
}

async fn repository(access: &Access, url: &str, fetcher: &Fetcher) -> Result<Repository, super::Error> {
    let name = Name::parse(url).map_err(|error| super::Error::Url(format!("'{url}': {error}")))?;
    let failed = super::Error::Client;
    let credentials = match &access.login {
        Some(wanted) => login(wanted, access, &name, fetcher).await?,
        None => credentials_of(access, &name).map_err(failed)?,
    };
    let tls = access.certificates.as_ref().map(auth::tls).transpose();
    let tls = tls.map_err(|error| failed(error.into()))?;
    let settings = http::Settings {
        skip_verification: access.insecure && tls.is_none(),
        ..tls.unwrap_or_default()
    };
    let client = fetcher.clients.get(&settings.towards(name.host()));
    Ok(Repository {
        name,
        insecure: access.insecure,
        credentials,
        client: client.map_err(|error| failed(error.into()))?,
        memory: fetcher.registries.clone(),
        deadline: fetcher.deadline(access.timeout),
    })
}

/// Returns the provider's credentials for its registry; none if there is no provider.
async fn login(
    wanted: &Login,
    access: &Access,
    name: &Name,
    fetcher: &Fetcher,
) -> Result<Option<Credentials>, super::Error> {
    let Login { provider, identity } = wanted;
    let exchange = Exchange {
        clients: fetcher.clients.clone(),
        settings: http::Settings::default(),
        deadline: Some(fetcher.deadline(access.timeout)),
    };
    let credentials = registry_credentials(*provider, name.host(), identity, &fetcher.identities, &exchange);
    credentials.await.map_err(|source| super::Error::Provider {
        provider: provider_name(*provider),
        source,
    })
}

/// A pull secret, or just `username` and `password`.
fn credentials_of(access: &Access, name: &Name) -> Result<Option<Credentials>, ClientError> {
    let Some(secret) = &access.secret else {
        return Ok(None);
    };
    let text = |key: &str| {
        secret
            .get(key)
            .map(|value| String::from_utf8_lossy(value).into_owned())
    };
    match (text("username"), text("password")) {
        (Some(username), Some(password)) => Ok(Some(Credentials::Basic(username, password))),
        _ => Ok(credentials::find(std::slice::from_ref(secret), name)?),
    }
}

/// A version that is written out needs no list of tags.
async fn version(repository: &Repository, name: &str, range: &str, url: &str) -> Result<String, Error> {
    if tags::is_full(range) {
        return Ok(range.to_owned());
    }
    let tags = repository.tags().await.map_err(|source| Error::List {
        name: name.to_owned(),
        url: url.to_owned(),
        source: Box::new(source),
    })?;
    let versions: Vec<String> = tags.iter().map(|tag| tag.replace('_', "+")).collect();
    pick(&versions, name, range).map(str::to_owned)
}

fn pick<'a>(versions: &'a [String], name: &str, range: &str) -> Result<&'a str, Error> {
    if versions.is_empty() {
        return Err(Error::NoTags(name.to_owned()));
    }
    if let Some(exact) = versions
        .iter()
        .find(|version| !range.is_empty() && *version == range)
    {
        return Ok(exact);
    }
    let constraints = if range.is_empty() { "*" } else { range };
    let constraints = tags::parse_range(constraints).map_err(Error::Range)?;
    let highest = tags::highest(&constraints, versions.iter().map(String::as_str));
    highest.ok_or_else(|| Error::NoMatch {
        range: range.to_owned(),
        nearest: nearest(versions),
    })
}

fn nearest(versions: &[String]) -> String {
    let newest = tags::newest(versions.iter().map(String::as_str), NAMED);
    match newest.as_slice() {
        [] => "; the repository has no versions".to_owned(),
        newest => format!("; the newest are {}", newest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use api::source::OCIProvider;

    use super::*;

    fn picked(range: &str) -> Result<String, String> {
        let versions = ["0.9.0", "1.0.0", "1.1.0+2", "2.0.0-rc.1", "latest"].map(str::to_owned);
        let picked = pick(&versions, "app", range).map(str::to_owned);
        picked.map_err(|error| error.to_string())
    }

    #[test]
    fn versions_are_picked_as_flux_picks_them() {
        assert_eq!(picked("").as_deref(), Ok("1.1.0+2"));
        assert_eq!(picked("*").as_deref(), Ok("1.1.0+2"));
        assert_eq!(picked("latest").as_deref(), Ok("latest"));
        assert_eq!(picked("~1.0").as_deref(), Ok("1.0.0"));
        assert_eq!(picked(">=1.0.0-0").as_deref(), Ok("2.0.0-rc.1"));
        let message = "could not locate a version matching provided version string >=3; the newest are 2.0.0-rc.1, \
                       1.1.0+2, 1.0.0, 0.9.0";
        assert_eq!(picked(">=3").unwrap_err(), message);
        assert_eq!(picked("what?").unwrap_err(), "improper constraint: \"what?\"");
    }

    #[tokio::test]
    async fn registries_of_providers_get_what_their_provider_gives() {
        let store = testkit::bucket::ObjectStore::start(testkit::tools::Package::Moto)
            .await
            .unwrap();
        let url = format!("http://{}", store.address());
        let environment = cloud_identity::Environment::from_variables(&[
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_ENDPOINT_URL_ECR", &url),
        ]);
        let directory = tempfile::tempdir().unwrap();
        let mut fetcher = Fetcher::alone(directory.path().to_owned());
        fetcher.identities = fetcher.identities.within(environment);
        let access = |provider| Access {
            url: String::new(),
            insecure: false,
            timeout: api::meta::Duration::from_secs(20),
            secret: None,
            certificates: None,
            login: Some(Login {
                provider,
                identity: cloud_identity::Identity::Controller,
            }),
        };
        let repository = async |provider, url: &str| repository(&access(provider), url, &fetcher).await;
        let ecr = "oci://123456789012.dkr.ecr.us-east-1.amazonaws.com/charts/app";
        let found = repository(OCIProvider::Aws, ecr).await.unwrap();
        let Some(Credentials::Basic(username, password)) = found.credentials else {
            panic!("ECR gives a name and a password")
        };
        assert_eq!((username.as_str(), password.is_empty()), ("AWS", false));

        for (provider, name) in [
            (OCIProvider::Aws, "aws"),
            (OCIProvider::Azure, "azure"),
            (OCIProvider::Gcp, "gcp"),
        ] {
            let error = repository(provider, "oci://example.com/charts/app")
                .await
                .err()
                .unwrap();
            let message = error.to_string();
            assert_eq!(message, format!("failed to get credential from '{name}'"));
            let error = crate::error::HelmChartError::of_search(error);
            assert_eq!(error.condition(), (Some("FetchFailed"), "AuthenticationFailed"));
            assert!(
                error.message().contains("registry: 'example.com'"),
                "{}",
                error.message()
            );
        }
    }
}
