//! The artifact service (proto/windlass/artifact/v1) over the store, with health and reflection.
//!
//! Every answer is a stream whose next message is read from disk when the client has room for it, so a slow client
//! holds a few hundred KiB and no thread. Nothing is verified here: clients verify digests, and the store did so at its
//! start.

mod content;
mod convert;
mod watch;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use artifact::store::Store;
use artifact_proto::v1::{
    self,
    artifact_service_server::{ArtifactService, ArtifactServiceServer},
};
use futures::Stream;
use tokio::{net::TcpListener, sync::watch as signal};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Request, Response, Status,
    service::{Interceptor, Routes, interceptor::InterceptedService},
    transport::Server,
};
use tonic_health::server::HealthReporter;

/// How long running calls may go on after the process was asked to stop. Flux's file server waits as long.
const GRACE: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Calls of one connection at a time; each may hold a file open.
const MAX_STREAMS: u32 = 256;

/// Why the service could not be set up or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The descriptors that are compiled in cannot be read.
    #[error("failed to set up reflection")]
    Reflection(#[source] tonic_reflection::server::Error),
    /// The listener failed.
    #[error("failed to serve the artifact service")]
    Serve(#[source] tonic::transport::Error),
}

/// Lets every call pass: authentication is not there yet, and this is its place.
///
/// # Errors
/// Never.
pub fn allow_all(request: Request<()>) -> Result<Request<()>, Status> {
    Ok(request)
}

/// Serves until `shutdown` is ready, and then for a few seconds what is running; without authentication.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    store: Arc<Store>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    serve_authenticated(listener, store, allow_all, shutdown).await
}

/// As [`serve`], with each call of the artifact service passing `authenticate` first. Health and reflection are open.
///
/// # Errors
/// When the listener fails.
pub async fn serve_authenticated(
    listener: TcpListener,
    store: Arc<Store>,
    authenticate: impl Interceptor + Clone + Send + Sync + 'static,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    // Its end tells watches, which would go on for ever, to end.
    let (stop, running) = signal::channel(());
    let (routes, health) = routes(store, authenticate, running).await?;
    let (stopping, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .max_concurrent_streams(MAX_STREAMS)
        .add_routes(routes)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async {
            // An error means that the other end is gone, which is the same.
            stopped.await.ok();
        });
    let ending = async {
        shutdown.await;
        health.set_not_serving::<ArtifactServiceServer<Service>>().await;
        drop(stop);
        drop(stopping);
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        result = server => result.map_err(Error::Serve),
        () = ending => Ok(()),
    }
}

async fn routes<I>(
    store: Arc<Store>,
    authenticate: I,
    running: signal::Receiver<()>,
) -> Result<(Routes, HealthReporter), Error>
where
    I: Interceptor + Clone + Send + Sync + 'static,
{
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<ArtifactServiceServer<Service>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(artifact_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(Error::Reflection)?;
    let service = ArtifactServiceServer::new(Service { store, running });
    let service = InterceptedService::new(service, authenticate);
    Ok((
        Routes::new(service).add_service(health).add_service(reflection),
        reporter,
    ))
}

/// The calls. Each turns its request to values that are checked, and leaves the rest to a module of its own.
struct Service {
    store: Arc<Store>,
    /// Closed when the process ends.
    running: signal::Receiver<()>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl ArtifactService for Service {
    type GetTreeStream = Answers<v1::GetTreeResponse>;
    type ReadBlobsStream = Answers<v1::ReadBlobsResponse>;
    type DownloadStream = Answers<v1::DownloadResponse>;
    type WatchStream = Answers<v1::WatchResponse>;

    async fn stat(&self, request: Request<v1::StatRequest>) -> Result<Response<v1::StatResponse>, Status> {
        let record = match request.into_inner().of {
            Some(v1::stat_request::Of::Digest(digest)) => self.store.by_digest(&convert::digest(&digest)?),
            Some(v1::stat_request::Of::Object(object)) => {
                self.store.current(&object.kind, &object.namespace, &object.name)
            }
            None => {
                return Err(Status::invalid_argument(
                    "neither a digest nor an object is given",
                ));
            }
        };
        let record = record.ok_or_else(|| Status::not_found("the store has no such artifact"))?;
        Ok(Response::new(v1::StatResponse {
            artifact: Some(convert::artifact(&record)),
        }))
    }

    async fn get_tree(
        &self,
        request: Request<v1::GetTreeRequest>,
    ) -> Result<Response<Self::GetTreeStream>, Status> {
        let request = request.into_inner();
        let root = convert::digest(&request.tree)?;
        let answers = content::tree(self.store.clone(), root, request.path, request.recursive).await?;
        Ok(Response::new(Box::pin(answers)))
    }

    async fn read_blobs(
        &self,
        request: Request<v1::ReadBlobsRequest>,
    ) -> Result<Response<Self::ReadBlobsStream>, Status> {
        let request = request.into_inner();
        let digests: Result<Vec<_>, _> = request
            .digests
            .iter()
            .map(|digest| convert::digest(digest))
            .collect();
        let offset = convert::offset(request.offset)?;
        Ok(Response::new(Box::pin(content::blobs(
            self.store.clone(),
            digests?,
            offset,
        ))))
    }

    async fn download(
        &self,
        request: Request<v1::DownloadRequest>,
    ) -> Result<Response<Self::DownloadStream>, Status> {
        let request = request.into_inner();
        let (digest, offset) = (
            convert::digest(&request.digest)?,
            convert::offset(request.offset)?,
        );
        Ok(Response::new(Box::pin(content::archive(
            self.store.clone(),
            digest,
            offset,
        ))))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let answers = watch::watch(self.store.clone(), request.into_inner(), self.running.clone());
        Ok(Response::new(Box::pin(answers)))
    }
}

#[cfg(test)]
mod tests;
