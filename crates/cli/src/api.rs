//! How commands reach the product: through the daemon's socket. Those that only read files use the
//! same routes in this very process where no daemon runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use activity::sqlite::OpenError;
use activity::{Activity, StoreError};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use config::{Config, ServerConfig, Settings};
use daemon::{ActivityLogError, DataDir, DataDirError, Engine, Pins};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use mcp::RawValue;
use platform::Watchdog;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tower::ServiceExt;

use crate::background;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

/// How long servers may take to connect until a command goes on without them.
const SETTLE: Duration = Duration::from_secs(30);

/// How long a command goes on without a word to the user.
const SILENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// How long a daemon may take to say that it is there; a busy one has other things to do.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) enum Api {
    Daemon {
        socket: PathBuf,
    },
    /// For what is recorded, or for a server that is only looked at.
    InProcess {
        engine: Arc<Engine>,
        router: Router,
    },
}

#[derive(Deserialize)]
struct Envelope {
    data: Option<Box<RawValue>>,
    error: Option<ApiFailure>,
}

#[derive(Deserialize)]
struct Servers {
    servers: Vec<ServerEntry>,
}

#[derive(Deserialize)]
struct ServerEntry {
    name: String,
    state: String,
    tools: u64,
}

#[derive(Deserialize)]
struct ApiFailure {
    code: String,
    message: String,
    hint: Option<String>,
}

// === impl Api ===

impl Api {
    /// The daemon of these settings, which is started where there is none.
    pub(crate) async fn start(settings: &Settings) -> Result<Self, Failure> {
        let data_dir = Self::data_dir(settings).await?;
        background::ensure(settings, &data_dir).await?;
        Ok(Self::Daemon {
            socket: DataDir::socket(&data_dir),
        })
    }

    /// Where the daemon of these settings listens for commands.
    pub(crate) async fn socket(settings: &Settings) -> Result<PathBuf, Failure> {
        Ok(DataDir::socket(&Self::data_dir(settings).await?))
    }

    /// What the daemon of these settings writes about itself. A config that is not valid may be what
    /// it writes about.
    pub(crate) fn daemon_log(settings: &Settings) -> PathBuf {
        let config = crate::settings::load(settings).map(|loaded| loaded.config);
        DataDir::log(&settings.data_dir(&config.unwrap_or_default()))
    }

    /// The daemon that is running; for what makes no sense without one.
    pub(crate) async fn daemon(settings: &Settings) -> Result<Self, Failure> {
        Self::at(&DataDir::socket(&Self::data_dir(settings).await?)).await
    }

    /// The daemon behind this socket.
    pub(crate) async fn at(socket: &Path) -> Result<Self, Failure> {
        match UnixStream::connect(socket).await {
            Ok(_) => {
                answers(socket).await?;
                Ok(Self::Daemon {
                    socket: socket.to_owned(),
                })
            }
            Err(error) => {
                let socket = socket.display();
                let why = match error.kind() {
                    io::ErrorKind::NotFound => format!("there is no socket {socket}"),
                    io::ErrorKind::ConnectionRefused => {
                        format!("nobody listens on {socket} any more")
                    }
                    _ => format!("{socket} cannot be opened: {error}"),
                };
                Err(Failure::new(Exit::Unreachable, "no daemon is running")
                    .why(why)
                    .advice("start it with `mcpproxy serve`"))
            }
        }
    }

    /// For what is recorded: the daemon, or, where none runs, its files, of which none is changed.
    pub(crate) async fn for_log(settings: &Settings) -> Result<Self, Failure> {
        let data_dir = Self::data_dir(settings).await?;
        let socket = DataDir::socket(&data_dir);
        if UnixStream::connect(&socket).await.is_ok() {
            return Self::at(&socket).await;
        }
        let mut config = crate::settings::load(settings)?.config;
        config.mcp_servers.clear();
        let data_dir = DataDir::as_it_is(&data_dir).map_err(|error| data_dir_failure(&error))?;
        Self::in_process(settings, config, &data_dir).await
    }

    /// An engine of its own for one server that is not in the config. Nothing is remembered of it.
    pub(crate) async fn visit(settings: &Settings, server: ServerConfig) -> Result<Self, Failure> {
        let mut config = crate::settings::load(settings)?.config;
        let data_dir = DataDir::prepare(&settings.data_dir(&config));
        let data_dir = data_dir.map_err(|error| data_dir_failure(&error))?;
        config.mcp_servers = vec![server];
        Self::in_process(settings, config, &data_dir).await
    }

    async fn in_process(
        settings: &Settings,
        config: Config,
        data_dir: &DataDir,
    ) -> Result<Self, Failure> {
        let launch_context = daemon::launch_context(data_dir, Watchdog::of_this_program(), &config);
        let activity = read_log(data_dir, &config)?;
        let engine = Engine::start(
            Arc::new(config),
            launch_context,
            activity,
            Pins::forgetful(),
        )
        .await;
        engine.settled(Instant::now() + SETTLE).await;
        let router = daemon::local_router(Arc::clone(&engine), settings.clone());
        Ok(Self::InProcess { engine, router })
    }

    /// Where the daemon of these settings keeps its data. A daemon that runs goes on with the last
    /// good config, so that a file that is broken keeps nobody from asking it.
    async fn data_dir(settings: &Settings) -> Result<PathBuf, Failure> {
        let failure = match crate::settings::load(settings) {
            Ok(loaded) => return Ok(settings.data_dir(&loaded.config)),
            Err(failure) => failure,
        };
        let data_dir = settings.data_dir(&Config::default());
        let socket = DataDir::socket(&data_dir);
        if UnixStream::connect(&socket).await.is_err() {
            return Err(failure);
        }
        let what = failure.one_line();
        Printer::warning(&format!(
            "{what}; the daemon goes on with the last good config"
        ));
        Ok(data_dir)
    }

    /// Waits until what is known of the tools of a server, or of all, is no longer nothing: a daemon
    /// that was just started knows only the servers it has seen before.
    pub(crate) async fn tools_known(&self, server: Option<&str>) -> Result<(), Failure> {
        self.no_longer(|entry| {
            let wanted = server.is_none_or(|server| entry.name == server);
            wanted && entry.state == "connecting" && entry.tools == 0
        })
        .await
    }

    /// Waits until a server is connected, or has failed to.
    pub(crate) async fn connected(&self, server: &str) -> Result<(), Failure> {
        self.no_longer(|entry| entry.name == server && entry.state == "connecting")
            .await
    }

    /// Waits until no server is as described.
    async fn no_longer(&self, described: impl Fn(&ServerEntry) -> bool) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut told = false;
        loop {
            let servers: Servers = crate::commands::parse_as(&self.get("/servers").await?)?;
            let waiting = servers.servers.iter().filter(|entry| described(entry));
            let waiting: Vec<&str> = waiting.map(|entry| entry.name.as_str()).collect();
            if waiting.is_empty() || begun.elapsed() > SETTLE {
                return Ok(());
            }
            if begun.elapsed() > SILENCE && !told {
                told = true;
                Printer::progress_note(&format!("still connecting: {}", waiting.join(", ")));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(crate) fn is_daemon(&self) -> bool {
        matches!(self, Self::Daemon { .. })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Box<RawValue>, Failure> {
        read_envelope(self.send(build(Method::GET, path, Bytes::new())?).await?).await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<Box<RawValue>, Failure> {
        let body = body.to_string().into();
        read_envelope(self.send(build(Method::POST, path, body)?).await?).await
    }

    /// The same for an answer that is not in the envelope.
    pub(crate) async fn post_for_body(
        &self,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<Body, Failure> {
        let request = build(Method::POST, path, body.to_string().into())?;
        success(self.send(request).await?).await
    }

    pub(crate) async fn put(
        &self,
        path: &str,
        body: &serde_json::Value,
    ) -> Result<Box<RawValue>, Failure> {
        let request = build(Method::PUT, path, body.to_string().into())?;
        read_envelope(self.send(request).await?).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Box<RawValue>, Failure> {
        let request = build(Method::DELETE, path, Bytes::new())?;
        read_envelope(self.send(request).await?).await
    }

    /// An answer that is not in the envelope, piece by piece as it comes.
    pub(crate) async fn stream(&self, path: &str) -> Result<Body, Failure> {
        success(self.send(build(Method::GET, path, Bytes::new())?).await?).await
    }

    /// Events, from now on or from after the one that was seen last.
    pub(crate) async fn events(&self, path: &str, last: Option<&str>) -> Result<Body, Failure> {
        let mut request = build(Method::GET, path, Bytes::new())?;
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
            request.headers_mut().insert("last-event-id", last);
        }
        success(self.send(request).await?).await
    }

    /// Ends the upstreams that were started for this command.
    pub(crate) async fn close(self) {
        if let Self::InProcess { engine, .. } = self {
            engine.shutdown().await;
            // A log that was opened for reading has nothing left to store.
            let _ = engine.activity().close().await;
        }
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        match self {
            Self::Daemon { socket } => over_socket(socket, request).await,
            Self::InProcess { router, .. } => {
                let answer = router.clone().oneshot(request).await;
                Ok(answer.unwrap_or_else(|never| match never {}))
            }
        }
    }
}

fn build(method: Method, path: &str, body: Bytes) -> Result<Request<Body>, Failure> {
    Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"))
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .map_err(|error| Failure::from_error(Exit::Usage, "the request cannot be made", &error))
}

/// The body of an answer that is not in the envelope; a failure is in one all the same.
async fn success(answer: Response<Body>) -> Result<Body, Failure> {
    if answer.status().is_success() {
        return Ok(answer.into_body());
    }
    match read_envelope(answer).await {
        Err(failure) => Err(failure),
        Ok(_) => Err(Failure::new(
            Exit::Failed,
            "the daemon's answer makes no sense",
        )),
    }
}

// === impl ApiFailure ===

impl ApiFailure {
    fn into_failure(self, status: StatusCode) -> Failure {
        let exit = match (status, self.code.as_str()) {
            (StatusCode::NOT_FOUND, _) => Exit::NotFound,
            (_, "CONFIG_INVALID" | "CONFIG_NOT_SAVED") => Exit::Config,
            (StatusCode::FORBIDDEN, _) => Exit::Refused,
            (
                _,
                "INVALID_TOOL_NAME" | "INVALID_SETTING" | "INVALID_ARGS" | "INVALID_FILTER"
                | "INVALID_MANIFEST" | "BAD_REQUEST",
            ) => Exit::Usage,
            // An intent that does not hold is the policy's refusal, however it was phrased.
            (StatusCode::BAD_REQUEST, _) => Exit::Refused,
            _ => Exit::Failed,
        };
        let failure = Failure::new(exit, self.message).code(self.code);
        match self.hint {
            Some(hint) => failure.advice(hint),
            None => failure,
        }
    }
}

/// Text as a part of a path.
pub(crate) fn segment(text: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    // Forms write a space as no path does.
    encoded.replace('+', "%20")
}

/// The log as it is. Opening a damaged one for writing sets it aside, which is the daemon's to do.
fn read_log(data_dir: &DataDir, config: &Config) -> Result<Activity, Failure> {
    let read = daemon::read_activity(data_dir.path(), config);
    let read = read.map_err(|error| log_failure(&error))?;
    if read.waiting > 0 {
        Printer::warning(&format!(
            "{} entries that the last process left are not shown: the log cannot be written; they \
             are stored at the next start of `mcpproxy serve`",
            read.waiting
        ));
    }
    Ok(read.activity)
}

fn data_dir_failure(error: &DataDirError) -> Failure {
    Failure::from_error(Exit::Failed, "the data directory cannot be used", error)
        .advice(error.advice())
}

pub(crate) fn log_failure(error: &ActivityLogError) -> Failure {
    let failure = Failure::from_error(Exit::Failed, "the activity log cannot be opened", error);
    match error {
        ActivityLogError::Open(OpenError::InUse(_)) => failure
            .advice("start the daemon with `mcpproxy serve`; clients and commands then share it"),
        _ => failure.advice(log_advice(error)),
    }
}

/// What to do about a log that cannot be opened.
pub(crate) fn log_advice(error: &ActivityLogError) -> &'static str {
    let ActivityLogError::Open(error) = error else {
        return "see what is wrong with `mcpproxy doctor`";
    };
    match error {
        OpenError::InUse(_) => {
            "end the other mcpproxy, or choose another directory with --data-dir"
        }
        OpenError::Store(StoreError::Corrupt(_)) => {
            "start `mcpproxy serve`, which keeps it aside and begins a new one"
        }
        OpenError::Newer { .. } => "upgrade mcpproxy, or move the file away to begin a new log",
        OpenError::Older { .. } => {
            "start `mcpproxy serve` once, which keeps a copy and brings it up to date"
        }
        OpenError::Foreign(_) => "move it away to begin a new log",
        OpenError::SymbolicLink(_) => "remove the link, or put the file itself in its place",
        OpenError::ForeignOwner(_) => {
            "take it over with chown, or choose a directory of your own with --data-dir"
        }
        OpenError::SharedDirectory(_) => "choose a directory that is yours alone with --data-dir",
        OpenError::File { .. } => {
            "make it a plain file that you can read and write, or move it away; or choose another \
             directory with --data-dir"
        }
        OpenError::Missing(_) | OpenError::Store(_) => "see what is wrong with `mcpproxy doctor`",
    }
}

async fn read_envelope(answer: Response<Body>) -> Result<Box<RawValue>, Failure> {
    let status = answer.status();
    let body = answer.into_body().collect().await;
    let body = body.map_err(|error| lost(&error))?.to_bytes();
    let envelope: Envelope = serde_json::from_slice(&body).map_err(|error| {
        Failure::from_error(
            Exit::Failed,
            "the daemon's answer is not understood",
            &error,
        )
        .advice("make sure that the daemon and this command are of the same version")
    })?;
    match (envelope.data, envelope.error) {
        (Some(data), None) => Ok(data),
        (_, Some(error)) => Err(error.into_failure(status)),
        (None, None) => Err(Failure::new(Exit::Failed, "the daemon's answer is empty")),
    }
}

async fn over_socket(socket: &Path, request: Request<Body>) -> Result<Response<Body>, Failure> {
    let unreachable = |error: &dyn std::error::Error| {
        Failure::from_error(Exit::Unreachable, "the daemon does not answer", error)
            .advice("look at its output, or start it again with `mcpproxy serve`")
    };
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|error| unreachable(&error))?;
    exchange(stream, request)
        .await
        .map_err(|error| unreachable(&error))
}

/// A daemon that takes connections and says nothing would keep a command waiting for ever.
async fn answers(socket: &Path) -> Result<(), Failure> {
    let asking = over_socket(socket, health()?);
    let Ok(answer) = tokio::time::timeout(PATIENCE, asking).await else {
        let (socket, patience) = (socket.display(), PATIENCE.as_secs());
        let why = format!("it takes connections on {socket} and said nothing for {patience} s");
        return Err(
            Failure::new(Exit::Unreachable, "the daemon does not answer")
                .why(why)
                .advice("`mcpproxy doctor` says which process it is and how to replace it"),
        );
    };
    answer.map(|_| ())
}

/// Whether a daemon answers at this address, as clients would find it.
pub(crate) async fn is_healthy(address: &str) -> bool {
    let (Ok(stream), Ok(request)) = (TcpStream::connect(address).await, health()) else {
        return false;
    };
    let answer = exchange(stream, request).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

fn health() -> Result<Request<Body>, Failure> {
    Request::get("/healthz")
        .header(header::HOST, "localhost")
        .body(Body::empty())
        .map_err(|error| Failure::from_error(Exit::Usage, "the request cannot be made", &error))
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Body>,
) -> hyper::Result<Response<Body>> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends by itself when the sender is dropped.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?.map(Body::new))
}

pub(crate) fn lost(error: &dyn std::error::Error) -> Failure {
    Failure::from_error(Exit::Unreachable, "the daemon's answer broke off", error)
}
