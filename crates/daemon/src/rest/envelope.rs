//! The shape of every REST answer.

use axum::Json;
use axum::body::HttpBody as _;
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use policy::{Code, Refusal};
use serde::Serialize;
use serde_json::{Map, Value};
use ulid::Ulid;
use utoipa::ToSchema;

/// When a daemon that is stopping may be back, in seconds.
const RETRY_WHEN_STOPPED: u64 = 5;

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
    /// Seconds.
    retry_after: Option<u64>,
}

pub(crate) type ApiResult<T> = Result<Data<T>, ApiError>;

/// What every successful answer is wrapped in.
#[derive(Serialize, ToSchema)]
pub(crate) struct Answer<T> {
    /// Always true.
    success: bool,
    data: T,
    /// Names this request in the daemon's log and in the activity log.
    request_id: String,
}

/// The answer to a request that failed.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// Always false.
    success: bool,
    error: ErrorMembers,
    /// Names this request in the daemon's log and in the activity log.
    request_id: String,
}

#[derive(Serialize, ToSchema)]
struct ErrorMembers {
    /// What scripts go by.
    code: &'static str,
    /// What happened and why.
    message: String,
    /// What to do about it.
    hint: Option<String>,
    /// What else is known, by the kind of error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<Box<Map<String, Value>>>,
}

/// Gives every request an id, which the answer names.
pub(crate) async fn with_request_id(request: Request, next: Next) -> Response {
    REQUEST_ID
        .scope(Ulid::generate().to_string(), next.run(request))
        .await
}

/// Refuses a body that says it is larger than `limit` before any of it is read.
pub(crate) async fn within_limit(
    State(limit): State<BodyLimit>,
    request: Request,
    next: Next,
) -> Response {
    let bytes = request.body().size_hint().lower();
    if bytes > limit.0 as u64 {
        mcp::server::discard(request.into_body()).await;
        return too_large(Some(bytes), limit.0).into_response();
    }
    next.run(request).await
}

/// How many bytes the body of a request may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimit(pub usize);

pub(super) fn too_large(bytes: Option<u64>, limit: usize) -> ApiError {
    let size = bytes.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
    let message = format!("the request{size} is larger than the {limit} bytes that are accepted");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "REQUEST_TOO_LARGE", message)
        .hint("send less, or raise limits.request_bytes in the config")
}

pub(crate) async fn no_such_route(method: Method, OriginalUri(uri): OriginalUri) -> ApiError {
    let message = format!("there is nothing at {method} {}", uri.path());
    ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
}

pub(crate) async fn no_such_method(method: Method, OriginalUri(uri): OriginalUri) -> ApiError {
    let message = format!("{} does not take {method}", uri.path());
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "METHOD_NOT_ALLOWED",
        message,
    )
    .hint("the header Allow names the methods it takes")
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
        Json(Answer {
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
            retry_after: None,
        }
    }

    /// The daemon is on its way out, and takes nothing new.
    pub(crate) fn stopping() -> Self {
        let error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "STOPPING",
            "mcpproxy is stopping and takes no new requests",
        );
        error
            .retry_after(RETRY_WHEN_STOPPED)
            .hint("try again when it is back")
    }

    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BAD_REQUEST", message)
    }

    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
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
            Code::ServerUnavailable | Code::ActivityUnavailable | Code::Interrupted => {
                StatusCode::SERVICE_UNAVAILABLE
            }
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
                message: self.message,
                hint: self.hint,
                details: self.details,
            },
            request_id: request_id(),
        };
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}
