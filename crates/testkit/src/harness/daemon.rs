//! The real daemon on a free port, in a home of its own, gone when the test is.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Child;

use super::client::{Client, connect};
use super::home::Home;
use super::process;
use super::session::{Session, http_client};
use super::wait::{DEADLINE, wait_until};

/// A running `mcpproxy serve`.
#[derive(Debug)]
pub struct TestDaemon {
    pub home: Home,
    child: Child,
    address: String,
    log: PathBuf,
    /// Whether its output is printed when the test panics.
    shows_log: bool,
}

impl TestDaemon {
    /// Starts the program at `binary` with nothing but these upstreams in its config.
    pub async fn with_servers(home: Home, servers: Value) -> Self {
        Self::start(home, json!({ "mcpServers": servers })).await
    }

    /// Starts the daemon with this config, on a free port, and waits until it is ready.
    pub async fn start(home: Home, config: Value) -> Self {
        Self::start_at(home, config, &[], "").await
    }

    /// Like [`TestDaemon::start`], with more in the environment, and at this address unless it is
    /// empty.
    pub async fn start_at(
        home: Home,
        config: Value,
        environment: &[(&str, &str)],
        address: &str,
    ) -> Self {
        let address = match address {
            "" => free_address(),
            known => known.to_owned(),
        };
        home.write_config(&with_address(config, &address));
        let mut daemon = Self::spawn(home, address, environment);
        daemon.wait_until_ready().await;
        daemon
    }

    fn spawn(home: Home, address: String, environment: &[(&str, &str)]) -> Self {
        let log = home.path().join("daemon.log");
        let output = File::create(&log).expect("a log");
        let child = home
            .command()
            .arg("serve")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a second handle"))
            .stderr(output)
            .spawn()
            .expect("the binary can be run");
        Self {
            home,
            child,
            address,
            log,
            shows_log: true,
        }
    }

    /// Does not print the daemon's output when the caller panics.
    #[must_use]
    pub fn without_log(mut self) -> Self {
        self.shows_log = false;
        self
    }

    async fn wait_until_ready(&mut self) {
        let http = http_client();
        let url = self.url("/readyz");
        let lock = self.home.path().join(".mcpproxy/mcpproxy.lock");
        let (child, log) = (&mut self.child, &self.log);
        wait_until("the daemon is ready", DEADLINE, async || {
            if let Some(status) = child.try_wait().expect("a child") {
                panic!("the daemon ended with {status}:\n{}", read(log));
            }
            let answer = http.get(&url).send().await;
            // One that a client started in the background answers, too, until this one takes over.
            let holder = std::fs::read_to_string(&lock).ok();
            let holder = holder.and_then(|pid| pid.trim().parse().ok());
            let is_this_one = holder.is_none() || holder == child.id();
            is_this_one && answer.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
    }

    /// Puts another config in place of the present one; the address stays.
    pub fn reconfigure(&self, config: Value) {
        self.home.write_config(&with_address(config, &self.address));
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("the daemon runs")
    }

    /// What the daemon printed.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// A session that keeps every byte.
    pub async fn session(&self) -> Session {
        Session::open(&self.url("/mcp")).await
    }

    /// A session, once all of these tools (`server:tool`) can be found.
    pub async fn session_with(&self, tools: &[&str]) -> Session {
        let session = self.session().await;
        for tool in tools {
            self.wait_for_tool(&session, tool).await;
        }
        session
    }

    /// Waits until `server:tool` can be found.
    pub async fn wait_for_tool(&self, session: &Session, tool: &str) {
        let (server, name) = tool.split_once(':').expect("server:tool");
        let query = json!({"query": name, "server": server, "limit": 50});
        let what = format!("{tool} can be found");
        wait_until(&what, DEADLINE, async || {
            // Until an upstream is known there is nothing to search in, which may be an error.
            let answer = session.call("retrieve_tools", &query).await;
            let answer: Value = serde_json::from_str(&answer).expect("a result is JSON");
            let found = answer["structuredContent"]["tools"].as_array();
            found.is_some_and(|found| found.iter().any(|entry| entry["name"] == tool))
        })
        .await;
    }

    /// Waits until an upstream is connected and its tools are known.
    pub async fn wait_for_server(&self, name: &str) {
        let what = format!("{name} is ready");
        wait_until(&what, DEADLINE, async || {
            self.api(&format!("/servers/{name}")).await["state"] == "ready"
        })
        .await;
    }

    /// The key of the REST API that the daemon made.
    pub fn key(&self) -> String {
        let key = self.home.path().join(".mcpproxy/api_key");
        let key = std::fs::read_to_string(key).expect("the key of the API");
        key.trim().to_owned()
    }

    /// The `data` of an answer of the REST API, asked with the key of this daemon.
    pub async fn api(&self, path: &str) -> Value {
        let request = http_client().get(self.url(&format!("/api/v1{path}")));
        let answer = request
            .bearer_auth(self.key())
            .send()
            .await
            .expect("an answer");
        let body = answer.text().await.expect("a whole answer");
        let mut envelope: Value = serde_json::from_str(&body).expect("an answer is JSON");
        assert_eq!(envelope["success"], true, "{envelope}");
        envelope["data"].take()
    }

    /// rmcp, connected.
    pub async fn client(&self) -> Client {
        connect(&self.url("/mcp")).await
    }

    /// Asks the daemon to stop and waits for it.
    pub async fn stop(self) -> (Home, ExitStatus) {
        process::terminate(self.pid());
        self.ended().await
    }

    /// Waits for a daemon that was asked to stop.
    pub async fn ended(mut self) -> (Home, ExitStatus) {
        let status = tokio::time::timeout(DEADLINE, self.child.wait())
            .await
            .expect("the daemon stops in time")
            .expect("the daemon can be waited for");
        let home = std::mem::replace(&mut self.home, Home::new(Path::new("")));
        (home, status)
    }

    /// Kills the daemon without giving it a chance to clean up.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("the daemon can be killed");
    }

    /// Kills the daemon and returns its home, as it was left behind.
    pub async fn killed(mut self) -> Home {
        self.kill().await;
        std::mem::replace(&mut self.home, Home::new(Path::new("")))
    }

    /// Whether the daemon still answers.
    pub async fn is_up(&self) -> bool {
        let answer = http_client()
            .get(self.url("/healthz"))
            .timeout(Duration::from_secs(5))
            .send()
            .await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        if self.shows_log && std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            report(&tail.join("\n"));
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a test that fails shows what the daemon said"
)]
fn report(log: &str) {
    eprintln!("--- the daemon's output ---\n{log}");
}

fn read(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn with_address(mut config: Value, address: &str) -> Value {
    config["listen"] = address.into();
    config
}

/// A port that was free a moment ago. The daemon binds it itself, so a race is possible; the
/// system hands out ports in an order that makes it unlikely.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").to_string()
}
