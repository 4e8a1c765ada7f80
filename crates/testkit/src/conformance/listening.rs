//! The fixture on a port of its own, inside the process of the test or as a program.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::eras::Eras;
use super::{http, two_endpoints};

/// A fixture that listens; it ends when dropped.
#[derive(Debug)]
pub struct Fixture {
    url: String,
    server: JoinHandle<std::io::Result<()>>,
}

impl Fixture {
    /// Streamable HTTP, on this port of the loopback interface, or on a free one if it is 0.
    pub async fn http(port: u16, eras: Eras) -> std::io::Result<Self> {
        Self::listen(port, "/mcp", http::router(eras)).await
    }

    /// HTTP with SSE, as 2024-11-05 has it.
    pub async fn sse(port: u16, eras: Eras) -> std::io::Result<Self> {
        Self::listen(port, "/sse", two_endpoints::router(eras)).await
    }

    async fn listen(port: u16, path: &str, router: Router) -> std::io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).await?;
        let url = format!("http://{}{path}", listener.local_addr()?);
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, server })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The entry for `mcpServers`.
    pub fn config(&self) -> Value {
        json!({"url": self.url})
    }

    /// Serves until the server fails, which it does not of itself.
    pub async fn run(mut self) -> anyhow::Result<()> {
        Ok((&mut self.server).await??)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.server.abort();
    }
}
