//! rmcp as the client of a daemon.

use rmcp::service::{RoleClient, RunningService, ServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::session::http_client;

/// An rmcp client without a handler of its own.
pub type Client = RunningService<RoleClient, ()>;

/// Connects rmcp to an MCP endpoint.
pub async fn connect(url: &str) -> Client {
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let transport = StreamableHttpClientTransport::with_client(http_client(), config);
    ().serve(transport)
        .await
        .expect("rmcp completes the handshake")
}
