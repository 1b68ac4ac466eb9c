//! The real server, with each of its ways to get in:
//! `go install github.com/nats-io/nats-server/v2@v2.15.2`, and its path in `NATS_SERVER`.
//!
//! `operator.conf` and `user.creds` were made with NATS's own libraries (jwt 2.8.2, nkeys 0.4.16); they open nothing.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::*;

/// A server that ends with the test.
struct Server {
    process: Child,
    port: u16,
    _folder: Folder,
}

struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    async fn start(name: &str, configuration: &str) -> Self {
        let program = std::env::var("NATS_SERVER").expect("NATS_SERVER is the path of nats-server");
        let folder = std::env::temp_dir().join(format!("notifier-nats-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("server.conf");
        std::fs::write(&file, configuration).unwrap();
        let port = {
            let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
            free.local_addr().unwrap().port()
        };
        let process = Command::new(program)
            .args(["-a", "127.0.0.1", "-p", &port.to_string(), "-c"])
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            process,
            port,
            _folder: Folder(folder),
        };
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return server;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("nats-server does not listen");
    }

    /// Hears one message as a subscriber, while `publish` runs.
    async fn hear(
        &self,
        login: &str,
        publish: impl Future<Output = Result<(), Error>>,
    ) -> Result<Vec<u8>, Error> {
        let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).await.unwrap());
        let hello = format!("CONNECT {{{login}\"verbose\":false}}\r\nSUB flux.> 1\r\nPING\r\n");
        stream.write_all(hello.as_bytes()).await.unwrap();
        until(&mut stream, "PONG").await;
        publish.await?;
        let line = until(&mut stream, "MSG").await;
        let length: usize = line.rsplit(' ').next().unwrap().parse().unwrap();
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.unwrap();
        Ok(payload)
    }
}

async fn until(stream: &mut BufReader<TcpStream>, word: &str) -> String {
    let read = async {
        loop {
            let mut line = String::new();
            assert!(
                stream.read_line(&mut line).await.unwrap() > 0,
                "the server is gone"
            );
            if line.starts_with(word) {
                return line.trim_end().to_owned();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), read)
        .await
        .expect("it is said")
}

async fn publish(target: &Target) -> Result<(), Error> {
    send(target, &failed()).await.map(drop)
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn passwords_keys_and_permissions_are_the_servers() {
    let configuration = format!(
        "authorization {{ users: [\n\
           {{ user: all, password: pass }}\n\
           {{ user: few, password: pass, permissions: {{ publish: \"other\" }} }}\n\
           {{ nkey: {} }}\n\
         ] }}\nmax_payload: 900\n",
        PUBLIC.trim()
    );
    let server = Server::start("password", &configuration).await;
    let subscriber = r#""user":"all","pass":"pass","#;
    let mut target = to(&format!("nats://127.0.0.1:{}", server.port));
    (target.username, target.password) = ("all".to_owned(), "pass".to_owned());
    let heard = server.hear(subscriber, publish(&target)).await.unwrap();
    assert_eq!(
        serde_json::from_slice::<event::Event>(&heard).unwrap(),
        failed().event
    );

    target.secret.insert("nkey".to_owned(), SEED.into());
    server.hear(subscriber, publish(&target)).await.unwrap();
    target.secret.clear();

    target.password = "wrong".to_owned();
    let error = publish(&target).await.unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    assert!(
        error.to_string().ends_with("nats: Authorization Violation"),
        "{error}"
    );

    (target.username, target.password) = ("few".to_owned(), "pass".to_owned());
    let error = publish(&target).await.unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    assert!(error.to_string().contains("Permissions Violation"), "{error}");

    target.username = "all".to_owned();
    let mut long = failed();
    long.event.message = "x".repeat(1000);
    let error = send(&target, &long).await.unwrap_err().to_string();
    assert!(error.ends_with("the server takes no more than 900"), "{error}");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_user_of_an_operator_gets_in_with_credentials() {
    let server = Server::start("operator", include_str!("operator.conf")).await;
    let mut target = to(&format!("nats://127.0.0.1:{}", server.port));
    let error = publish(&target).await.unwrap_err();
    assert!(
        error.to_string().ends_with("nats: Authorization Violation"),
        "{error}"
    );
    target
        .secret
        .insert("creds".to_owned(), include_bytes!("user.creds").to_vec());
    publish(&target).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_server_with_tls_is_spoken_to_with_tls() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = Folder(std::env::temp_dir().join(format!("notifier-nats-{}-pem", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let (certificate, key) = (folder.0.join("cert.pem"), folder.0.join("key.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let configuration = format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}\n");
    let server = Server::start("tls", &configuration).await;
    for scheme in ["nats", "tls"] {
        let mut target = to(&format!("{scheme}://localhost:{}", server.port));
        assert!(publish(&target).await.unwrap_err().to_string().contains("TLS: "));
        target.tls = Some(Tls {
            ca: Some(certified.cert.pem().into()),
            certificate: None,
        });
        publish(&target).await.unwrap();
    }
}
