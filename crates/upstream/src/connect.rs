//! From a config entry to a client that has been greeted.

use std::sync::Arc;
use std::time::Duration;

use config::{HttpProtocol, ResolvedTransport, ServerConfig};
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp::RawValue;
use mcp::client::{
    Client, ConnectError, Era, Events, Hello, HttpEndpoint, HttpTransport, RequestError,
    same_origin_redirects,
};
use mcp::lines::DEFAULT_LINE_LIMIT;
use redact::SharedRedactor;

use crate::era::EraMemory;
use crate::failure::ConnectFailure;
use crate::process::{ChildGroup, CommandLine, Guardian};
use crate::stderr::StderrLog;

/// How long a server may take to say hello. `npx` may have to fetch it first.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long it may take to answer the question for its era, which is put to it once. Hardly any server
/// leaves it unanswered, and many take seconds to start.
const PROBE_TIMEOUT: Duration = Duration::from_secs(4);
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
    pub eras: EraMemory,
    /// Knows the secrets of all servers: one may write or quote those of another.
    pub redactor: SharedRedactor,
}

/// A connection that is up, and the process behind it if there is one.
#[derive(Debug)]
pub(crate) struct Connected {
    pub client: Client,
    pub child: Option<ChildGroup>,
}

/// What is needed to connect to one upstream, once or several times.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub server: ServerConfig,
    pub surroundings: Surroundings,
    pub log: StderrLog,
}

// === impl Connector ===

impl Connector {
    /// Connects in the era that the server speaks. It is asked for it once; later it is taken at
    /// its word until that no longer holds.
    pub(crate) async fn connect<E: Events>(
        &self,
        events: &Arc<E>,
    ) -> Result<Connected, ConnectFailure> {
        let eras = &self.surroundings.eras;
        let known = eras.recall(&self.server);
        let mut outcome = self.attempt(hello(known), events).await;
        if let (Some(era), Err(failure)) = (known, &outcome) {
            let again = failure.may_be_due_to_the_era();
            if again || matches!(failure, ConnectFailure::HandshakeTimeout(_)) {
                tracing::info!(server = %self.server.name, ?era, "the era of the server is no longer known");
                eras.forget(&self.server);
            }
            if again {
                outcome = self.attempt(hello(None), events).await;
            }
        }
        if let Err(ConnectFailure::Handshake(ConnectError::Probe(_))) = &outcome {
            // Some legacy servers do not survive a question that they do not know.
            outcome = self.attempt(hello(Some(Era::Legacy)), events).await;
        }
        let connected = outcome?;
        eras.keep(&self.server, connected.client.next_era());
        Ok(connected)
    }

    /// Connects once more to a server that is known to be a legacy one, on behalf of a client with
    /// these capabilities.
    pub(crate) async fn connect_for<E: Events>(
        &self,
        capabilities: &RawValue,
        events: &Arc<E>,
    ) -> Result<Connected, ConnectFailure> {
        let mut hello = hello(Some(Era::Legacy));
        hello.capabilities = capabilities.to_owned();
        self.attempt(hello, events).await
    }

    async fn attempt<E: Events>(
        &self,
        hello: Hello,
        events: &Arc<E>,
    ) -> Result<Connected, ConnectFailure> {
        let events = Arc::clone(events);
        match self.server.resolve(&self.surroundings.environment)? {
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
                self.start(&line, hello, events).await
            }
            ResolvedTransport::Http {
                url,
                headers,
                protocol,
            } => {
                let url = reqwest::Url::parse(url.expose()).map_err(ConnectFailure::Url)?;
                let mut endpoint = HttpEndpoint::new(url, http_client()?);
                endpoint.headers = header_map(&headers)?;
                endpoint.transport = match protocol {
                    HttpProtocol::Streamable => HttpTransport::Streamable,
                    HttpProtocol::Sse => HttpTransport::Sse,
                };
                let hello = Client::connect_http(endpoint, hello, events);
                let client = within_handshake_timeout(hello).await?;
                Ok(Connected {
                    client,
                    child: None,
                })
            }
        }
    }

    async fn start<E: Events>(
        &self,
        line: &CommandLine,
        hello: Hello,
        events: Arc<E>,
    ) -> Result<Connected, ConnectFailure> {
        let (mut child, pipes) = line.spawn(self.surroundings.guardian.as_ref())?;
        let written_before = self.log.count();
        let collecting = tokio::spawn(self.log.clone().collect(pipes.stderr));
        let hello =
            Client::connect_lines(pipes.stdout, pipes.stdin, DEFAULT_LINE_LIMIT, hello, events);
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
                let stderr = self.log.tail_since(written_before, QUOTED_LINES);
                Err(ConnectFailure::Exited { status, stderr })
            }
            Err(failure) => {
                child.stop().await;
                Err(failure)
            }
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

fn hello(era: Option<Era>) -> Hello {
    let mut hello = Hello::new("mcpproxy", env!("CARGO_PKG_VERSION"));
    hello.era = era;
    hello.probe_timeout = PROBE_TIMEOUT;
    hello
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
