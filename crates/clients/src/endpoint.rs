//! How a client reaches mcpproxy.

/// The environment variable that holds the API key where a client can look it up.
pub const KEY_VARIABLE: &str = "MCPPROXY_API_KEY";

/// What is written into a client's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// The running daemon.
    Http {
        url: String,
        /// Whether clients must show the API key.
        needs_key: bool,
    },
    /// A program that the client starts, which finds the daemon itself.
    Stdio { command: String, args: Vec<String> },
}
