//! What is answered when there is no answer.

use access_review::Error as ReviewError;
use axum::Json;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// Status code of HTTP.
    pub code: u16,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Problem {
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self {
            code: code.as_u16(),
            message: message.into(),
        }
    }
}

impl From<ReviewError> for Problem {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Token(_) => Self::new(StatusCode::UNAUTHORIZED, error.to_string()),
            error => {
                tracing::warn!(
                    error = format!("{:#}", anyhow::Error::from(error)),
                    "rights cannot be asked for"
                );
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the API server does not say what you may see; try again",
                )
            }
        }
    }
}

impl From<ledger::store::Error> for Problem {
    fn from(error: ledger::store::Error) -> Self {
        let error = format!("{:#}", anyhow::Error::from(error));
        tracing::warn!(error, "the ledger does not answer");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the ledger does not answer; try again",
        )
    }
}

impl From<fleet::query::Error> for Problem {
    fn from(error: fleet::query::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl From<fleet::running::Error> for Problem {
    fn from(error: fleet::running::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let headers = response.headers_mut();
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
