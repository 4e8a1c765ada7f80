//! `mcpproxy serve`: the daemon.

use std::path::Path;
use std::time::{Duration, Instant};

use config::{Loaded, ServerConfig, Settings, Transport};
use daemon::{ApiKeyError, Daemon, DataDir, DataDirError, ListenError, StartError, StartedBy};
use platform::Watchdog;
use policy::ServerName;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::demo_server::default_store;
use crate::api::log_advice;
use crate::args::ServeArgs;
use crate::background::{self, Running, StartReport};
use crate::exit::{Exit, Failure, Outcome};
use crate::logging::LogFile;
use crate::printer::Printer;
use crate::settings::config_failure;

const DEMO_NAME: &str = "demo";

/// How long a daemon in the background may take to make room.
const TAKING_OVER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// The code of the failure that another daemon has the data directory.
const TAKEN: &str = "DATA_DIR_IN_USE";

/// What the operator wants of a running daemon.
#[derive(Debug, Clone, Default)]
struct Signals {
    stop: CancellationToken,
    stop_at_once: CancellationToken,
}

pub(crate) async fn run(
    args: ServeArgs,
    settings: Settings,
    printer: &Printer,
    log_file: &LogFile,
) -> Outcome {
    let started_by = started_by(&args);
    if !started_by.is_background() {
        return serve(started_by, settings, log_file, printer).await;
    }
    // The command that started it reads one line of its stdout, and no more.
    let outcome = serve(started_by, settings, log_file, printer).await;
    if let Err(failure) = &outcome {
        printer.text(&format!("{}\n", report(failure)));
    }
    outcome
}

async fn serve(
    started_by: StartedBy,
    settings: Settings,
    log_file: &LogFile,
    printer: &Printer,
) -> Outcome {
    if started_by.is_background() {
        platform::leave_session().map_err(|error| {
            Failure::from_error(Exit::Failed, "the daemon stays in the terminal", &error)
        })?;
    }
    let first_run = !settings.config_file().exists();
    // A user who runs another command has not asked for a demo.
    let loaded = if first_run && started_by.is_background() {
        crate::settings::load(&settings)?
    } else {
        if first_run {
            write_first_config(&settings)?;
        }
        settings.load().map_err(|error| config_failure(&error))?
    };
    for warning in &loaded.warnings {
        printer.note(&format!("warning: {warning}"));
    }
    let config_file = settings.config_file().to_owned();
    let servers = loaded.config.mcp_servers.len();
    let data_dir = settings.data_dir(&loaded.config);
    let signals = stop_signals()?;
    let daemon = start(settings, &loaded, &started_by, &data_dir, printer).await?;
    // Only now is the directory known to be ours.
    if let Err(error) = log_file.open(DataDir::log(&data_dir)) {
        tracing::warn!(%error, "the daemon's log file cannot be written");
    }
    let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
    tracing::info!(%version, pid, address = %daemon.address(), "the daemon is ready");
    if started_by.is_background() {
        let ready = serde_json::to_string(&StartReport::Ready).unwrap_or_default();
        printer.text(&format!("{ready}\n"));
    } else {
        printer.text(&banner(&daemon, &config_file, first_run, servers));
    }
    tokio::select! {
        () = daemon.run(signals.stop) => Ok(Exit::Ok),
        () = signals.stop_at_once.cancelled() => {
            printer.note("ended at once; the next start marks calls that were under way as interrupted");
            end_at_once()
        }
    }
}

/// Starts the daemon. One that another command started in the background makes room for one that a
/// user or the service manager starts.
async fn start(
    settings: Settings,
    loaded: &Loaded,
    started_by: &StartedBy,
    data_dir: &Path,
    printer: &Printer,
) -> Result<Daemon, Failure> {
    let deadline = Instant::now() + TAKING_OVER;
    loop {
        let (settings, loaded) = (settings.clone(), loaded.clone());
        let watchdog = Watchdog::of_this_program();
        let error = match Daemon::start(settings, loaded, watchdog, started_by.clone()).await {
            Ok(daemon) => return Ok(daemon),
            Err(error) => error,
        };
        let taken = matches!(error, StartError::DataDir(DataDirError::Locked { .. }));
        if !taken || started_by.is_background() || Instant::now() >= deadline {
            return Err(start_failure(&error));
        }
        let socket = DataDir::socket(data_dir);
        match background::running(&socket).await {
            Ok(Running {
                pid,
                started_by: Some(StartedBy::Command { command, .. }),
                ..
            }) => {
                printer.note(&format!(
                    "taking over from process {pid}, which `mcpproxy {command}` started"
                ));
                background::stop(&socket).await?;
            }
            Ok(_) => return Err(start_failure(&error)),
            // It starts or ends.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

fn started_by(args: &ServeArgs) -> StartedBy {
    match &args.started_by {
        Some(text) => {
            let (command, pid) = text.split_once(':').unwrap_or((text, ""));
            StartedBy::Command {
                command: command.to_owned(),
                pid: pid.parse().unwrap_or_default(),
            }
        }
        None if args.service => StartedBy::Service,
        None => StartedBy::Terminal,
    }
}

/// What the process that started this one is told of a failure.
fn report(failure: &Failure) -> String {
    let report = match failure.code.as_deref() {
        Some(TAKEN) => StartReport::Taken,
        _ => StartReport::Failed {
            exit: failure.exit as u8,
            what: failure.what.clone(),
            why: failure.why.clone(),
            advice: failure.advice.clone(),
        },
    };
    serde_json::to_string(&report).unwrap_or_default()
}

/// Leaves everything as a crash would; that is what the log and the watchdog of upstreams are for.
#[expect(
    clippy::exit,
    reason = "unwinding would wait for what is not to be waited for"
)]
fn end_at_once() -> ! {
    std::process::exit(1)
}

/// With no config there is nothing to try; the demo server is something.
fn write_first_config(settings: &Settings) -> Result<(), Failure> {
    let failed = |error: &dyn std::error::Error| {
        Failure::from_error(
            Exit::Config,
            "the first config file cannot be written",
            error,
        )
        .advice("name other places with --config and --data-dir")
    };
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let name: ServerName = DEMO_NAME
        .parse()
        .map_err(|error: policy::ServerNameError| failed(&error))?;
    let store = default_store(settings);
    // A path that is not UTF-8 cannot be written into the config. The server then finds it itself.
    let arguments: &[&str] = match store.to_str() {
        Some(store) => &["demo-server", "--store", store],
        None => &["demo-server"],
    };
    let program = program.to_str().unwrap_or("mcpproxy");
    let demo = ServerConfig::new(name, Transport::program(program, arguments.iter().copied()));
    config::write_new(settings.config_file(), &config::starter(&demo))
        .map_err(|error| failed(&error))
}

fn banner(daemon: &Daemon, config_file: &Path, first_run: bool, servers: usize) -> String {
    let address = daemon.address();
    let note = if first_run {
        " (new, with a demo server to try)".to_owned()
    } else {
        format!(" ({servers} server{})", if servers == 1 { "" } else { "s" })
    };
    format!(
        "mcpproxy {version} listens on http://{address}/mcp\n\
         config: {config}{note}\n\
         \n\
         Put it into a client, for example:\n  \
           mcpproxy connect claude-code --approve read\n\
         or, as JSON:\n  \
           {{\"mcpServers\": {{\"mcpproxy\": {{\"type\": \"http\", \"url\": \"http://{address}/mcp\"}}}}}}\n\
         \n\
         Try next, in another terminal:\n  \
           mcpproxy {try_next}\n",
        version = env!("CARGO_PKG_VERSION"),
        config = config_file.display(),
        try_next = if first_run {
            "call tool-read demo:list_notes"
        } else {
            "tools list"
        },
    )
}

fn start_failure(error: &StartError) -> Failure {
    let failure = Failure::from_error(Exit::Failed, "the daemon cannot start", error);
    match error {
        StartError::Listen(ListenError::Tcp { address, .. }) => failure.advice(format!(
            "stop what uses {address}, or choose another address with --listen"
        )),
        StartError::DataDir(error @ DataDirError::Locked { .. }) => {
            failure.code(TAKEN).advice(error.advice())
        }
        StartError::DataDir(error) => failure.advice(error.advice()),
        StartError::Pins(_) => {
            failure.advice("make the files readable, or use the mcpproxy that wrote them")
        }
        StartError::Chronicle(error) => failure.advice(log_advice(error)),
        StartError::ApiKey(ApiKeyError::Short { .. }) => failure.advice(
            "choose a longer one, or leave it out: then mcpproxy makes one of 64 characters",
        ),
        StartError::ApiKey(_) | StartError::Listen(_) | StartError::Address(_) => failure,
    }
}

/// Fires on SIGINT and SIGTERM: the first asks the daemon to end, the second does not wait for it.
fn stop_signals() -> Result<Signals, Failure> {
    let failed = |error| Failure::from_error(Exit::Failed, "signals cannot be handled", &error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let signals = Signals::default();
    let fired = signals.clone();
    tokio::spawn(async move {
        for token in [fired.stop, fired.stop_at_once] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            token.cancel();
        }
    });
    Ok(signals)
}
