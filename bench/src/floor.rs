//! The floor: the least that a proxy in front of several servers can do for a call. It reads the
//! envelope and the tool's name, sends the arguments on under an id of its own, and hands the
//! result back. No session, no checks, no deadline, no cancellation.
//!
//! What mcpproxy costs above this is the price of what it does.

mod pipe;
mod web;

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use self::pipe::Pipe;
use self::web::Web;
use crate::http;

/// The names of the two upstreams, here and in the daemon's config.
pub(crate) const PIPE: &str = "pipe";
pub(crate) const WEB: &str = "web";

struct Floor {
    pipe: Pipe,
    web: Web,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// An answer of an upstream.
#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// Serves as [`serve`] does, with one worker thread per core.
#[tokio::main]
pub(crate) async fn run(web_url: &str) -> Result<()> {
    serve(web_url).await
}

/// Serves as [`serve`] does, on one thread.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run_on_one_thread(web_url: &str) -> Result<()> {
    serve(web_url).await
}

/// Serves a free port of the loopback address, which is printed, until stdin ends.
async fn serve(web_url: &str) -> Result<()> {
    let floor = Arc::new(Floor {
        pipe: Pipe::start()?,
        web: Web::new(web_url)?,
    });
    http::serve(move |body: Bytes| {
        let floor = Arc::clone(&floor);
        async move { floor.message(&body).await }
    })
    .await
}

impl Floor {
    async fn message(&self, message: &[u8]) -> Result<Option<Bytes>> {
        let envelope: Envelope<'_> = serde_json::from_slice(message)?;
        let Some(id) = envelope.id else {
            return Ok(None);
        };
        if envelope.method != "tools/call" {
            return Ok(Some(encode(id, "{}")));
        }
        let params = envelope.params.context("no params")?;
        let Params { name, arguments } = serde_json::from_str(params.get())?;
        let (server, tool) = name.split_once(':').context("no server in the name")?;
        let result = match server {
            PIPE => self.pipe.call(tool, arguments).await?,
            WEB => self.web.call(tool, arguments).await?,
            _ => bail!("no such server"),
        };
        Ok(Some(encode(id, result.get())))
    }
}

fn encode(id: &RawValue, result: &str) -> Bytes {
    let id = id.get();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
}

/// A call as it goes to an upstream.
fn encode_call(id: u64, tool: &str, arguments: &RawValue) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#,
        arguments = arguments.get()
    )
    .into_bytes()
}
