//! The shape of every REST answer.

use axum::Json;
use axum::extract::{OriginalUri, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use policy::{Code, Refusal};
use serde::Serialize;
use serde_json::{Map, Value};
use ulid::Ulid;

tokio::task_local! {
    static REQUEST_ID: String;
}

/// A successful answer: `{"success": true, "data": …, "request_id": …}`.
#[derive(Debug)]
pub(crate) struct Data<T>(pub T);

/// A failure: `{"success": false, "error": {"code", "message", "hint"}, "request_id": …}`.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<String>,
    /// Boxed because it is rare and large, and errors are returned through every handler.
    details: Option<Box<Map<String, Value>>>,
}

pub(crate) type ApiResult<T> = Result<Data<T>, ApiError>;

#[derive(Serialize)]
struct DataBody<T> {
    success: bool,
    data: T,
    request_id: String,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    success: bool,
    error: ErrorMembers<'a>,
    request_id: String,
}

#[derive(Serialize)]
struct ErrorMembers<'a> {
    code: &'static str,
    message: &'a str,
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Map<String, Value>>,
}

/// Gives every request an id, which the answer names.
pub(crate) async fn with_request_id(request: Request, next: Next) -> Response {
    REQUEST_ID
        .scope(Ulid::generate().to_string(), next.run(request))
        .await
}

pub(crate) async fn no_such_route(method: Method, OriginalUri(uri): OriginalUri) -> ApiError {
    let message = format!("there is nothing at {method} {}", uri.path());
    ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
}

/// The id of the request at hand; a fresh one for answers given before a request got its own.
pub(crate) fn request_id() -> String {
    REQUEST_ID
        .try_with(Clone::clone)
        .unwrap_or_else(|_| Ulid::generate().to_string())
}

// === impl Data ===

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self) -> Response {
        Json(DataBody {
            success: true,
            data: self.0,
            request_id: request_id(),
        })
        .into_response()
    }
}

// === impl ApiError ===

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            hint: None,
            details: None,
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BAD_REQUEST", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.code {
            Code::IntentMismatch | Code::ServerMismatch | Code::ToolQuarantined => {
                StatusCode::FORBIDDEN
            }
            Code::MissingIntent
            | Code::MissingOperationType
            | Code::InvalidOperationType
            | Code::InvalidSensitivity
            | Code::ReasonTooLong
            | Code::InvalidToolName
            | Code::InvalidArgs => StatusCode::BAD_REQUEST,
            Code::UnknownServer | Code::UnknownTool => StatusCode::NOT_FOUND,
            Code::ServerUnavailable | Code::ActivityUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Code::UpstreamError => StatusCode::BAD_GATEWAY,
        };
        Self {
            details: (!refusal.details.is_empty()).then(|| Box::new(refusal.details)),
            ..Self::new(status, refusal.code.as_str(), refusal.message)
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            success: false,
            error: ErrorMembers {
                code: self.code,
                message: &self.message,
                hint: self.hint.as_deref(),
                details: self.details.as_deref(),
            },
            request_id: request_id(),
        };
        (self.status, Json(body)).into_response()
    }
}
