//! The console over gRPC, for programs that stream (proto/windlass/console/v1).
//!
//! Each call asks the API in the same process, with the caller's token: what it may see, its limits and its answers are those of the
//! API ([`Asker`]).

mod convert;
mod events;

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response as Answer;
use console_proto::v1::console_service_server::{ConsoleService, ConsoleServiceServer};
use console_proto::v1::watch_response::Event;
use console_proto::v1::{Delivery, ListDeliveriesRequest, WatchRequest, WatchResponse};
use console_server::Asker;
use futures::{FutureExt as _, StreamExt as _};
use http_connections::Limits;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, Sender};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status};
use tower::ServiceExt as _;

use crate::convert::Parameters;
use crate::events::Events;

/// A stream takes a call; clients resume one that is cut after an hour.
const CONNECTIONS: Limits = Limits {
    connections: 1024,
    of_one_address: 1024,
    header_bytes: 64 << 10,
    header_timeout: Duration::from_secs(20),
    lifetime: Duration::from_secs(3600),
};
/// Calls of a connection at a time.
const MAX_CALLS: u32 = 64;
/// Bytes of a request.
const MAX_REQUEST: usize = 64 << 10;
/// Bytes of an answer of the API; they are rows of ours.
const MAX_ANSWER: usize = 64 << 20;
/// Messages that wait for a client.
const MAX_WAITING: usize = 64;
/// How long a client may take for a message.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rows of a page of the API.
const PAGE: &str = "500";

/// Serves until the token is cancelled.
///
/// # Errors
/// When the descriptors that are compiled in cannot be read.
pub async fn serve(
    listener: TcpListener,
    asker: Asker,
    ending: CancellationToken,
) -> Result<(), tonic_reflection::server::Error> {
    let service = ConsoleServiceServer::new(Service(asker)).max_decoding_message_size(MAX_REQUEST);
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<ConsoleServiceServer<Service>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(console_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let routes = Routes::new(service)
        .add_service(health)
        .add_service(reflection)
        .prepare()
        .into_axum_router();
    http_connections::serve_http2(
        listener,
        MAX_CALLS,
        CONNECTIONS,
        ending,
        move |request, peer, _place| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            let answer = routes.clone().oneshot(request);
            answer.map(|answer| answer.unwrap_or_else(|never| match never {}))
        },
    )
    .await;
    Ok(())
}

struct Service(Asker);

type Stream<T> = ReceiverStream<Result<T, Status>>;

#[tonic::async_trait]
impl ConsoleService for Service {
    type WatchStream = Stream<WatchResponse>;
    type ListDeliveriesStream = Stream<Delivery>;

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let caller = Caller::of(&self.0, &request)?;
        let WatchRequest { filter, since } = request.into_inner();
        let parameters = Parameters::of(filter.unwrap_or_default());
        // Asked before the stream begins: what cannot be asked is the answer to the call.
        let begin = match since {
            Some(since) => Begin::Changes(caller.changes(&parameters, since).await?),
            None => Begin::Rows(caller.page("objects", &parameters, None).await?),
        };
        Ok(Response::new(stream(async move |client| {
            follow(&caller, &parameters, begin, client).await
        })))
    }

    async fn list_deliveries(
        &self,
        request: Request<ListDeliveriesRequest>,
    ) -> Result<Response<Self::ListDeliveriesStream>, Status> {
        let caller = Caller::of(&self.0, &request)?;
        let parameters = Parameters::of_deliveries(request.into_inner());
        let mut page = caller.page("deliveries", &parameters, None).await?;
        Ok(Response::new(stream(async move |client| {
            loop {
                for row in page.rows() {
                    client.send(convert::delivery(row)).await?;
                }
                let Some(next) = page.next() else {
                    return Ok(());
                };
                page = caller.page("deliveries", &parameters, Some(next)).await?;
            }
        })))
    }
}

/// The stream of what is sent to its client, by a task that ends when the client leaves.
fn stream<T: Send + 'static, F>(send: impl FnOnce(Client<T>) -> F + Send + 'static) -> Stream<T>
where
    F: Future<Output = Result<(), Status>> + Send,
{
    let (messages, received) = mpsc::channel(MAX_WAITING);
    tokio::spawn(async move {
        let client = Client(messages.clone());
        let sent = tokio::select! {
            sent = send(client) => sent,
            () = messages.closed() => return,
        };
        if let Err(status) = sent {
            // Who does not read does not learn it either.
            let _ = tokio::time::timeout(PATIENCE, messages.send(Err(status))).await;
        }
    });
    ReceiverStream::new(received)
}

/// The other end of a stream.
struct Client<T>(Sender<Result<T, Status>>);

impl<T> Client<T> {
    async fn send(&self, message: T) -> Result<(), Status> {
        match tokio::time::timeout(PATIENCE, self.0.send(Ok(message))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Status::resource_exhausted("you do not read what is sent; resume")),
        }
    }
}

/// What the API answered first.
enum Begin {
    Rows(Page),
    Changes(Events),
}

/// Sends rows and changes, for ever.
async fn follow(
    caller: &Caller,
    parameters: &Parameters,
    begin: Begin,
    client: Client<WatchResponse>,
) -> Result<(), Status> {
    let mut events = match begin {
        Begin::Changes(events) => events,
        Begin::Rows(mut page) => {
            // What changes while further pages are read is sent after them.
            let change = page.change();
            loop {
                for row in page.rows() {
                    client.send(convert::changed(row, 0)).await?;
                }
                let Some(next) = page.next() else {
                    break;
                };
                page = caller.page("objects", parameters, Some(next)).await?;
            }
            client.send(convert::told(Event::Synced, change)).await?;
            caller.changes(parameters, change).await?
        }
    };
    while let Some(event) = events.next().await? {
        match event.name.as_str() {
            "rows" => {
                for message in convert::changes(&event) {
                    client.send(message).await?;
                }
            }
            "reset" => {
                client.send(convert::told(Event::Reset, event.id)).await?;
                return Ok(());
            }
            _ => return Err(problem(&event.data)),
        }
    }
    Err(Status::unavailable("the stream was ended; resume"))
}

/// Who asks.
struct Caller {
    asker: Asker,
    token: Option<HeaderValue>,
    peer: SocketAddr,
}

impl Caller {
    fn of<T>(asker: &Asker, request: &Request<T>) -> Result<Self, Status> {
        let token = request.metadata().get(AUTHORIZATION.as_str());
        let token = token.map(|token| HeaderValue::from_bytes(token.as_encoded_bytes()));
        let wrong = |_| Status::unauthenticated("the token cannot be read");
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let ConnectInfo(peer) = *peer.ok_or_else(|| Status::internal("nobody knows who asks"))?;
        let token = token.transpose().map_err(wrong)?;
        // Without one the API might let them in as everyone is: browsers are, programs are not.
        if token.is_none() {
            return Err(Status::unauthenticated(
                "send a Kubernetes token: authorization: Bearer TOKEN (kubectl create token NAME)",
            ));
        }
        Ok(Self {
            asker: asker.clone(),
            token,
            peer,
        })
    }

    async fn ask(&self, address: &str) -> Result<Answer, Status> {
        let answer = self.asker.get(address, self.token.as_ref(), self.peer).await;
        if answer.status() == StatusCode::OK {
            return Ok(answer);
        }
        let code = answer.status();
        let text = to_bytes(answer.into_body(), MAX_ANSWER).await.unwrap_or_default();
        let told: Value = serde_json::from_slice(&text).unwrap_or_default();
        let message = told["message"].as_str().unwrap_or("there is no answer");
        Err(Status::new(code_of(code), message))
    }

    async fn page(&self, list: &str, parameters: &Parameters, after: Option<&str>) -> Result<Page, Status> {
        let more = [("limit", PAGE), ("after", after.unwrap_or_default())];
        let answer = self.ask(&parameters.address(list, &more)).await?;
        let lost = |_| Status::internal("the answer cannot be read");
        let bytes = to_bytes(answer.into_body(), MAX_ANSWER).await.map_err(lost)?;
        let read = serde_json::from_slice(&bytes).map_err(|_| Status::internal("the answer cannot be read"));
        read.map(Page)
    }

    async fn changes(&self, parameters: &Parameters, since: u64) -> Result<Events, Status> {
        let since = since.to_string();
        let answer = self
            .ask(&parameters.address("watch", &[("since", &since)]))
            .await?;
        Ok(Events::new(answer.into_body().into_data_stream().boxed()))
    }
}

/// A page of a list.
struct Page(Value);

impl Page {
    fn rows(&self) -> impl Iterator<Item = &Value> {
        self.0["items"].as_array().into_iter().flatten()
    }

    fn next(&self) -> Option<&str> {
        self.0["next"].as_str()
    }

    fn change(&self) -> u64 {
        self.0["change"].as_u64().unwrap_or_default()
    }
}

/// A problem that ends a stream of the API.
fn problem(data: &Value) -> Status {
    let code = data["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = code.and_then(|code| StatusCode::from_u16(code).ok());
    let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Status::new(code_of(code), data["message"].as_str().unwrap_or_default())
}

fn code_of(status: StatusCode) -> Code {
    match status {
        StatusCode::BAD_REQUEST => Code::InvalidArgument,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        _ => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use axum::{Json, Router};
    use console_proto::v1::console_service_client::ConsoleServiceClient;
    use serde_json::json;
    use tonic::transport::Endpoint;

    use super::*;

    #[tokio::test]
    async fn rows_come_before_changes() {
        let api = Router::new()
            .route(
                "/api/v1/objects",
                get(async || Json(json!({"items": [{"name": "a"}], "change": 7}))),
            )
            .route("/api/v1/watch", get(async || "event: reset\nid: 9\ndata: {}\n\n"));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let ending = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, Asker::new(api), ending.clone()));
        let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        let mut client = ConsoleServiceClient::new(channel);
        let mut request = Request::new(WatchRequest::default());
        request
            .metadata_mut()
            .insert("authorization", "Bearer x".parse().unwrap());
        let mut stream = client.watch(request).await.unwrap().into_inner();
        let mut told = Vec::new();
        while let Some(message) = stream.message().await.unwrap() {
            told.push((message.event(), message.change));
        }
        assert_eq!(told, [(Event::Changed, 0), (Event::Synced, 7), (Event::Reset, 9)]);
        ending.cancel();
        serving.await.unwrap().unwrap();
    }
}
