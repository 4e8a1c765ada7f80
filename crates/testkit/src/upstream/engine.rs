//! Answers messages as the script says, whatever they came over.

use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};

use super::record::Recorder;
use super::script::{Churn, Outcome, Part, Script, Tool};

const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// One upstream.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) script: Script,
    pub(super) recorder: Recorder,
    tools: RwLock<Vec<Tool>>,
    /// How often the tools were listed.
    listings: AtomicUsize,
    /// Messages that belong to no request.
    pub(super) announcements: broadcast::Sender<String>,
}

/// Something that goes back because of a request.
#[derive(Debug)]
pub(super) enum Line {
    Aside(String),
    Answer(String),
    /// Bytes that are no message.
    Raw(Vec<u8>),
    /// What there is of an answer when the stream ends too early.
    Half(String),
}

/// How the process is to end.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Crash,
    Exit(i32),
    /// Not at all: it stops and stays.
    Freeze,
}

/// A message as far as the upstream looks into it.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<Box<RawValue>>,
    pub(super) method: Option<String>,
    pub(super) params: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct CallParams {
    name: String,
    #[serde(rename = "_meta", default)]
    meta: Value,
}

impl Engine {
    pub(super) fn new(script: Script, record: &Path) -> Self {
        Self {
            tools: RwLock::new(script.tools.clone()),
            listings: AtomicUsize::new(0),
            script,
            recorder: Recorder::append_to(record),
            announcements: broadcast::Sender::new(64),
        }
    }

    /// Writes a message down and reads it. What is no message is only written down.
    pub(super) fn receive(&self, text: &str) -> Option<Message> {
        self.recorder.received(text);
        serde_json::from_str(text).ok()
    }

    /// Answers a request; a notification gets no answer. Returns how the process is to end, if it
    /// is.
    pub(super) async fn respond(
        &self,
        message: &Message,
        lines: &mpsc::Sender<Line>,
    ) -> Option<End> {
        let (Some(id), Some(method)) = (&message.id, &message.method) else {
            return None;
        };
        if self.script.hang_at.contains(method) {
            return std::future::pending().await;
        }
        let params = message.params.as_deref().map_or("{}", RawValue::get);
        let member = match method.as_str() {
            "initialize" => {
                sleep(self.script.start.delay_ms).await;
                self.greeted(params);
                result(&self.initialize_result(params))
            }
            "ping" => result("{}"),
            "tools/list" => result(&self.page(params)),
            "tools/call" => return self.call(id, params, lines).await,
            "resources/list" if self.has_resources() => result(&self.resources()),
            "resources/read" if self.has_resources() => self.read_resource(params),
            _ => error(-32601, "method not found"),
        };
        let _ = lines.send(Line::Answer(answer(id, &member))).await;
        None
    }

    async fn call(&self, id: &RawValue, params: &str, lines: &mpsc::Sender<Line>) -> Option<End> {
        let call: CallParams = serde_json::from_str(params).expect("the params of a call");
        let tool = self.tool(&call.name);
        let behaviour = tool.map(|tool| tool.behaviour).unwrap_or_default();
        for text in behaviour.before {
            let _ = lines.send(Line::Aside(text)).await;
        }
        if let Some(token) = call.meta.get("progressToken") {
            for step in 1..=behaviour.progress {
                let notification = progress(token, step, behaviour.progress);
                let _ = lines.send(Line::Aside(notification)).await;
            }
        }
        sleep(behaviour.delay_ms).await;
        let member = match behaviour.outcome {
            Outcome::Echo => result(&text_result(params)),
            Outcome::Return(text) => result(&text),
            Outcome::Error { code, message } => error(code, &message),
            Outcome::Huge { mebibytes } => result(&Part::Text.result(mebibytes << 20).to_string()),
            Outcome::ReplaceTools(tools) => {
                *self.tools.write().expect("the tools") = tools;
                let _ = self.announcements.send(LIST_CHANGED.to_owned());
                result(&text_result("replaced"))
            }
            Outcome::Large { part, mebibytes } => result(&part.result(mebibytes << 20).to_string()),
            Outcome::Frames(frames) => {
                for frame in frames {
                    let _ = lines.send(Line::Raw(frame)).await;
                }
                result(&text_result(params))
            }
            Outcome::EndlessLine => {
                let chunk = vec![b'x'; 1 << 16];
                while lines.send(Line::Raw(chunk.clone())).await.is_ok() {}
                return None;
            }
            Outcome::Truncate => {
                let whole = answer(id, &result(&text_result(&"x".repeat(1 << 12))));
                let half = whole[..whole.len() / 2].to_owned();
                let _ = lines.send(Line::Half(half)).await;
                return None;
            }
            Outcome::Hang => std::future::pending().await,
            Outcome::Crash => return Some(End::Crash),
            Outcome::Exit(code) => return Some(End::Exit(code)),
            Outcome::Freeze => return Some(End::Freeze),
        };
        let _ = lines.send(Line::Answer(answer(id, &member))).await;
        for text in behaviour.after {
            let _ = lines.send(Line::Aside(text)).await;
        }
        None
    }

    /// A client that can be asked something may be shown other tools.
    fn greeted(&self, params: &str) {
        let params: Value = serde_json::from_str(params).expect("params are JSON");
        let capable = params["capabilities"]
            .as_object()
            .is_some_and(|it| !it.is_empty());
        if let Some(tools) = self.script.tools_for_capable.as_ref().filter(|_| capable) {
            self.tools.write().expect("the tools").clone_from(tools);
        }
    }

    fn initialize_result(&self, params: &str) -> String {
        let params: Value = serde_json::from_str(params).expect("params are JSON");
        let mut capabilities = json!({"tools": {"listChanged": true}});
        if self.has_resources() {
            capabilities["resources"] = json!({});
        }
        json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": {"name": "scripted-upstream", "version": "1"},
        })
        .to_string()
    }

    fn has_resources(&self) -> bool {
        !self.script.resources.is_empty()
    }

    fn resources(&self) -> String {
        let resources = self.script.resources.keys();
        let resources: Vec<_> = resources
            .map(|uri| json!({"uri": uri, "name": uri}))
            .collect();
        json!({ "resources": resources }).to_string()
    }

    fn read_resource(&self, params: &str) -> String {
        let params: Value = serde_json::from_str(params).expect("params are JSON");
        let uri = params["uri"].as_str().unwrap_or_default();
        match self.script.resources.get(uri) {
            Some(text) => result(&json!({"contents": [{"uri": uri, "text": text}]}).to_string()),
            None => error(-32002, "no such resource"),
        }
    }

    /// Announces that the tools changed, as often as the script says.
    pub(super) async fn storm(&self) {
        let per_second = self.script.storm_per_second;
        if per_second == 0 {
            return std::future::pending().await;
        }
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / 100);
        loop {
            ticks.tick().await;
            for _ in 0..per_second.div_ceil(100) {
                let _ = self.announcements.send(LIST_CHANGED.to_owned());
            }
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        let tools = self.tools.read().expect("the tools");
        let is_called = |tool: &&Tool| tool.name().as_deref() == Some(name);
        tools.iter().find(is_called).cloned()
    }

    /// One page of `tools/list`. The cursor is the number of tools already listed.
    fn page(&self, params: &str) -> String {
        let listing = self.listings.fetch_add(1, Ordering::Relaxed);
        if let Some(bytes) = self.script.endless_cursor_bytes {
            return format!(r#"{{"tools":[],"nextCursor":"{listing:0>bytes$}"}}"#);
        }
        let params: Value = serde_json::from_str(params).expect("params are JSON");
        let start: usize = params["cursor"]
            .as_str()
            .map_or(0, |cursor| cursor.parse().expect("a cursor of ours"));
        let tools = self.tools.read().expect("the tools");
        let size = self.script.page_size.unwrap_or(tools.len());
        let end = (start + size).min(tools.len());
        let definitions: Vec<_> = tools[start..end]
            .iter()
            .map(|tool| self.script.churn.apply(&tool.definition, listing))
            .collect();
        let definitions = definitions.join(",");
        if end < tools.len() {
            format!(r#"{{"tools":[{definitions}],"nextCursor":"{end}"}}"#)
        } else {
            format!(r#"{{"tools":[{definitions}]}}"#)
        }
    }
}

impl Churn {
    /// A definition as it is announced in the listing with this number.
    fn apply(self, definition: &str, listing: usize) -> String {
        let changed = |pointer: &str, value: Value| {
            let mut definition: Value = serde_json::from_str(definition).expect("a definition");
            definition[pointer] = value;
            definition.to_string()
        };
        match self {
            Self::Nothing => definition.to_owned(),
            Self::Descriptions => changed("description", format!("Version {listing}").into()),
            Self::Annotations => changed(
                "annotations",
                json!({"readOnlyHint": listing.is_multiple_of(2)}),
            ),
        }
    }
}

impl Tool {
    /// Its name; a definition that makes no sense has none.
    fn name(&self) -> Option<String> {
        let definition: Value = serde_json::from_str(&self.definition).ok()?;
        definition["name"].as_str().map(str::to_owned)
    }
}

async fn sleep(milliseconds: u64) {
    if milliseconds > 0 {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}

fn text_result(text: &str) -> String {
    json!({"content": [{"type": "text", "text": text}]}).to_string()
}

fn progress(token: &Value, step: u32, total: u32) -> String {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {
            "progressToken": token,
            "progress": step,
            "total": total,
            "message": format!("step {step}"),
        },
    })
    .to_string()
}

fn result(text: &str) -> String {
    format!(r#""result":{text}"#)
}

fn error(code: i64, message: &str) -> String {
    let error = json!({"code": code, "message": message});
    format!(r#""error":{error}"#)
}

fn answer(id: &RawValue, member: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},{member}}}"#)
}
