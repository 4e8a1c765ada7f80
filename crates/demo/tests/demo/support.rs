//! A demo server on one end of a pipe and our client on the other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp::client::{Client, Hello, RequestError, RequestOptions};
use mcp::lines::DEFAULT_LINE_LIMIT;
use mcp::{ErrorObject, RawValue};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

/// Far longer than anything here takes; only a hang gets there.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// No ids.
pub(crate) const NONE: [i64; 0] = [];

pub(crate) type Serving = JoinHandle<Result<(), demo::DemoError>>;

pub(crate) struct Demo {
    pub(crate) client: Client,
    serving: Serving,
    /// The folder of a store of its own, gone when the test ends.
    _folder: Option<TempDir>,
}

pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

/// Starts a server and gives the client's end of its pipe.
pub(crate) fn serve(store: PathBuf) -> (DuplexStream, Serving) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    (near, tokio::spawn(demo::serve(store, reader, writer)))
}

impl Demo {
    /// A server with a fresh store that holds the sample notes 1, 2 and 3.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("notes.db");
        Self::connect(&store, Some(folder)).await
    }

    /// A server with a store that outlives it.
    pub(crate) async fn open(store: &Path) -> Self {
        Self::connect(store, None).await
    }

    async fn connect(store: &Path, folder: Option<TempDir>) -> Self {
        let (pipe, serving) = serve(store.to_owned());
        let (reader, writer) = tokio::io::split(pipe);
        let hello = Hello::new("test", "1");
        let connecting = Client::connect_lines(reader, writer, DEFAULT_LINE_LIMIT, hello, ());
        let client = tokio::time::timeout(DEADLINE, connecting)
            .await
            .expect("the server should say hello")
            .unwrap();
        Self {
            client,
            serving,
            _folder: folder,
        }
    }

    pub(crate) async fn stop(self) {
        self.client.close().await;
        drop(self.client);
        tokio::time::timeout(DEADLINE, self.serving)
            .await
            .expect("the server should end with its client")
            .unwrap()
            .unwrap();
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        let options = RequestOptions {
            timeout: Some(DEADLINE),
            ..RequestOptions::default()
        };
        match self
            .client
            .request(method, Some(raw(&params)), options)
            .await
        {
            Ok(result) => Ok(serde_json::from_str(result.get()).unwrap()),
            Err(RequestError::Rpc(error)) => Err(error),
            Err(other) => panic!("{method}: {other}"),
        }
    }

    /// The whole result of a call, whether the tool did its work or not.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        self.request("tools/call", params).await.unwrap()
    }

    /// The structured content of a call that must go well.
    pub(crate) async fn ok(&self, name: &str, arguments: Value) -> Value {
        let mut result = self.call(name, arguments).await;
        assert_eq!(result["isError"], false, "{name}: {result}");
        result["structuredContent"].take()
    }

    /// The message of a call that the tool must refuse.
    pub(crate) async fn refused(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        assert_eq!(result["isError"], true, "{name}: {result}");
        text(&result)
    }

    /// The ids of the notes that `name`, a listing tool, shows.
    pub(crate) async fn ids(&self, name: &str, arguments: Value) -> Vec<i64> {
        let found = self.ok(name, arguments).await;
        let notes = found["notes"].as_array().unwrap();
        notes
            .iter()
            .map(|note| note["id"].as_i64().unwrap())
            .collect()
    }

    pub(crate) async fn tools(&self) -> Vec<Value> {
        let mut result = self.request("tools/list", json!({})).await.unwrap();
        match result["tools"].take() {
            Value::Array(tools) => tools,
            other => panic!("{other}"),
        }
    }
}

/// The text of a result's only content block.
pub(crate) fn text(result: &Value) -> String {
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1);
    assert_eq!(content[0]["type"], "text");
    content[0]["text"].as_str().unwrap().to_owned()
}
