//! What a case starts with: a home, upstreams, a config, and the daemon on top of them.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::proxy::Proxy;
use crate::upstream::script::{Script, Tool};
use crate::{Home, HttpUpstream, Record, StdioUpstream, TestDaemon};

/// The upstream that nothing is done to; its calls must not notice what happens to the others.
pub(super) const OTHER: &str = "other";

/// A daemon that is yet to be started.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) home: Home,
    pub(super) config: Map<String, Value>,
    servers: Map<String, Value>,
    environment: Vec<(String, String)>,
    pub(super) records: Vec<Record>,
    probes: bool,
}

/// The program under test; cargo puts it beside this one.
pub(super) fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    let path = BINARY.get_or_init(|| {
        let this = std::env::current_exe().expect("the path of this program");
        this.with_file_name("mcpproxy")
    });
    assert!(path.exists(), "{} is missing", path.display());
    path.clone()
}

impl Setup {
    pub(super) fn new() -> Self {
        Self::in_home(Home::new(&binary()))
    }

    /// Goes on in the home of a daemon that has ended.
    pub(super) fn in_home(home: Home) -> Self {
        let mut setup = Self {
            home,
            config: Map::new(),
            servers: Map::new(),
            environment: Vec::new(),
            records: Vec::new(),
            probes: true,
        };
        let script = Script::new([Tool::read_only("look")]);
        setup.stdio(OTHER, &script, json!({}));
        setup
    }

    /// Adds an upstream over stdio, with more members in its entry.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers write the entry in place"
    )]
    pub(super) fn stdio(&mut self, name: &str, script: &Script, entry: Value) -> StdioUpstream {
        let upstream = self.home.upstream(name, script);
        self.server(name, upstream.config_with(&entry));
        self.records.push(upstream.record());
        upstream
    }

    /// Adds an upstream over HTTP, in this process.
    pub(super) async fn http(&mut self, name: &str, script: Script, entry: Value) -> HttpUpstream {
        let upstream = HttpUpstream::start(self.home.path(), name, script).await;
        let mut config = upstream.config();
        extend(&mut config, entry);
        self.server(name, config);
        upstream
    }

    /// Adds an entry. Unless it says otherwise, all clients share one process: the cases count
    /// processes, and their clients come and go by the hundred.
    pub(super) fn server(&mut self, name: &str, mut entry: Value) {
        if entry["command"].is_string() && entry["sharing"].is_null() {
            entry["sharing"] = "shared".into();
        }
        self.servers.insert(name.to_owned(), entry);
    }

    /// Sets members of the config.
    pub(super) fn set(&mut self, members: Value) -> &mut Self {
        let Value::Object(members) = members else {
            panic!("members of the config are an object");
        };
        self.config.extend(members);
        self
    }

    pub(super) fn environment(&mut self, name: &str, value: &str) -> &mut Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves the other upstream alone meanwhile, so that only the case's own calls are in the log.
    pub(super) fn without_probe(&mut self) -> &mut Self {
        self.probes = false;
        self
    }

    /// The whole config.
    pub(super) fn whole_config(&self) -> Value {
        let mut config = Value::Object(self.config.clone());
        config["mcpServers"] = Value::Object(self.servers.clone());
        config
    }

    pub(super) async fn start(self) -> Proxy {
        self.start_at("").await
    }

    /// Starts the daemon at an address that clients know already.
    pub(super) async fn start_at(self, address: &str) -> Proxy {
        let config = self.whole_config();
        let environment: Vec<_> = self
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let began = Instant::now();
        let daemon = TestDaemon::start_at(self.home, config.clone(), &environment, address).await;
        let ready = began.elapsed();
        Proxy::of(
            daemon.without_log(),
            ready,
            config,
            self.records,
            self.probes,
        )
        .await
    }
}

/// Adds the members of `more` to the object `value`.
pub(super) fn extend(value: &mut Value, more: Value) {
    let (Value::Object(members), Value::Object(more)) = (value, more) else {
        panic!("both are objects");
    };
    members.extend(more);
}
