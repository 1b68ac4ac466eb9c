//! A controller as a process of its own: from flags to exit code, against a real API server.
//!
//! The process is this test binary, started again with one test that is ignored otherwise.

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::Parser as _;
use controller_kit::flags::{ClientFlags, EndpointFlags, LeaderElectionFlags, LogFlags, WatchFlags};
use controller_kit::{App, Program};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use testkit::ControlPlane;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

/// Example of a controller's `flags.rs`.
#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    client: ClientFlags,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    leader: LeaderElectionFlags,
    #[command(flatten)]
    watch: WatchFlags,
    #[command(flatten)]
    endpoints: EndpointFlags,
}

#[test]
#[ignore = "it is the process that the other test starts"]
fn as_a_process() {
    let arguments = std::env::var("KIT_ARGUMENTS").expect("the other test sets it");
    let flags = Flags::parse_from(std::iter::once("controller").chain(arguments.split_whitespace()));
    let app = App {
        name: "kit-controller",
        client: flags.client,
        log: flags.log,
        leader: flags.leader,
        watch: flags.watch,
        endpoints: flags.endpoints,
        not_ready_until: &["store"],
    };
    let program = Program::new(app, |context| async move {
        context.client.apiserver_version().await?;
        context.ready.set("store", true);
        context.token.cancelled().await;
        tracing::info!("drained");
        Ok(())
    });
    assert_eq!(program.run(), ExitCode::SUCCESS);
}

async fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

#[tokio::test]
async fn a_process_starts_leads_serves_and_ends_with_its_lease_released() -> anyhow::Result<()> {
    let control_plane = ControlPlane::shared().await?;
    let namespace = control_plane.namespace("process").await?;
    let (metrics, health) = (testkit::ports::free_port()?, testkit::ports::free_port()?);
    let arguments = format!(
        "--metrics-addr=127.0.0.1:{metrics} --health-addr=127.0.0.1:{health} --enable-leader-election \
         --leader-election-retry-period=200ms --log-level=info"
    );
    let mut process = Command::new(std::env::current_exe()?)
        .args(["--exact", "as_a_process", "--ignored", "--nocapture"])
        .env("KIT_ARGUMENTS", arguments)
        .env("KUBECONFIG", control_plane.kubeconfig_path())
        .env("RUNTIME_NAMESPACE", &namespace)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut log = BufReader::new(process.stderr.take().expect("it is piped")).lines();

    let ready = async || {
        get(health, "/readyz")
            .await
            .is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    };
    let waiting = async {
        while !ready().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await?;
    let exposed = get(metrics, "/metrics").await.expect("it is served");
    for part in [
        "leader_election_master_status{name=\"kit-controller-leader-election\"} 1",
        "rest_client_requests_total{code=\"200\",host=\"",
        "process_resident_memory_bytes ",
    ] {
        assert!(exposed.contains(part), "{part}\nis not in\n{exposed}");
    }
    let leases: Api<Lease> = Api::namespaced(control_plane.client(), &namespace);
    let holder = async || {
        let lease = leases.get("kit-controller-leader-election").await?;
        anyhow::Ok(
            lease
                .spec
                .and_then(|spec| spec.holder_identity)
                .unwrap_or_default(),
        )
    };
    assert_ne!(holder().await?, "");

    let id = process.id().expect("it runs").to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .await?
            .success()
    );
    let status = tokio::time::timeout(Duration::from_secs(20), process.wait()).await??;
    assert!(status.success(), "{status}");
    assert_eq!(holder().await?, "", "the lease is released");

    let mut messages = Vec::new();
    while let Some(line) = log.next_line().await? {
        let line: serde_json::Value = serde_json::from_str(&line)?;
        messages.push(line["msg"].as_str().unwrap_or_default().to_owned());
    }
    let expected = [
        "attempting to acquire leader lease",
        "successfully acquired lease",
        "starting",
        "shutting down",
        "drained",
        "released the leader lease",
    ];
    assert_eq!(messages, expected);
    Ok(())
}
