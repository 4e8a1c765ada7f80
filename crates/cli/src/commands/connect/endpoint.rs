//! How a client is to reach mcpproxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clients::{Client, Endpoint};
use config::{Config, Settings};

use crate::api::Api;
use crate::commands::parse;
use crate::exit::{Exit, Failure};

/// How long a daemon may take to say where it listens. One that hangs is started again, there.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The endpoint for a client. One that only starts programs is given a program.
pub(in crate::commands) async fn endpoint(
    client: Client,
    stdio: bool,
    settings: &Settings,
    config: &Config,
) -> Result<Endpoint, Failure> {
    if !stdio && client != Client::ClaudeDesktop {
        return Ok(Endpoint::Http {
            url: format!("http://{}/mcp", address(settings, config).await),
            needs_key: config.require_mcp_auth,
        });
    }
    let program = std::env::current_exe().map_err(|error| {
        Failure::from_error(
            Exit::Failed,
            "this program's own place is not known",
            &error,
        )
    })?;
    let mut arguments = vec!["stdio".to_owned()];
    if settings.command_line().config.is_some() {
        let file = settings.config_file().to_string_lossy().into_owned();
        arguments.extend(["--config".to_owned(), file]);
    }
    if settings.command_line().data_dir.is_some() {
        let folder = settings.data_dir(config).to_string_lossy().into_owned();
        arguments.extend(["--data-dir".to_owned(), folder]);
    }
    Ok(Endpoint::Stdio {
        command: program.to_string_lossy().into_owned(),
        args: arguments,
    })
}

/// Where the daemon listens, or will once it runs.
async fn address(settings: &Settings, config: &Config) -> SocketAddr {
    let running = async {
        let api = Api::daemon(settings).await.ok()?;
        let status = parse(&api.get("/status").await.ok()?).ok()?;
        status["listen"].as_str()?.parse().ok()
    };
    let running = tokio::time::timeout(TIMEOUT, running).await;
    let mut address = running.ok().flatten().unwrap_or(config.listen);
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address
}
