//! How Pods reach the API server, Services, and what listens on this machine; and how they are reached.
//!
//! Each Pod has a network namespace of its own, in which nothing but loopback is. Services have their cluster IPs there, so that
//! ports are what they are in a cluster; `pod-network` passes connections to sockets of this node, which knows the Pods. Other Pods are in
//! a namespace beside it: they listen on the same ports as the Pod itself does.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use super::plan::{self, Plan, Port};

/// Where the API server is for Pods: the first address of the range of Services.
pub(super) const API_ADDRESS: (&str, u16) = ("10.0.0.1", 443);

/// The ways between the Pods of a node and the rest.
pub(super) struct Network {
    client: Client,
    /// Sockets of what all Pods can reach.
    folder: PathBuf,
    api_server: SocketAddr,
    /// Of this machine, under the same address in Pods.
    reachable: Vec<SocketAddr>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// By address.
    pods: HashMap<String, Endpoint>,
    /// Sockets that are listened on already.
    listening: Vec<PathBuf>,
}

/// A Pod, for Services.
#[derive(Debug, Clone)]
struct Endpoint {
    namespace: String,
    labels: BTreeMap<String, String>,
    ports: Vec<Port>,
    /// Its sockets.
    folder: PathBuf,
    ready: bool,
}

/// Parts of a Pod's network namespace.
pub(super) struct Ways {
    /// For `pod-network`.
    pub table: String,
    /// Addresses of its loopback beside 127.0.0.1.
    pub addresses: Vec<String>,
    /// `/etc/hosts`.
    pub hosts: String,
    /// The address of the Pod itself.
    pub own: String,
    /// For the `pod-network` that is other Pods.
    pub pods: String,
    /// Their addresses.
    pub pod_addresses: Vec<String>,
}

impl Network {
    pub(super) fn new(
        client: Client,
        folder: PathBuf,
        api_server: SocketAddr,
        reachable: Vec<SocketAddr>,
    ) -> Self {
        Self {
            client,
            folder,
            api_server,
            reachable,
            shared: Arc::default(),
        }
    }

    /// The ways of a Pod that is about to start. Services that are made later are not among them, and neither are those that the
    /// Pod is behind: it listens on the same ports.
    pub(super) async fn ways(&self, pod: &Pod, plan: &Plan, pod_folder: &Path) -> Result<Ways> {
        let mut ways = Ways {
            table: String::new(),
            addresses: Vec::new(),
            hosts: "127.0.0.1 localhost\n".to_owned(),
            own: plan::address(pod),
            pods: String::new(),
            pod_addresses: Vec::new(),
        };
        let (address, port) = API_ADDRESS;
        let socket = self.listen("api", Target::Host(self.api_server))?;
        ways.addresses.push(address.to_owned());
        writeln!(ways.table, "out {address}:{port} {}", socket.display())?;
        for address in &self.reachable {
            let socket = self.listen(&address.port().to_string(), Target::Host(*address))?;
            writeln!(ways.table, "out {address} {}", socket.display())?;
        }
        self.add_services(pod, &mut ways).await?;
        self.add_pods(pod, &mut ways)?;
        for port in plan
            .ports
            .iter()
            .map(|port| port.number)
            .chain(plan.ready.iter().map(|probe| probe.port))
        {
            let line = format!("in {} 127.0.0.1:{port}\n", socket_of(pod_folder, port).display());
            if !ways.table.contains(&line) {
                ways.table.push_str(&line);
            }
        }
        Ok(ways)
    }

    async fn add_services(&self, pod: &Pod, ways: &mut Ways) -> Result<()> {
        let services: Api<Service> = Api::all(self.client.clone());
        let services = services
            .list(&ListParams::default())
            .await
            .context("failed to list Services")?;
        for service in services {
            let (name, namespace) = (service.name_any(), service.namespace().unwrap_or_default());
            let spec = service.spec.unwrap_or_default();
            let (Some(address), Some(selector)) = (spec.cluster_ip, spec.selector) else {
                continue;
            };
            let own = pod.namespace() == Some(namespace.clone()) && selects(&selector, pod.labels());
            if own || address == "None" {
                continue;
            }
            for port in spec.ports.unwrap_or_default() {
                let target = Target::Service {
                    namespace: namespace.clone(),
                    selector: selector.clone(),
                    port: port.target_port.unwrap_or(IntOrString::Int(port.port)),
                };
                let socket = self.listen(&format!("{namespace}.{name}.{}", port.port), target)?;
                writeln!(ways.table, "out {address}:{} {}", port.port, socket.display())?;
            }
            let full = format!("{name}.{namespace}.svc.cluster.local");
            // The C library looks names up as they are written, with the dot of a full name too.
            writeln!(
                ways.hosts,
                "{address} {full} {full}. {name}.{namespace}.svc {name}.{namespace}"
            )?;
            ways.addresses.push(address);
        }
        Ok(())
    }

    /// Pods that run already are reached at their addresses, as the leader is by the replica that takes its place.
    fn add_pods(&self, pod: &Pod, ways: &mut Ways) -> Result<()> {
        for (address, other) in &lock(&self.shared).pods {
            if *address == plan::address(pod) {
                continue;
            }
            ways.pod_addresses.push(address.clone());
            for port in &other.ports {
                let socket = socket_of(&other.folder, port.number);
                writeln!(ways.pods, "out {address}:{} {}", port.number, socket.display())?;
            }
        }
        Ok(())
    }

    /// A socket that leads to the target.
    fn listen(&self, name: &str, target: Target) -> Result<PathBuf> {
        let socket = self.folder.join(name);
        let mut shared = lock(&self.shared);
        if shared.listening.contains(&socket) {
            return Ok(socket);
        }
        let listener = UnixListener::bind(&socket);
        let listener = listener.with_context(|| format!("failed to listen on {}", socket.display()))?;
        shared.listening.push(socket.clone());
        let pods = Arc::clone(&self.shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (target, pods) = (target.clone(), Arc::clone(&pods));
                tokio::spawn(async move { pass_on(stream, &target, &pods).await });
            }
        });
        Ok(socket)
    }

    /// Makes a Pod known to Services, once it is ready.
    pub(super) fn add(&self, pod: &Pod, ports: Vec<Port>, folder: PathBuf) {
        let endpoint = Endpoint {
            namespace: pod.namespace().unwrap_or_default(),
            labels: pod.labels().clone(),
            ports,
            folder,
            ready: false,
        };
        lock(&self.shared).pods.insert(plan::address(pod), endpoint);
    }

    pub(super) fn set_ready(&self, pod: &Pod, ready: bool) {
        if let Some(pod) = lock(&self.shared).pods.get_mut(&plan::address(pod)) {
            pod.ready = ready;
        }
    }

    pub(super) fn remove(&self, pod: &Pod) {
        lock(&self.shared).pods.remove(&plan::address(pod));
    }
}

fn selects(selector: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Where a Pod's port is reached from this machine.
pub(super) fn socket_of(pod_folder: &Path, port: u16) -> PathBuf {
    pod_folder.join(port.to_string())
}

#[derive(Debug, Clone)]
enum Target {
    Host(SocketAddr),
    Service {
        namespace: String,
        selector: BTreeMap<String, String>,
        port: IntOrString,
    },
}

/// A Service without a ready Pod closes the connection.
async fn pass_on(stream: UnixStream, target: &Target, shared: &Mutex<Shared>) {
    match target {
        Target::Host(address) => {
            if let Ok(other) = TcpStream::connect(address).await {
                join(stream, other).await;
            }
        }
        Target::Service {
            namespace,
            selector,
            port,
        } => {
            let socket = lock(shared).pods.values().find_map(|pod| {
                let chosen = pod.ready && pod.namespace == *namespace && selects(selector, &pod.labels);
                let port = chosen.then(|| plan::port(port, &pod.ports).ok())??;
                Some(socket_of(&pod.folder, port))
            });
            let Some(socket) = socket else { return };
            if let Ok(other) = UnixStream::connect(socket).await {
                join(stream, other).await;
            }
        }
    }
}

async fn join(mut one: UnixStream, mut other: impl AsyncRead + AsyncWrite + Unpin) {
    _ = tokio::io::copy_bidirectional(&mut one, &mut other).await;
    _ = one.shutdown().await;
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
