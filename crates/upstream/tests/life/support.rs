//! Upstreams that are a few lines of shell, in a fleet of their own.

#![expect(
    clippy::large_types_passed_by_value,
    reason = "tests write the limits in place"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{Limits, ServerConfig, Transport};
use mcp::RawValue;
use platform::Watchdog;
use tempfile::TempDir;
use testkit::{DEADLINE, wait_for, watchdog_program};
use tokio::sync::mpsc;
use upstream::{CallError, EraMemory, Fleet, LaunchContext, Status, ToolCall, Upstream};

/// One tool called `t`, and no further page.
pub(crate) const ONE_TOOL: &str =
    r#"answer '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'"#;

/// A server over stdio in shell: what it does when it is asked something.
///
/// In each piece `answer RESULT` answers the request, `$id` is its id and `$line` the request.
/// Everything that arrives is written to `$LOG`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shell {
    pub start: &'static str,
    pub list: &'static str,
    pub call: &'static str,
    pub ping: &'static str,
    /// What happens with any other message.
    pub other: &'static str,
}

/// A fleet with one upstream called `up`.
pub(crate) struct Setup {
    pub fleet: Arc<Fleet>,
    folder: TempDir,
}

impl Default for Shell {
    fn default() -> Self {
        Self {
            start: "",
            list: ONE_TOOL,
            call: r#"answer '{"content":[]}'"#,
            ping: "answer '{}'",
            other: "",
        }
    }
}

impl Shell {
    pub(crate) fn text(&self) -> String {
        let Self {
            start,
            list,
            call,
            ping,
            other,
        } = self;
        format!(
            r#"
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
echo start $$ >> "$LOG"
{start}
while read -r line; do
  echo "$line" >> "$LOG"
  id=${{line#*'"id":'}}; id=${{id%%[,\}}]*}}
  case "$line" in
    *'"method":"server/discover"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"?"}}}}\n' "$id";;
    *'"method":"initialize"'*) answer '{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{"listChanged":true}}}},"serverInfo":{{"name":"sh","version":"1"}}}}';;
    *'"method":"tools/list"'*) {list};;
    *'"method":"tools/call"'*) {call};;
    *'"method":"ping"'*) {ping};;
    *) {other};;
  esac
done
"#,
            other = if other.is_empty() { ":" } else { other },
        )
    }
}

impl Setup {
    pub(crate) async fn of(shell: Shell, limits: Limits) -> Self {
        Self::with(shell, limits, |_| ()).await
    }

    pub(crate) async fn with(
        shell: Shell,
        limits: Limits,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("server.sh");
        let log = folder.path().join("log");
        let text = format!("LOG='{}'\n{}", log.display(), shell.text());
        std::fs::write(&script, text).unwrap();
        std::fs::write(&log, "").unwrap();
        let transport = Transport::program("sh", [script.to_str().unwrap()]);
        Self::over(transport, limits, change, folder).await
    }

    pub(crate) async fn over(
        transport: Transport,
        limits: Limits,
        change: impl FnOnce(&mut ServerConfig),
        folder: TempDir,
    ) -> Self {
        let mut server = ServerConfig::new("up".parse().unwrap(), transport);
        change(&mut server);
        let launch_context = LaunchContext {
            watchdog: Watchdog::of_program(watchdog_program().to_owned()),
            log_dir: None,
            environment: |_| None,
            eras: EraMemory::default(),
            redactor: redact::SharedRedactor::default(),
        };
        let fleet = Arc::new(Fleet::new(launch_context, &limits));
        fleet.apply(&[server]).await;
        Self { fleet, folder }
    }

    pub(crate) fn upstream(&self) -> Arc<Upstream> {
        self.fleet.get(&"up".parse().unwrap()).unwrap()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// How many lines of the log have this in them.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.log()
            .lines()
            .filter(|line| line.contains(text))
            .count()
    }

    /// The process that was started last.
    pub(crate) fn pid(&self) -> u32 {
        let log = self.log();
        let mut starts = log.lines().rev();
        let pid = starts.find_map(|line| line.strip_prefix("start "));
        pid.unwrap().parse().unwrap()
    }

    /// Waits until the state of the upstream has this name.
    pub(crate) async fn state(&self, state: &str) -> Arc<Status> {
        let upstream = self.upstream();
        wait_for(&format!("up is {state}"), DEADLINE, async || {
            let status = upstream.status();
            (status.state.as_str() == state).then_some(status)
        })
        .await
    }

    /// Waits until the upstream is in this state, and returns why.
    pub(crate) async fn failure(&self, state: &str) -> String {
        self.state(state).await.state.failure().unwrap().to_string()
    }

    pub(crate) async fn call(&self) -> Result<Box<RawValue>, CallError> {
        call(&self.upstream(), None).await
    }
}

pub(crate) async fn call(
    upstream: &Upstream,
    progress: Option<mpsc::Sender<Box<RawValue>>>,
) -> Result<Box<RawValue>, CallError> {
    let tool = "t".parse().unwrap();
    let call = ToolCall {
        tool: &tool,
        arguments: None,
        meta: None,
        progress,
        client: None,
        sent: None,
        repeatable: false,
    };
    upstream.call_tool(call).await
}

/// Whether there is such a process, and it is more than a zombie.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Whether anything is left of a process, be it a zombie.
pub(crate) fn exists(pid: u32) -> bool {
    std::fs::exists(format!("/proc/{pid}")).unwrap()
}

pub(crate) fn limits() -> Limits {
    Limits::default()
}

pub(crate) fn seconds(seconds: f64) -> config::Time {
    Duration::from_secs_f64(seconds).into()
}

/// Runs something that must take less than so many seconds.
pub(crate) async fn within<T>(seconds: u64, what: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let outcome = tokio::time::timeout(Duration::from_secs(seconds), what).await;
    outcome.unwrap_or_else(|_| panic!("not done after {:?}", began.elapsed()))
}
