//! `conformance-rmcp --transport http|stdio --era both|legacy|modern`: the fixture of the foreign servers on rmcp, the
//! official Rust SDK.
//!
//! Over HTTP it prints its URL as a line of JSON once it listens.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
#[expect(deprecated, reason = "legacy clients set the level of logs")]
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    InputRequests, InputRequiredResult, InputResponses, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerConfig, ServerNotification, ServerRequest, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use testkit::conformance::Eras;
use tokio::sync::Mutex;
use tokio::time::sleep;

const BETWEEN_NOTIFICATIONS: Duration = Duration::from_millis(50);

#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value = "http")]
    transport: String,
    #[arg(long, default_value = "both")]
    era: Eras,
}

#[derive(Debug, Clone)]
struct Server(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    fixture: Value,
    eras: Eras,
    /// The streams of `subscriptions/listen`.
    streams: Mutex<Vec<SubscriptionSink>>,
    /// What the state of a call is sealed with.
    seal: RandomState,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let server = Server(Arc::new(Shared {
        fixture: serde_json::from_str(include_str!("../../foreign/fixture.json"))?,
        eras: arguments.era,
        streams: Mutex::default(),
        seal: RandomState::new(),
    }));
    if arguments.transport == "stdio" {
        let pipes = (tokio::io::stdin(), tokio::io::stdout());
        server.serve(pipes).await?.waiting().await?;
        return Ok(());
    }
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    writeln!(std::io::stdout(), "{}", json!({"url": url}))?;
    let router = axum::Router::new().nest_service("/mcp", service);
    Ok(axum::serve(listener, router).await?)
}

impl Server {
    fn entries(&self, list: &str) -> &[Value] {
        self.0.fixture[list].as_array().map_or(&[], Vec::as_slice)
    }

    fn entry(&self, list: &str, name: &str) -> Result<&Value, ErrorData> {
        let mut entries = self.entries(list).iter();
        let unknown = || ErrorData::invalid_params(format!("Unknown name: {name}"), None);
        entries
            .find(|entry| entry["name"] == name)
            .ok_or_else(unknown)
    }

    /// The seal of a state, without which it is refused.
    fn sealed(&self, state: &str) -> String {
        let seal = self.0.seal.hash_one(state);
        format!("{state}.{seal:x}")
    }

    /// The next questions of an entry with rounds, or none when all are answered.
    fn questions(
        &self,
        entry: &Value,
        answers: Option<&InputResponses>,
        state: Option<&str>,
        declared: &Value,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let Some(rounds) = entry["rounds"].as_array() else {
            return Ok(None);
        };
        let keeps_state = entry["state"] == true;
        let mut round = 0;
        if let Some(state) = state {
            let (plain, _) = state.split_once('.').unwrap_or_default();
            if self.sealed(plain) != state {
                return Err(ErrorData::invalid_params("Invalid request state", None));
            }
            round = plain.parse().unwrap_or_default();
        }
        let given = |key: &String| {
            answers
                .and_then(|answers| answers.get(key))
                .is_some_and(Value::is_object)
        };
        let asked = |round: usize| rounds.get(round).and_then(Value::as_object);
        let answered = asked(round).is_some_and(|asked| asked.keys().all(given));
        if answered && (state.is_some() || !keeps_state) {
            round += 1;
        }
        let mut requests = InputRequests::new();
        for (key, question) in asked(round).into_iter().flatten() {
            let method = question["method"].as_str().unwrap_or_default();
            let capability = method.split('/').next().unwrap_or_default();
            if entry["onlyDeclared"] == true && declared.get(capability).is_none() {
                continue;
            }
            requests.insert(key.clone(), read(question.clone())?);
        }
        if requests.is_empty() {
            return Ok(None);
        }
        let mut result = InputRequiredResult::from_input_requests(requests);
        result.request_state = keeps_state.then(|| self.sealed(&round.to_string()));
        Ok(Some(result))
    }

    async fn announce(
        &self,
        what: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let method = format!("notifications/{what}/list_changed");
        let streams = self.0.streams.lock().await.clone();
        for stream in streams {
            // A stream that has ended needs no news.
            let _ = match what {
                "tools" => stream.notify_tool_list_changed().await,
                _ => stream.notify_prompt_list_changed().await,
            };
        }
        if !is_modern(context) {
            notify(context, &json!({"method": method})).await?;
        }
        Ok(())
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "logging": {},
            "completions": {},
        });
        let capabilities = serde_json::from_value(capabilities).unwrap_or_default();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rmcp-fixture", "1.0.0"))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let all = ProtocolVersion::KNOWN_VERSIONS.iter();
        let modern = |version: &ProtocolVersion| version.as_str() >= "2026";
        let of_eras = all.filter(|version| match self.0.eras {
            Eras::Both => true,
            Eras::Legacy => !modern(version),
            Eras::Modern => modern(version),
        });
        of_eras.cloned().collect()
    }

    /// Tools whose arguments are compared with headers.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        read(shown(self.entry("tools", name).ok()?)).ok()
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let stream = context.sink().clone();
        self.0.streams.lock().await.push(stream);
        context.cancelled().await;
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools: Vec<_> = self.entries("tools").iter().map(shown).collect();
        result(json!({"tools": tools}))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.entry("tools", &request.name)?;
        let declared = context.client_capabilities();
        let declared = serde_json::to_value(declared).unwrap_or_default();
        if let Some(needed) = tool["needs"].as_str()
            && declared.get(needed).is_none()
        {
            let needed = read(json!({needed: {}}))?;
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        if let Some(token) = context.meta.get_progress_token() {
            for progress in tool["progress"].as_array().into_iter().flatten() {
                let params = json!({"progressToken": token, "progress": progress, "total": 100});
                notify(
                    &context,
                    &json!({"method": "notifications/progress", "params": params}),
                )
                .await?;
                sleep(BETWEEN_NOTIFICATIONS).await;
            }
        }
        if !is_modern(&context) || context.meta.log_level().is_some() {
            for line in tool["logs"].as_array().into_iter().flatten() {
                let params = json!({"level": "info", "data": line});
                notify(
                    &context,
                    &json!({"method": "notifications/message", "params": params}),
                )
                .await?;
                sleep(BETWEEN_NOTIFICATIONS).await;
            }
        }
        if let Some(what) = tool["changes"].as_str() {
            self.announce(what, &context).await?;
        }
        if tool.get("asks").is_some() {
            let question = filled(&tool["asks"], request.arguments.as_ref());
            if self.0.eras == Eras::Modern {
                let asking = json!({"rounds": [{"answer": question}]});
                let answers = request.input_responses.as_ref();
                let asked = self.questions(&asking, answers, None, &declared)?;
                let text = ContentBlock::text(format!("{answers:?}"));
                let done = || CallToolResult::success(vec![text]).into();
                return Ok(asked.map_or_else(done, CallToolResponse::from));
            }
            let asked: ServerRequest = read(question)?;
            return match context.peer.send_request(asked).await {
                Ok(answer) => {
                    let answer = serde_json::to_string(&answer).unwrap_or_default();
                    let text = ContentBlock::text(format!("The client answered: {answer}"));
                    Ok(CallToolResult::success(vec![text]).into())
                }
                Err(error) => {
                    let text = ContentBlock::text(error.to_string());
                    Ok(CallToolResult::error(vec![text]).into())
                }
            };
        }
        let (answers, state) = (
            request.input_responses.as_ref(),
            request.request_state.as_deref(),
        );
        if let Some(asked) = self.questions(tool, answers, state, &declared)? {
            return Ok(asked.into());
        }
        Ok(result::<CallToolResult>(tool["result"].clone())?.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts: Vec<_> = self.entries("prompts").iter().map(shown).collect();
        result(json!({"prompts": prompts}))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt = self.entry("prompts", &request.name)?;
        let answers = request.input_responses.as_ref();
        if let Some(asked) = self.questions(prompt, answers, None, &Value::Null)? {
            return Ok(asked.into());
        }
        let messages = filled(&prompt["messages"], request.arguments.as_ref());
        Ok(result::<GetPromptResult>(json!({"messages": messages}))?.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources: Vec<_> = self.entries("resources").iter().map(shown).collect();
        result(json!({"resources": resources}))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        result(json!({"resourceTemplates": [shown(&self.0.fixture["template"])]}))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let mut resources = self.entries("resources").iter();
        let found = match id {
            Some(_) => Some(&self.0.fixture["template"]),
            None => resources.find(|resource| resource["uri"] == uri),
        };
        let Some(found) = found else {
            let data = Some(json!({"uri": uri}));
            return Err(if is_modern(&context) {
                ErrorData::invalid_params("Resource not found", data)
            } else {
                ErrorData::resource_not_found("Resource not found", data)
            });
        };
        let arguments = Map::from_iter([("id".to_owned(), json!(id.unwrap_or_default()))]);
        let mut contents = filled(&found["contents"], Some(&arguments));
        contents["uri"] = uri.into();
        contents["mimeType"] = found["mimeType"].clone();
        Ok(result::<ReadResourceResult>(json!({"contents": [contents]}))?.into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        result(json!({"completion": {"values": ["test", "testing"], "total": 2, "hasMore": false}}))
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    #[expect(deprecated, reason = "legacy clients set it")]
    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= "2026")
}

async fn notify(
    context: &RequestContext<RoleServer>,
    notification: &Value,
) -> Result<(), ErrorData> {
    let notification: ServerNotification = read(notification.clone())?;
    // A client that is gone need not be told.
    let _ = context.peer.send_notification(notification).await;
    Ok(())
}

/// A type of the SDK from its JSON.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A result of the SDK from its JSON. The SDK leaves `resultType` out for legacy clients.
fn result<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = "complete".into();
    read(value)
}

/// A definition as clients see it.
fn shown(entry: &Value) -> Value {
    const SHOWN: [&str; 7] = [
        "name",
        "description",
        "inputSchema",
        "arguments",
        "uri",
        "uriTemplate",
        "mimeType",
    ];
    let members = entry.as_object().into_iter().flatten();
    let shown = members.filter(|(name, _)| SHOWN.contains(&name.as_str()));
    shown
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The fixture's value with every `{name}` replaced by the argument of that name.
fn filled(value: &Value, arguments: Option<&Map<String, Value>>) -> Value {
    match value {
        Value::String(text) => {
            let arguments = arguments.into_iter().flatten();
            let replaced = arguments.fold(text.clone(), |text, (name, value)| {
                let value = value.as_str().unwrap_or_default();
                text.replace(&format!("{{{name}}}"), value)
            });
            Value::String(replaced)
        }
        Value::Array(items) => items.iter().map(|item| filled(item, arguments)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, item)| (name.clone(), filled(item, arguments)))
            .collect(),
        other => other.clone(),
    }
}
