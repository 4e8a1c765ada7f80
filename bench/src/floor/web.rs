//! An upstream of the floor over HTTP.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::value::RawValue;

use super::{Answer, encode_call};

pub(super) struct Web {
    ids: AtomicU64,
    url: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Web {
    pub(super) fn new(url: &str) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Self {
            ids: AtomicU64::new(1),
            url: url.parse()?,
            client: Client::builder(TokioExecutor::new()).build(connector),
        })
    }

    pub(super) async fn call(&self, tool: &str, arguments: &RawValue) -> Result<Box<RawValue>> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let request = Request::post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(encode_call(id, tool, arguments)))?;
        let response = self.client.request(request).await?;
        ensure!(response.status().is_success(), "{}", response.status());
        let body = response.into_body().collect().await?.to_bytes();
        let answer: Answer<'_> = serde_json::from_slice(&body)?;
        ensure!(answer.id == id, "the answer is to another call");
        Ok(answer.result.to_owned())
    }
}
