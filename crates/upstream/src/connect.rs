//! From a config entry to a client that has been greeted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use config::{HttpProtocol, Limits, ResolvedTransport, ServerConfig};
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp::client::{Client, ConnectError, Era, Events, Hello, HttpEndpoint, HttpTransport};
use platform::{ChildGroup, Endings, Watchdog};
use redact::SharedRedactor;
use tokio::task::JoinHandle;

use crate::client::ALL_CAPABILITIES;
use crate::era::EraMemory;
use crate::failure::{ConnectFailure, Exit};
use crate::listing::budget;
use crate::process::CommandLine;
use crate::starts::Starts;
use crate::stderr::StderrLog;
use crate::stderr_excerpt::excerpt;

/// How long a server may take to say hello. `npx` may have to fetch it first.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long it may take to answer the question for its era, which is put to it once. Hardly any server
/// leaves it unanswered, and many take seconds to start.
const PROBE_TIMEOUT: Duration = Duration::from_secs(4);

/// How many lines of stderr are quoted when a child ends by itself.
const QUOTED_LINES: usize = 3;

/// Among how many lines of stderr those that are quoted are chosen.
const SEARCHED_LINES: usize = 50;

/// How long a process may take to end whose pipe has closed.
const EXIT: Duration = Duration::from_secs(1);

/// How long the rest of a dead child's stderr is waited for. A process that it left behind may hold
/// it open.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What starting a connection needs from the process around it.
#[derive(Debug, Clone)]
pub struct LaunchContext {
    /// Starts stdio children, and ends them if the daemon dies.
    pub watchdog: Watchdog,
    /// Where upstream logs go; none keeps them in memory only.
    pub log_dir: Option<std::path::PathBuf>,
    /// What `${env:NAME}` in the config refers to.
    pub environment: fn(&str) -> Option<String>,
    pub eras: EraMemory,
    /// Knows the secrets of all servers: one may write or quote those of another.
    pub redactor: SharedRedactor,
}

/// How a server is greeted on a further connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Greeting<'a> {
    pub era: Era,
    /// What the client can do for whom the connection is.
    pub capabilities: &'a mcp::RawValue,
    /// What that client calls itself, where it is a single one.
    pub client: Option<&'a str>,
}

/// A connection that is up, and the process behind it if there is one.
#[derive(Debug)]
pub(crate) struct Connected {
    pub client: Client,
    pub process: Option<Process>,
}

/// A child process and what it writes to stderr. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Process {
    child: ChildGroup,
    log: StderrLog,
    /// How many lines there were in the log when it was started.
    written_before: u64,
    stderr: JoinHandle<()>,
}

/// What is needed to connect to one upstream, once or several times.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub server: ServerConfig,
    pub launch_context: LaunchContext,
    pub log: StderrLog,
    pub limits: Limits,
    pub endings: Endings,
    pub starts: Starts,
    /// The starts for single clients that failed.
    pub failed_starts: Starts,
    /// The server has not survived the question for its era; it is taken for a legacy one until
    /// that turns out to be wrong.
    pub probe_is_fatal: Arc<AtomicBool>,
}

// === impl Connector ===

impl Connector {
    /// Connects in the era that the server speaks. It is asked for it once; later it is taken at
    /// its word until that no longer holds.
    pub(crate) async fn connect<E: Events>(
        &self,
        events: &Arc<E>,
    ) -> Result<Connected, ConnectFailure> {
        let eras = &self.launch_context.eras;
        let suspected = self.probe_is_fatal.load(Ordering::Relaxed);
        let suspected = suspected.then_some(Era::Legacy);
        let known = eras.recall(&self.server).or(suspected);
        let mut outcome = self.attempt(self.hello(known), events).await;
        if let (Some(era), Err(failure)) = (known, &outcome) {
            let again = failure.may_be_due_to_the_era();
            if again || matches!(failure, ConnectFailure::HandshakeTimeout(_)) {
                tracing::info!(server = %self.server.name, ?era, "the era of the server is no longer known");
                eras.forget(&self.server);
                self.probe_is_fatal.store(false, Ordering::Relaxed);
            }
            if again {
                outcome = self.attempt(self.hello(None), events).await;
            }
        }
        if let Err(ConnectFailure::Handshake(ConnectError::Probe(_))) = &outcome {
            // Some legacy servers do not survive a question that they do not know. It is not put to
            // them again, whatever becomes of this attempt: each one is a start of the program.
            self.probe_is_fatal.store(true, Ordering::Relaxed);
            outcome = self.attempt(self.hello(Some(Era::Legacy)), events).await;
        }
        let connected = outcome?;
        eras.keep(&self.server, connected.client.next_era());
        Ok(connected)
    }

    /// Connects once more, on behalf of one client or of several.
    pub(crate) async fn connect_for<E: Events>(
        &self,
        greeting: Greeting<'_>,
        events: &Arc<E>,
    ) -> Result<Connected, ConnectFailure> {
        let mut hello = self.hello(Some(greeting.era));
        hello.capabilities = greeting.capabilities.to_owned();
        if let Some(client) = greeting.client.filter(|name| !name.is_empty()) {
            hello.name = format!("mcpproxy (for {client})");
        }
        let connector = Self {
            starts: self.failed_starts.clone(),
            ..self.clone()
        };
        let connected = connector.attempt(hello, events).await?;
        self.failed_starts.forgive();
        Ok(connected)
    }

    fn hello(&self, era: Option<Era>) -> Hello {
        let mut hello = Hello::new("mcpproxy", env!("CARGO_PKG_VERSION"));
        hello.era = era;
        hello.capabilities = ALL_CAPABILITIES.clone();
        hello.probe_timeout = PROBE_TIMEOUT;
        hello.listing = budget(&self.limits);
        hello
    }

    async fn attempt<E: Events>(
        &self,
        hello: Hello,
        events: &Arc<E>,
    ) -> Result<Connected, ConnectFailure> {
        let events = Arc::clone(events);
        match self.server.resolve(&self.launch_context.environment)? {
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
                self.start(line, hello, events).await
            }
            ResolvedTransport::Http {
                url,
                headers,
                protocol,
            } => {
                let url = url::Url::parse(url.expose()).map_err(ConnectFailure::Url)?;
                let mut endpoint = HttpEndpoint::new(url);
                endpoint.headers = header_map(&headers)?;
                endpoint.body_limit = self.limits.upstream_message_bytes;
                endpoint.transport = match protocol {
                    HttpProtocol::Streamable => HttpTransport::Streamable,
                    HttpProtocol::Sse => HttpTransport::Sse,
                };
                let hello = Client::connect_http(endpoint, hello, events);
                let client = within_handshake_timeout(hello).await?;
                Ok(Connected {
                    client,
                    process: None,
                })
            }
        }
    }

    async fn start<E: Events>(
        &self,
        line: CommandLine,
        hello: Hello,
        events: Arc<E>,
    ) -> Result<Connected, ConnectFailure> {
        let written_before = self.log.count();
        self.starts.admit()?;
        let started = line.start(&self.launch_context.watchdog, &self.endings);
        let (child, pipes) = started.await?;
        let mut process = Process {
            child,
            log: self.log.clone(),
            written_before,
            stderr: tokio::spawn(self.log.clone().collect(pipes.stderr)),
        };
        let limit = self.limits.upstream_message_bytes;
        let hello = Client::connect_lines(pipes.stdout, pipes.stdin, limit, hello, events);
        let hello = within_handshake_timeout(hello);
        tokio::pin!(hello);
        let outcome = tokio::select! {
            biased;
            outcome = &mut hello => outcome,
            exit = process.exited() => {
                // What it wrote last may still be in the pipe, unless another process holds it.
                match tokio::time::timeout(LAST_WORDS, &mut hello).await {
                    Ok(outcome) => outcome.map_err(|failure| failure.or_exit(exit)),
                    Err(_) => Err(ConnectFailure::Exited(exit)),
                }
            }
        };
        match outcome {
            Ok(client) => Ok(Connected {
                client,
                process: Some(process),
            }),
            // The pipe closed because the process is gone: its last words say why.
            Err(failure) if failure.is_end_of_connection() => match process.exited_soon().await {
                Some(exit) => Err(failure.or_exit(exit)),
                None => Err(failure),
            },
            Err(failure) => Err(failure),
        }
    }
}

// === impl Process ===

impl Process {
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the process has ended by itself. Cancel safe. The end of its output is not
    /// enough: a process that it started may hold the pipe.
    pub(crate) async fn exited(&mut self) -> Exit {
        let Ok(status) = self.child.wait().await else {
            // It cannot be waited for, so its end cannot be noticed this way.
            return std::future::pending().await;
        };
        // It must not be asked again once it has told its end.
        if !self.stderr.is_finished() {
            let _ = tokio::time::timeout(LAST_WORDS, &mut self.stderr).await;
        }
        Exit {
            status,
            stderr: excerpt(
                &self.log.tail_since(self.written_before, SEARCHED_LINES),
                QUOTED_LINES,
            ),
        }
    }

    /// How the process ended, if it does so in a moment: its pipe has closed.
    pub(crate) async fn exited_soon(&mut self) -> Option<Exit> {
        tokio::time::timeout(EXIT, self.exited()).await.ok()
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
