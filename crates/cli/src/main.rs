//! The `mcpproxy` command: reads the command line, runs one command, prints, exits.

mod api;
mod args;
mod background;
mod commands;
mod completion;
mod consent;
mod escape;
mod exit;
mod layout;
mod logging;
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

use crate::args::{Cli, Command};
use crate::exit::{Exit, Failure, Outcome};
use crate::logging::LogFile;
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
    let log_file = logging::start(&cli.command);
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
            let outcome = runtime.block_on(run(cli, &log_file));
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

async fn run(cli: Cli, log_file: &LogFile) -> Outcome {
    let format = cli.global.output;
    let asked = cli.global.output_is_given.then_some(format);
    let printer = Printer::new(format, asked, cli.global.quiet);
    let outcome = run_command(cli, &printer, log_file).await;
    printer.ended(outcome)
}

async fn run_command(cli: Cli, printer: &Printer, log_file: &LogFile) -> Outcome {
    let settings = settings::locate(&cli.global)?;
    match cli.command {
        Command::Serve(args) => commands::serve::run(args, settings, printer, log_file).await,
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
        Command::Stop => commands::stop::run(&settings, printer).await,
        Command::Restart => commands::restart::run(&settings, printer).await,
        Command::Logs(args) => commands::logs::run(&args, &settings, printer).await,
        Command::Service(command) => commands::service::run(&command, &settings, printer).await,
        Command::DemoServer { store } => commands::demo_server::run(store, &settings).await,
    }
}
