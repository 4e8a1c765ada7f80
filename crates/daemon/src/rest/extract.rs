//! What handlers take from a request, with a refusal in the envelope where it cannot be taken.

use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::Body as _;
use serde::de::DeserializeOwned;

use super::ApiError;

/// The one parameter in the path.
#[derive(Debug)]
pub(super) struct Segment(pub String);

/// The parameters in the query.
#[derive(Debug)]
pub(super) struct Parameters<T>(pub T);

/// The body as text. It is parsed by those who know what to say about it.
#[derive(Debug)]
pub(super) struct BodyText(pub String);

/// Turns away a body that does not say it is JSON. A page of another site can make a browser send
/// forms and plain text, but not JSON, without asking first.
pub(crate) async fn require_json(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() || is_json(request.headers()) {
        return next.run(request).await;
    }
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UNSUPPORTED_MEDIA_TYPE",
        "the body does not say that it is JSON",
    )
    .hint("send it with `Content-Type: application/json`")
    .into_response()
}

/// `application/json` or a kind of it, such as `application/merge-patch+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let essence = value.to_str().unwrap_or_default().split(';').next();
    let essence = essence.unwrap_or_default().trim().to_ascii_lowercase();
    essence
        .strip_prefix("application/")
        .is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
}

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(segment) =
            path.map_err(|error: PathRejection| ApiError::bad_request(error.body_text()))?;
        Ok(Self(segment))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let Query(parameters) =
            query.map_err(|error: QueryRejection| ApiError::bad_request(error.body_text()))?;
        Ok(Self(parameters))
    }
}

impl<S: Send + Sync> FromRequest<S> for BodyText {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error: BytesRejection| {
            ApiError::new(error.status(), "BAD_REQUEST", error.body_text())
        })?;
        String::from_utf8(bytes.into())
            .map(Self)
            .map_err(|_| ApiError::bad_request("the body is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_json() {
        for (value, is) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("text/plain", false),
            ("text/plain; application/json", false),
            ("application/x-www-form-urlencoded", false),
            ("multipart/form-data; boundary=application/json", false),
            ("application/jsonp", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            assert!(!is_json(&headers));
            headers.append(header::CONTENT_TYPE, value.parse().unwrap());
            assert_eq!(is_json(&headers), is, "{value}");
            headers.append(header::CONTENT_TYPE, "application/json".parse().unwrap());
            assert!(!is_json(&headers), "two of them");
        }
    }
}
