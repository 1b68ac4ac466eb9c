//! The requests that the storage sends. Of what is written only metadata comes back, since a record may have a megabyte.

use std::time::Duration;

use helm_release::Labels;
use helm_release::record::{KEY, SECRET_TYPE};
use http::header::{ACCEPT, HeaderValue};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::request::Request;

use super::StorageError;

/// Sends requests about the Secrets of a namespace.
#[derive(Clone)]
pub(super) struct Requests {
    client: Client,
    namespace: String,
}

/// Answer of the API server to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It has it now.
    Done,
    /// There is one already, or none to write to.
    Not,
}

/// Asks for metadata only.
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Secrets per page of a list.
const PAGE: u32 = 500;

type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

impl Requests {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        let namespace = namespace.to_owned();
        Self { client, namespace }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Lists the labels of the Secrets that a selector chooses.
    pub(super) async fn labels(&self, selector: &str) -> Result<Vec<Labels>, StorageError> {
        let doing = "query: failed to query with labels";
        let mut params = ListParams::default().labels(selector).limit(PAGE);
        let mut found = Vec::new();
        loop {
            let page = in_time(self.secrets().list_metadata(&params)).await;
            let page = page.map_err(|problem| refused(doing, &problem))?;
            let labels = page.items.into_iter().map(|secret| secret.metadata.labels);
            found.extend(labels.map(Option::unwrap_or_default));
            match page.metadata.continue_ {
                Some(next) if !next.is_empty() => params = params.continue_token(&next),
                _ => return Ok(found),
            }
        }
    }

    /// Reads a Secret; None when there is none.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Secret>, StorageError> {
        let found = in_time(self.secrets().get_opt(name)).await;
        found.map_err(|problem| refused(&format!("get: failed to get {name:?}"), &problem))
    }

    pub(super) async fn create(
        &self,
        name: &str,
        labels: Labels,
        data: Vec<u8>,
    ) -> Result<Answer, StorageError> {
        let body = self.body(name, labels, data);
        let request = body.and_then(|body| self.request().create(&PostParams::default(), body));
        self.write("create: failed to create", request, "AlreadyExists")
            .await
    }

    pub(super) async fn update(
        &self,
        name: &str,
        labels: Labels,
        data: Vec<u8>,
    ) -> Result<Answer, StorageError> {
        let body = self.body(name, labels, data);
        let request = body.and_then(|body| self.request().replace(name, &PostParams::default(), body));
        self.write("update: failed to update", request, "NotFound").await
    }

    /// Deletes a Secret, which may be gone already.
    pub(super) async fn delete(&self, name: &str) -> Result<(), StorageError> {
        let request = self.request().delete(name, &DeleteParams::default());
        let doing = format!("failed to delete {name:?}");
        self.write(&doing, request, "NotFound").await.map(|_| ())
    }

    async fn write(&self, doing: &str, request: Built, not: &str) -> Result<Answer, StorageError> {
        let mut request = request.map_err(|error| refused(doing, &error.to_string()))?;
        request.headers_mut().insert(ACCEPT, METADATA);
        match in_time_or_status(self.client.request_text(request)).await {
            Ok(_) => Ok(Answer::Done),
            Err(Sent::Status(status)) if status.reason == not => Ok(Answer::Not),
            Err(Sent::Status(status)) => Err(refused(doing, &status.message)),
            Err(Sent::Failed(problem)) => Err(refused(doing, &problem)),
        }
    }

    fn body(&self, name: &str, labels: Labels, data: Vec<u8>) -> Result<Vec<u8>, kube::core::request::Error> {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace.clone()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            type_: Some(SECRET_TYPE.to_owned()),
            data: Some([(KEY.to_owned(), ByteString(data))].into()),
            ..Secret::default()
        };
        serde_json::to_vec(&secret).map_err(kube::core::request::Error::SerializeBody)
    }

    fn request(&self) -> Request {
        Request::new(self.secrets().resource_url().to_owned())
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

fn refused(doing: &str, problem: &str) -> StorageError {
    StorageError::Request {
        doing: doing.to_owned(),
        problem: problem.to_owned(),
    }
}

/// Why a request failed.
enum Sent {
    /// The API server answered with a status.
    Status(Box<kube::core::Status>),
    /// It did not.
    Failed(String),
}

async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    in_time_or_status(request).await.map_err(|sent| match sent {
        Sent::Status(status) => status.message,
        Sent::Failed(problem) => problem,
    })
}

async fn in_time_or_status<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, Sent> {
    match tokio::time::timeout(TIMEOUT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(Sent::Status(status)),
        Ok(Err(error)) => Err(Sent::Failed(error.to_string())),
        Err(_) => Err(Sent::Failed(format!(
            "the API server did not answer within {} s",
            TIMEOUT.as_secs()
        ))),
    }
}
