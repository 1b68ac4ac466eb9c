//! The artifact service (proto/windlass/artifact/v1) over the store, with health and reflection.
//!
//! Every answer is a stream whose next message is read from disk when the client has room for it, so a slow client
//! holds a few hundred KiB and no thread. Nothing is verified here: clients verify digests, and the store did so at its
//! start.

mod content;
mod convert;
mod stream;
mod watch;

use std::{
    future::Future,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use artifact::{
    Digest,
    store::{ObjectKey, Store},
};
use artifact_proto::v1::{
    self,
    artifact_service_server::{ArtifactService, ArtifactServiceServer},
};
use futures::Stream;
use prost::Message;
use tokio::{net::TcpListener, sync::watch as signal};
use tonic::{Code, Request, Response, Status, service::Routes, transport::Server};
use tonic_health::server::HealthReporter;

pub(super) use self::convert::status;
use super::{
    access::{Access, Admitted},
    arrivals::Arrivals,
    tls::{self, Peer, certificate::Certificate},
};
use crate::metrics::{Call, Served};

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
    /// TLS cannot be set up.
    #[error("failed to set up TLS of the artifact service")]
    SetUpTls(#[source] rustls::Error),
    /// The listener failed.
    #[error("failed to serve the artifact service")]
    Serve(#[source] tonic::transport::Error),
}

/// How the service is reached, and by whom.
pub struct Plane {
    /// Access rules.
    pub access: Access,
    /// Certificate for TLS handshakes; None: plain text.
    pub certificate: Option<Arc<Certificate>>,
}

/// Serves until `shutdown` is ready, and then for a few seconds what is running. Health and reflection are open to all.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    arrivals: Arrivals,
    plane: Plane,
    served: Served,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    // Its end tells watches, which would go on for ever, to end.
    let (stop, running) = signal::channel(());
    let (routes, health) = routes(arrivals, plane.access, served, running).await?;
    let connections = tls::incoming(listener, plane.certificate).map_err(Error::SetUpTls)?;
    let (stopping, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .max_concurrent_streams(MAX_STREAMS)
        .add_routes(routes)
        .serve_with_incoming_shutdown(connections, async {
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

async fn routes(
    arrivals: Arrivals,
    access: Access,
    served: Served,
    running: signal::Receiver<()>,
) -> Result<(Routes, HealthReporter), Error> {
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<ArtifactServiceServer<Service>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(artifact_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(Error::Reflection)?;
    let service = ArtifactServiceServer::new(Service {
        store: arrivals.store().clone(),
        arrivals,
        access,
        served,
        running,
    });
    Ok((
        Routes::new(service).add_service(health).add_service(reflection),
        reporter,
    ))
}

/// The calls. Each turns its request to values that are checked, and leaves the rest to a module of its own.
struct Service {
    store: Arc<Store>,
    arrivals: Arrivals,
    access: Access,
    served: Served,
    /// Closed when the process ends.
    running: signal::Receiver<()>,
}

impl Service {
    /// Returns whether the call may go on.
    async fn admit<T>(&self, request: &Request<T>) -> Result<Admitted, Status> {
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let peer = request.extensions().get::<Peer>();
        let address = peer.map_or(unknown, |peer| peer.0.ip());
        self.access.admit(request.metadata(), address).await
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl ArtifactService for Service {
    type GetTreeStream = Answers<v1::GetTreeResponse>;
    type ReadBlobsStream = Answers<v1::ReadBlobsResponse>;
    type DownloadStream = Answers<v1::DownloadResponse>;
    type WatchStream = Answers<v1::WatchResponse>;

    async fn stat(&self, request: Request<v1::StatRequest>) -> Result<Response<v1::StatResponse>, Status> {
        let mut call = self.served.call("Stat");
        let answer = self.find(request).await;
        call.end(answer.as_ref().map_or_else(Status::code, |_| Code::Ok));
        answer
    }

    async fn get_tree(
        &self,
        request: Request<v1::GetTreeRequest>,
    ) -> Result<Response<Self::GetTreeStream>, Status> {
        let call = self.served.call("GetTree");
        guarded(self.open_tree(request).await, call)
    }

    async fn read_blobs(
        &self,
        request: Request<v1::ReadBlobsRequest>,
    ) -> Result<Response<Self::ReadBlobsStream>, Status> {
        let call = self.served.call("ReadBlobs");
        guarded(self.open_blobs(request).await, call)
    }

    async fn download(
        &self,
        request: Request<v1::DownloadRequest>,
    ) -> Result<Response<Self::DownloadStream>, Status> {
        let call = self.served.call("Download");
        guarded(self.open_archive(request).await, call)
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let mut call = self.served.call("Watch");
        let admitted = self.admit(&request).await;
        let admitted = admitted.inspect_err(|status| call.end(status.code()))?;
        let (store, running) = (self.store.clone(), self.running.clone());
        let answers = watch::watch(store, request.into_inner(), running, admitted);
        Ok(Response::new(Box::pin(stream::counted(answers, call))))
    }
}

/// Answers of each call.
impl Service {
    async fn find(&self, request: Request<v1::StatRequest>) -> Result<Response<v1::StatResponse>, Status> {
        let admitted = self.admit(&request).await?;
        let v1::StatRequest { of, held } = request.into_inner();
        let record = match of {
            Some(v1::stat_request::Of::Digest(digest)) => {
                let digest = convert::digest(&digest)?;
                let holders = self.store.holders_of_archive(&digest);
                let holder = admitted
                    .check_holders(&format!("artifact {digest}"), &holders)
                    .await?;
                // Equal bytes may be another tree for another object.
                holder.and_then(|holder| self.store.held(&holder, &digest))
            }
            Some(v1::stat_request::Of::Object(object)) => {
                let key = ObjectKey::new(&object.kind, &object.namespace, &object.name);
                admitted.check_object(&key).await?;
                match held.as_str() {
                    "" => self.store.current(&object.kind, &object.namespace, &object.name),
                    held => {
                        let digest = convert::digest(held)?;
                        self.arrivals.find(|store| store.held(&key, &digest)).await
                    }
                }
            }
            None => {
                return Err(Status::invalid_argument(
                    "neither a digest nor an object is given",
                ));
            }
        };
        let record = record.ok_or_else(|| Status::not_found("the store has no such artifact"))?;
        Ok(Response::new(v1::StatResponse {
            artifact: Some(convert::artifact(&record, self.store.is_verbatim(&record))),
        }))
    }

    async fn open_tree(&self, request: Request<v1::GetTreeRequest>) -> Opened<v1::GetTreeResponse> {
        let admitted = self.admit(&request).await?;
        let request = request.into_inner();
        let folder = convert::digest(&request.tree)?;
        let root = convert::root(&request.root)?.unwrap_or(folder);
        self.wait_for_tree(&root).await;
        admitted.check_content(&self.store, Some(root), &[folder]).await?;
        let answers = content::tree(self.store.clone(), folder, request.path, request.recursive).await?;
        Ok((Box::pin(answers), admitted))
    }

    async fn open_blobs(&self, request: Request<v1::ReadBlobsRequest>) -> Opened<v1::ReadBlobsResponse> {
        let admitted = self.admit(&request).await?;
        let request = request.into_inner();
        let digests: Result<Vec<_>, _> = request
            .digests
            .iter()
            .map(|digest| convert::digest(digest))
            .collect();
        let (digests, offset) = (digests?, convert::offset(request.offset)?);
        let root = convert::root(&request.root)?;
        if let Some(root) = &root {
            self.wait_for_tree(root).await;
        }
        admitted.check_content(&self.store, root, &digests).await?;
        let answers = content::blobs(self.store.clone(), digests, offset);
        Ok((Box::pin(answers), admitted))
    }

    async fn open_archive(&self, request: Request<v1::DownloadRequest>) -> Opened<v1::DownloadResponse> {
        let admitted = self.admit(&request).await?;
        let request = request.into_inner();
        let (digest, offset) = (
            convert::digest(&request.digest)?,
            convert::offset(request.offset)?,
        );
        let holders = |store: &Store| Some(store.holders_of_archive(&digest)).filter(|all| !all.is_empty());
        let holders = self.arrivals.find(holders).await.unwrap_or_default();
        admitted
            .check_holders(&format!("artifact {digest}"), &holders)
            .await?;
        let answers = content::archive(self.store.clone(), digest, offset);
        Ok((Box::pin(answers), admitted))
    }
}

impl Service {
    /// A call that another replica began may go on here before the artifact has come.
    async fn wait_for_tree(&self, root: &Digest) {
        let is_there = |store: &Store| (!store.holders_of_tree(root).is_empty()).then_some(());
        self.arrivals.find(is_there).await;
    }
}

/// Answers, and the caller that may have them.
type Opened<T> = Result<(Answers<T>, Admitted), Status>;

#[allow(clippy::result_large_err, reason = "tonic's own type")]
fn guarded<T: Message + Send + 'static>(
    opened: Opened<T>,
    mut call: Call,
) -> Result<Response<Answers<T>>, Status> {
    let (answers, admitted) = opened.inspect_err(|status| call.end(status.code()))?;
    let answers = stream::guarded(answers, admitted.into_permit(), stream::PATIENCE);
    Ok(Response::new(Box::pin(stream::counted(answers, call))))
}

#[cfg(test)]
mod tests;
