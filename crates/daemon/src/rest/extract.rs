//! What handlers take from a request, with a refusal in the envelope where it cannot be taken.

use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use bytes::Bytes;
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
