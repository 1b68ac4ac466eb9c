//! An artifact service over a real store, in small chunks, that can be made to fail once per injected fault.

use std::{
    collections::{BTreeMap, VecDeque},
    io::Read as _,
    sync::{Arc, Mutex},
};

use artifact_proto::v1::{
    self,
    artifact_service_server::{ArtifactService, ArtifactServiceServer},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::{
    Digest,
    store::{ObjectKey, Store},
    tree::EntryKind,
};

const CHUNK: usize = 16 * 1024;

/// Fault in the next answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    FlipBlobByte,
    AppendToBlob,
    CutBlob,
    WrongOffset,
    BreakAfterOneChunk,
    RenameEntry,
    OtherDirectory,
    Unavailable,
}

pub(super) struct FaultyService {
    pub(super) endpoint: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    store: Store,
    faults: Mutex<VecDeque<Fault>>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    offsets: Mutex<Vec<i64>>,
}

struct Server(Arc<State>);

impl FaultyService {
    pub(super) async fn start(store: Store) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            store,
            faults: Mutex::default(),
            calls: Mutex::default(),
            offsets: Mutex::default(),
        });
        let service = ArtifactServiceServer::new(Server(state.clone()));
        let server = tonic::transport::Server::builder().add_service(service);
        let task = tokio::spawn(async move {
            server
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
                .unwrap();
        });
        Self {
            endpoint,
            state,
            task,
        }
    }

    pub(super) fn inject(&self, fault: Fault) {
        self.state.faults.lock().unwrap().push_back(fault);
    }

    pub(super) fn calls(&self) -> BTreeMap<&'static str, usize> {
        self.state.calls.lock().unwrap().clone()
    }

    /// Offsets of the ReadBlobs requests.
    pub(super) fn offsets(&self) -> Vec<i64> {
        self.state.offsets.lock().unwrap().clone()
    }
}

impl Drop for FaultyService {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn begin(&self, call: &'static str) -> Result<Option<Fault>, Status> {
        *self.calls.lock().unwrap().entry(call).or_default() += 1;
        match self.faults.lock().unwrap().pop_front() {
            Some(Fault::Unavailable) => Err(Status::unavailable("restarting")),
            fault => Ok(fault),
        }
    }

    fn directory(&self, digest: &Digest) -> Result<v1::Directory, Status> {
        let directory = self
            .store
            .directory(digest)
            .map_err(|error| Status::not_found(error.to_string()))?;
        let entries = directory.entries().iter().map(|entry| v1::Entry {
            kind: match entry.kind {
                EntryKind::File => v1::entry::Kind::File,
                EntryKind::Executable => v1::entry::Kind::Executable,
                EntryKind::Directory => v1::entry::Kind::Directory,
            }
            .into(),
            name: entry.name.clone(),
            digest: entry.digest.to_string(),
            size: entry.size as i64,
        });
        Ok(v1::Directory {
            digest: digest.to_string(),
            entries: entries.collect(),
        })
    }

    fn blob(&self, digest: &str, fault: Option<Fault>) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.store
            .read_blob(&digest.parse().unwrap(), 0)
            .unwrap()
            .read_to_end(&mut bytes)
            .unwrap();
        match fault {
            Some(Fault::FlipBlobByte) => bytes[0] ^= 1,
            Some(Fault::AppendToBlob) => bytes.push(0),
            Some(Fault::CutBlob) => bytes.truncate(bytes.len() - 1),
            _ => {}
        }
        bytes
    }
}

type Answers<T> = tokio_stream::Iter<std::vec::IntoIter<Result<T, Status>>>;

#[tonic::async_trait]
impl ArtifactService for Server {
    type GetTreeStream = Answers<v1::GetTreeResponse>;
    type ReadBlobsStream = Answers<v1::ReadBlobsResponse>;
    type DownloadStream = Answers<v1::DownloadResponse>;
    type WatchStream = Answers<v1::WatchResponse>;

    async fn stat(&self, request: Request<v1::StatRequest>) -> Result<Response<v1::StatResponse>, Status> {
        self.0.begin("Stat")?;
        let v1::StatRequest { of, held } = request.into_inner();
        let Some(v1::stat_request::Of::Object(object)) = of else {
            unreachable!()
        };
        let key = ObjectKey::new(&object.kind, &object.namespace, &object.name);
        let record = self.0.store.held(&key, &held.parse().unwrap());
        let record = record.ok_or(Status::not_found("unknown"))?;
        let artifact = v1::Artifact {
            digest: held,
            tree: record.tree.to_string(),
            ..v1::Artifact::default()
        };
        Ok(Response::new(v1::StatResponse {
            artifact: Some(artifact),
        }))
    }

    async fn get_tree(
        &self,
        request: Request<v1::GetTreeRequest>,
    ) -> Result<Response<Self::GetTreeStream>, Status> {
        let fault = self.0.begin("GetTree")?;
        let request = request.into_inner();
        let mut answers = Vec::new();
        let mut waiting = VecDeque::from([request.tree.parse().unwrap()]);
        while let Some(digest) = waiting.pop_front() {
            let mut directory = self.0.directory(&digest)?;
            if fault == Some(Fault::RenameEntry) {
                directory.entries[0].name += "x";
            }
            if fault == Some(Fault::OtherDirectory) {
                directory = v1::Directory {
                    digest: Digest::from_content(b"").to_string(),
                    entries: Vec::new(),
                };
            }
            let below = directory
                .entries
                .iter()
                .filter(|entry| entry.kind() == v1::entry::Kind::Directory);
            waiting.extend(
                below
                    .filter(|_| request.recursive)
                    .map(|entry| entry.digest.parse::<Digest>().unwrap()),
            );
            answers.push(Ok(v1::GetTreeResponse {
                directories: vec![directory],
            }));
        }
        Ok(Response::new(tokio_stream::iter(answers)))
    }

    async fn read_blobs(
        &self,
        request: Request<v1::ReadBlobsRequest>,
    ) -> Result<Response<Self::ReadBlobsStream>, Status> {
        let request = request.into_inner();
        self.0.offsets.lock().unwrap().push(request.offset);
        let fault = self.0.begin("ReadBlobs")?;
        let mut answers = Vec::new();
        let mut start = request.offset as usize;
        for digest in request.digests {
            let blob = self.0.blob(&digest, fault);
            loop {
                let end = blob.len().min(start + CHUNK);
                let offset = start as i64 + i64::from(fault == Some(Fault::WrongOffset));
                let data = blob[start..end].to_vec().into();
                let last = end == blob.len();
                answers.push(Ok(v1::ReadBlobsResponse {
                    digest: digest.clone(),
                    offset,
                    data,
                    last,
                }));
                start = end;
                if last {
                    break;
                }
            }
            start = 0;
        }
        if fault == Some(Fault::BreakAfterOneChunk) {
            answers.truncate(1);
            answers.push(Err(Status::unavailable("connection lost")));
        }
        Ok(Response::new(tokio_stream::iter(answers)))
    }

    async fn download(
        &self,
        _: Request<v1::DownloadRequest>,
    ) -> Result<Response<Self::DownloadStream>, Status> {
        Err(Status::unimplemented("the client does not use it"))
    }

    async fn watch(&self, _: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("the client does not use it"))
    }
}
