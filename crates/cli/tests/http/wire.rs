//! Connections that a test writes to and reads from byte by byte.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

pub(crate) const MODERN: &str = "2026-07-28";

/// How much of an answer that is not read fits into the client's end of the connection.
const SMALL_WINDOW: u32 = 4 * 1024;

pub(crate) async fn open(address: &str) -> TcpStream {
    TcpStream::connect(address).await.expect("a connection")
}

/// A connection on which little fits that the client does not read.
pub(crate) async fn open_narrow(address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(SMALL_WINDOW).expect("a window");
    let address = address.parse().expect("an address");
    socket.connect(address).await.expect("a connection")
}

/// A request for `path`.
pub(crate) fn get(path: &str, headers: &[(&str, &str)]) -> String {
    with_headers(
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n"),
        headers,
    )
}

pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let length = body.len().to_string();
    let own = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("content-length", length.as_str()),
    ];
    let start = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n");
    with_headers(start, &[&own, headers].concat()) + body
}

fn with_headers(mut request: String, headers: &[(&str, &str)]) -> String {
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request + "\r\n"
}

/// A call by a modern client, which needs no session.
pub(crate) fn modern_call(path: &str, tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "http-test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta},
    });
    let headers = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    post(path, &headers, &body.to_string())
}

pub(crate) async fn send(stream: &mut (impl AsyncWrite + Unpin), text: &str) {
    stream
        .write_all(text.as_bytes())
        .await
        .expect("the daemon takes it");
}

/// The head of an answer and what came with it.
pub(crate) async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = Vec::new();
    while !text.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut buffer = [0; 1024];
        let read = stream.read(&mut buffer).await.expect("an answer");
        assert!(read > 0, "the connection was closed instead of answered");
        text.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8(text).expect("a head is text")
}

/// One whole request and the status of its answer, whose body must be short.
pub(crate) async fn status(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), text: &str) -> u16 {
    send(stream, text).await;
    let head = head(stream).await;
    head.split(' ')
        .nth(1)
        .expect("a status")
        .parse()
        .expect("a status")
}

/// Whether the daemon closed the connection within `patience`, whatever it sent before.
pub(crate) async fn is_closed(stream: &mut (impl AsyncRead + Unpin), patience: Duration) -> bool {
    let mut buffer = vec![0; 64 * 1024];
    let drained = async {
        // A reset is an end as well.
        while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    };
    timeout(patience, drained).await.is_ok()
}
