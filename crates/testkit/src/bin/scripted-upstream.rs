//! `scripted-upstream SCRIPT RECORD`: an MCP server over stdio that does what the script says.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let script = arguments.next().context("the first argument is a script")?;
    if script.as_os_str() == "--wait" {
        testkit::wait_for_ever(arguments.next().is_some()).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let record = arguments
        .next()
        .context("the second argument is a record")?;
    let code = testkit::serve_stdio(&script, &record).await?;
    end(code)
}

/// Ends at once: the runtime would otherwise wait for the thread that blocks on stdin.
#[expect(clippy::exit, reason = "the script says when and how the process ends")]
fn end(code: i32) -> ! {
    std::process::exit(code)
}
