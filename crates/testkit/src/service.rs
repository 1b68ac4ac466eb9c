//! A Kubernetes Service as its clients see it: one address, each connection to one of the backends that are there.
//!
//! A few lines of TCP instead of kube-proxy, which needs a node. Backends take turns; one that refuses is passed over.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A Service on a free port of 127.0.0.1, gone when dropped.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    backends: Backends,
    task: JoinHandle<()>,
}

type Backends = Arc<Mutex<Vec<SocketAddr>>>;

impl Service {
    /// Starts without backends.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("failed to listen for the service")?;
        let address = listener.local_addr()?;
        let (backends, turn) = (Backends::default(), AtomicUsize::new(0));
        let known = backends.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut backends = lock(&known).clone();
                if !backends.is_empty() {
                    let turn = turn.fetch_add(1, Ordering::Relaxed) % backends.len();
                    backends.rotate_left(turn);
                }
                // A client without a backend is shown out, as by kube-proxy.
                tokio::spawn(pass(client, backends));
            }
        });
        Ok(Self {
            address,
            backends,
            task,
        })
    }

    /// Passes new connections on to these addresses.
    pub fn set_backends(&self, backends: Vec<SocketAddr>) {
        *lock(&self.backends) = backends;
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut client: TcpStream, backends: Vec<SocketAddr>) {
    for backend in backends {
        if let Ok(mut server) = TcpStream::connect(backend).await {
            tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
            return;
        }
    }
}

fn lock(backends: &Backends) -> MutexGuard<'_, Vec<SocketAddr>> {
    backends.lock().unwrap_or_else(PoisonError::into_inner)
}
