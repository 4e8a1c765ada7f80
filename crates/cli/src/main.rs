//! The `mcpproxy` command: reads the command line, runs one command, prints, exits.

mod api;
mod args;
mod commands;
mod completion;
mod consent;
mod escape;
mod exit;
mod layout;
mod printer;
#[cfg(test)]
mod reference;
mod settings;
mod shell;
mod time;
mod yaml;

use std::process::ExitCode;
use std::time::Duration;

use clap::FromArgMatches;
use clap::parser::ValueSource;
use mimalloc::MiMalloc;
use tracing_subscriber::EnvFilter;

use crate::args::{Cli, Command};
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};

/// What a call allocates on one thread is mostly freed by another, the log's; the usual allocator
/// has them wait for each other.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How long threads that are still at work are waited for at the end.
const THREADS: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    if let Some(code) = platform::run_internal_command() {
        return code;
    }
    match completion::answer_shell() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => error.exit(),
    }
    let parsed = args::command().try_get_matches().and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, matches))
    });
    let (mut cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return misused(&error),
    };
    let format = cli.global.output;
    cli.global.output_is_given = matches.value_source("output") == Some(ValueSource::CommandLine);
    start_logging(&cli.command);
    // One thread serves all calls: with more, a call begins on one and ends on another, and waking
    // them costs more than they add (docs/benchmarks.md). CPU-heavy work has threads of its own.
    let outcome = match tokio::runtime::Builder::new_current_thread()
        // Sockets are looked at after this many polls of tasks, so that one that is always ready, as
        // that of a server that sends without end, does not keep the others waiting.
        .event_interval(8)
        .enable_all()
        .build()
    {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(cli));
            // Threads that wait for a disk or a terminal must not keep the process from ending.
            runtime.shutdown_timeout(THREADS);
            outcome
        }
        Err(error) => Err(Failure::from_error(Exit::Failed, "cannot start", &error)),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            Printer::failure(&failure, format);
            failure.exit.into()
        }
    }
}

/// Ends a program whose command line is not understood, or that was asked for help. A program that asked for
/// JSON gets its error as JSON.
fn misused(error: &clap::Error) -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    if !error.use_stderr() || !args::asks_for_json(arguments) {
        error.exit();
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let what = lines.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    let rest: Vec<&str> = lines.collect();
    let failure = Failure::new(Exit::Usage, what)
        .why(rest.join("; "))
        .advice("see `mcpproxy help`");
    Printer::failure(&failure, Format::Json);
    failure.exit.into()
}

async fn run(cli: Cli) -> Outcome {
    let format = cli.global.output;
    let asked = cli.global.output_is_given.then_some(format);
    let printer = Printer::new(format, asked, cli.global.quiet);
    let outcome = run_command(cli, &printer).await;
    printer.ended(outcome)
}

async fn run_command(cli: Cli, printer: &Printer) -> Outcome {
    let settings = settings::locate(&cli.global)?;
    match cli.command {
        Command::Serve => commands::serve::run(settings, printer).await,
        Command::Stdio => commands::stdio::run(&settings).await,
        Command::Call(command) => commands::call::run(command, &settings, printer).await,
        Command::Tools(command) => commands::tools::run(command, &settings, printer).await,
        Command::Audit(args) => commands::audit::run(args, &settings, printer).await,
        Command::Activity(command) => commands::activity::run(command, &settings, printer).await,
        Command::Upstream(command) => commands::upstream::run(command, &settings, printer).await,
        Command::Connect(args) => commands::connect::run(args, &settings, printer).await,
        Command::Doctor(args) => commands::doctor::run(args, &settings, printer).await,
        Command::Config(command) => commands::config::run(&command, &settings, printer),
        Command::Completions(args) => {
            printer.text(&completion::script(args.shell)?);
            Ok(Exit::Ok)
        }
        Command::Status => commands::status::run(&settings, printer).await,
        Command::DemoServer { store } => commands::demo_server::run(store, &settings).await,
    }
}

/// Logs go to stderr. A daemon tells what happens; a command speaks only when asked to.
fn start_logging(command: &Command) {
    let default = match command {
        Command::Serve => "info",
        Command::Stdio | Command::DemoServer { .. } => "warn",
        _ => "off",
    };
    let filter =
        EnvFilter::try_from_env("MCPPROXY_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
}
