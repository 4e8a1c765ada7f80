//! The smallest HTTP server that can carry MCP: every POST is a message, its answer a JSON body.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// Answers messages with `handler` on a free port of the loopback address, and prints where. Ends
/// when stdin does, so that it cannot outlive whoever started it.
pub(crate) async fn serve<H, F>(handler: H) -> Result<()>
where
    H: Fn(Bytes) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Option<Bytes>>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "listens on http://{address}/mcp")?;
    tokio::select! {
        served = accept(listener, Arc::new(handler)) => served,
        () = stdin_ended() => Ok(()),
    }
}

async fn accept<H, F>(listener: TcpListener, handler: Arc<H>) -> Result<()>
where
    H: Fn(Bytes) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Option<Bytes>>> + Send + 'static,
{
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let handler = Arc::clone(&handler);
        let service = service_fn(move |request| {
            let handler = Arc::clone(&handler);
            async move { Ok::<_, Infallible>(respond(&*handler, request).await) }
        });
        // A connection that breaks is the business of whoever is at its other end.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn respond<H, F>(handler: &H, request: Request<Incoming>) -> Response<Full<Bytes>>
where
    H: Fn(Bytes) -> F,
    F: Future<Output = Result<Option<Bytes>>>,
{
    if request.method() != Method::POST {
        return empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Ok(body) = request.into_body().collect().await else {
        return empty(StatusCode::BAD_REQUEST);
    };
    match handler(body.to_bytes()).await {
        Ok(Some(answer)) => {
            let mut response = Response::new(Full::new(answer));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            response
        }
        Ok(None) => empty(StatusCode::ACCEPTED),
        Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

async fn stdin_ended() {
    let mut stdin = tokio::io::stdin();
    let mut ignored = [0; 64];
    while stdin.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}
