//! Asks a console instead of a cluster.

use clap::Args;
use delivery_graph::one_line;
use serde_json::Value;
use url::Url;

use crate::cluster::Failure;

/// Where a console is, and who asks.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConsoleFlags {
    /// Console to ask instead of the cluster: https://windlass.example.com
    #[arg(long, value_name = "URL", env = "WINDLASS_CONSOLE")]
    console: Option<String>,

    /// Kubernetes token for the console
    #[arg(long, value_name = "TOKEN", env = "WINDLASS_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

/// A console.
pub(crate) struct Console {
    url: String,
    token: String,
    http: reqwest::Client,
}

impl ConsoleFlags {
    /// Returns whether a console is to be asked.
    pub(crate) fn is_given(&self) -> bool {
        self.console.is_some()
    }

    /// Asks the console that is given.
    pub(crate) fn run<T>(
        &self,
        asking: impl AsyncFnOnce(Console) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let usage = |message: &str| Failure::Usage(message.to_owned());
        let url = self.console.clone();
        let url = url.ok_or_else(|| usage("this is asked of a console: --console or WINDLASS_CONSOLE"))?;
        let token = self.token.clone();
        let token = token.ok_or_else(|| {
            usage("a console wants a Kubernetes token: --token or WINDLASS_TOKEN (kubectl create token NAME)")
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(Failure::Runtime)?.block_on(async {
            _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
            let http = reqwest::Client::builder().build();
            let http = http.map_err(|error| no_answer(&url, &error))?;
            asking(Console { url, token, http }).await
        })
    }
}

impl Console {
    /// Asks once: a path below `/api/v1/`.
    pub(crate) async fn ask(&self, path: &str, pairs: &[(&str, String)]) -> Result<Value, Failure> {
        let url = &self.url;
        let address = Url::parse(&format!("{}/api/v1/{path}", url.trim_end_matches('/')));
        let mut address = address.map_err(|error| Failure::Usage(format!("--console {url}: {error}")))?;
        let given = pairs.iter().filter(|(_, value)| !value.is_empty());
        address.query_pairs_mut().extend_pairs(given);
        let answer = self.http.get(address).bearer_auth(&self.token).send().await;
        let answer = answer.map_err(|error| no_answer(url, &error))?;
        let status = answer.status();
        let text = answer.bytes().await.map_err(|error| no_answer(url, &error))?;
        let value: Value = serde_json::from_slice(&text).unwrap_or_default();
        if !status.is_success() {
            let told = one_line(value["message"].as_str().unwrap_or("it is no console"));
            return Err(Failure::NotReady(format!("{url} answered {status}: {told}")));
        }
        Ok(value)
    }

    /// Asks for `items` of all pages, or of as many as make up `most`.
    pub(crate) async fn all(
        &self,
        path: &str,
        mut pairs: Vec<(&str, String)>,
        most: usize,
    ) -> Result<Vec<Value>, Failure> {
        let mut found = Vec::new();
        loop {
            let page = self.ask(path, &pairs).await?;
            found.extend(page["items"].as_array().cloned().unwrap_or_default());
            found.truncate(most);
            match page["next"].as_str() {
                Some(next) if found.len() < most => {
                    pairs.retain(|(name, _)| *name != "after");
                    pairs.push(("after", next.to_owned()));
                }
                _ => return Ok(found),
            }
        }
    }
}

fn no_answer(url: &str, error: &reqwest::Error) -> Failure {
    Failure::NotReady(format!("{url} does not answer: {}", error_chain::chain(error)))
}
