//! Answers of a standby replica at the addresses of the leader: 503, try again.
//!
//! A Service sends requests to every replica that is ready, and readiness does not wait for leadership. Who posts gets 503 and
//! a time to come again, rather than a refused connection.

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, RETRY_AFTER};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::admin;

/// Seconds after which a request may find another leader.
const PAUSE: &str = "5";

/// Answers at the addresses until the token is cancelled; the addresses are free once all tasks have ended.
pub(crate) async fn serve(
    addresses: &[SocketAddr],
    token: &CancellationToken,
) -> Result<JoinSet<()>, admin::Error> {
    let mut serving = JoinSet::new();
    for address in addresses {
        let listener = admin::bind(*address).await?;
        let stopped = token.clone().cancelled_owned();
        // A Service balances connections: who keeps his would come again to us.
        let routes = Router::new().fallback(|| async {
            (
                StatusCode::SERVICE_UNAVAILABLE,
                [(RETRY_AFTER, PAUSE), (CONNECTION, "close")],
            )
        });
        serving.spawn(async move {
            tokio::select! {
                _ = axum::serve(listener, routes) => {}
                () = stopped => {}
            }
        });
    }
    Ok(serving)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_posts_is_asked_to_come_again_and_the_address_is_free_afterwards() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = free.local_addr().expect("it has an address");
        drop(free);
        let token = CancellationToken::new();
        let mut serving = serve(&[address], &token).await.expect("it listens");
        let posted = reqwest::Client::builder().no_proxy().build().expect("a client");
        let answer = posted
            .post(format!("http://{address}/"))
            .body("{}")
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status().as_u16(), 503);
        assert_eq!(answer.headers()[RETRY_AFTER], PAUSE);
        assert_eq!(answer.headers()[CONNECTION], "close");
        token.cancel();
        while serving.join_next().await.is_some() {}
        admin::bind(address).await.expect("the address is free");
    }
}
