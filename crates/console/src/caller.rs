//! Who calls: the owner of the bearer token, as the API server knows them.

use std::net::SocketAddr;
use std::sync::Arc;

use access_review::Caller;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use crate::problem::Problem;
use crate::serve::Console;
use crate::sight::Sight;

/// Longer tokens are not looked at, in bytes.
const MAX_TOKEN: usize = 16 << 10;

/// A caller whose token was accepted, and what they see.
pub struct Signed {
    pub sight: Sight,
    token: Arc<str>,
}

impl Signed {
    /// Whether the token is still accepted; answers are kept for a minute.
    pub async fn is_still_accepted(&self) -> bool {
        self.sight.console.reviews.caller(&self.token).await.is_ok()
    }

    /// Who it is.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.sight.caller
    }
}

impl FromRequestParts<Console> for Signed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Problem> {
        let header = parts.headers.get(AUTHORIZATION);
        let token = header.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let missing = || {
            let message = "send a Kubernetes token: Authorization: Bearer TOKEN (kubectl create token NAME)";
            Problem::new(StatusCode::UNAUTHORIZED, message)
        };
        let token = token
            .map(str::trim)
            .filter(|token| !token.is_empty() && token.len() <= MAX_TOKEN);
        let token = token.ok_or_else(missing)?;
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let address = peer
            .map(|ConnectInfo(peer)| peer.ip().to_string())
            .unwrap_or_default();
        let busy = || {
            let message = "too many tokens of your address are being looked at; try again";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, message)
        };
        let looking = console.unknown.begin(&address).ok_or_else(busy)?;
        let caller = console.reviews.caller(token).await?;
        drop(looking);
        Ok(Self {
            sight: Sight {
                console: console.clone(),
                caller,
            },
            token: token.into(),
        })
    }
}
