//! From a config entry to a client that has been greeted.

use std::sync::Arc;
use std::time::Duration;

use config::{HttpProtocol, ResolvedTransport, ServerConfig};
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp::client::{
    Client, ConnectError, Events, Hello, HttpEndpoint, Origin, RequestError, same_origin_redirects,
};
use mcp::lines::DEFAULT_LINE_LIMIT;
use mcp::{ErrorObject, Notification, RawValue, Request};
use tokio::sync::Notify;

use crate::failure::ConnectFailure;
use crate::process::{ChildGroup, CommandLine, Guardian};
use crate::stderr::StderrLog;

/// How long a server may take to say hello. `npx` may have to fetch it first.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_mins(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How many lines of stderr are quoted when a child ends before it said hello.
const QUOTED_LINES: usize = 3;

/// What connecting needs from its surroundings.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Wraps stdio children; none in tests of this crate.
    pub guardian: Option<Guardian>,
    /// Where upstream logs go; none keeps them in memory only.
    pub log_dir: Option<std::path::PathBuf>,
    /// What `${env:NAME}` in the config refers to.
    pub environment: fn(&str) -> Option<String>,
    /// Whether upstreams are only known and none is started, as for a command that edits the
    /// config while no daemon runs.
    pub dormant: bool,
}

/// A connection that is up, and the process behind it if there is one.
#[derive(Debug)]
pub(crate) struct Connected {
    pub client: Client,
    pub child: Option<ChildGroup>,
}

/// Hears what a server says on its own, and passes on that its tools changed.
#[derive(Debug)]
pub(crate) struct Listener {
    pub tools_changed: Arc<Notify>,
}

pub(crate) async fn connect(
    server: &ServerConfig,
    surroundings: &Surroundings,
    log: &StderrLog,
    listener: Listener,
) -> Result<Connected, ConnectFailure> {
    match server.resolve(&surroundings.environment)? {
        ResolvedTransport::Stdio {
            command,
            args,
            env,
            working_dir,
        } => {
            let line = CommandLine {
                command,
                arguments: args.iter().map(|arg| arg.expose().to_owned()).collect(),
                environment: env
                    .into_iter()
                    .map(|(name, value)| (name, value.expose().to_owned()))
                    .collect(),
                working_dir,
            };
            connect_stdio(&line, surroundings.guardian.as_ref(), log, listener).await
        }
        ResolvedTransport::Http {
            protocol: HttpProtocol::Sse,
            ..
        } => Err(ConnectFailure::UnsupportedTransport),
        ResolvedTransport::Http { url, headers, .. } => {
            let url = reqwest::Url::parse(url.expose()).map_err(ConnectFailure::Url)?;
            let mut endpoint = HttpEndpoint::new(url, http_client()?);
            endpoint.headers = header_map(&headers)?;
            let hello = Client::connect_http(endpoint, hello(), listener);
            let client = within_handshake_timeout(hello).await?;
            Ok(Connected {
                client,
                child: None,
            })
        }
    }
}

async fn connect_stdio(
    line: &CommandLine,
    guardian: Option<&Guardian>,
    log: &StderrLog,
    listener: Listener,
) -> Result<Connected, ConnectFailure> {
    let (mut child, pipes) = line.spawn(guardian)?;
    let written_before = log.count();
    let collecting = tokio::spawn(log.clone().collect(pipes.stderr));
    let hello = Client::connect_lines(
        pipes.stdout,
        pipes.stdin,
        DEFAULT_LINE_LIMIT,
        hello(),
        listener,
    );
    match within_handshake_timeout(hello).await {
        Ok(client) => Ok(Connected {
            client,
            child: Some(child),
        }),
        Err(ConnectFailure::Handshake(
            error @ ConnectError::Initialize(RequestError::Closed(_)),
        )) => {
            // The pipe closed because the process is gone: its last words say why.
            let ended = tokio::time::timeout(Duration::from_secs(2), child.wait()).await;
            let Ok(Ok(status)) = ended else {
                return Err(ConnectFailure::Handshake(error));
            };
            let _ = tokio::time::timeout(Duration::from_secs(1), collecting).await;
            let stderr = log.tail_since(written_before, QUOTED_LINES);
            Err(ConnectFailure::Exited { status, stderr })
        }
        Err(failure) => {
            child.stop().await;
            Err(failure)
        }
    }
}

async fn within_handshake_timeout(
    hello: impl Future<Output = Result<Client, ConnectError>>,
) -> Result<Client, ConnectFailure> {
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, hello).await {
        Ok(outcome) => outcome.map_err(ConnectFailure::Handshake),
        Err(_) => Err(ConnectFailure::HandshakeTimeout(HANDSHAKE_TIMEOUT)),
    }
}

fn hello() -> Hello {
    Hello::new("mcpproxy", env!("CARGO_PKG_VERSION"))
}

fn http_client() -> Result<reqwest::Client, ConnectFailure> {
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(same_origin_redirects())
        .build()
        .map_err(ConnectFailure::HttpSetup)
}

fn header_map(
    headers: &std::collections::BTreeMap<String, config::Secret>,
) -> Result<HeaderMap, ConnectFailure> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let invalid = |source| ConnectFailure::Header {
            name: name.clone(),
            source,
        };
        let key = HeaderName::try_from(name.as_str()).map_err(|error| invalid(error.into()))?;
        let mut value =
            HeaderValue::try_from(value.expose()).map_err(|error| invalid(error.into()))?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

// === impl Listener ===

impl Events for Listener {
    fn notification(&self, notification: Notification, _origin: Origin) {
        if notification.method == "notifications/tools/list_changed" {
            self.tools_changed.notify_one();
        }
    }

    async fn request(
        &self,
        request: Request,
        _origin: Origin,
    ) -> Result<Box<RawValue>, ErrorObject> {
        // We declared no capability, so a server has nothing to ask for.
        Err(ErrorObject::method_not_found(&request.method))
    }
}
