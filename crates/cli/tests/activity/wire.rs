//! Clients close to the wire: one connection that is kept, and that may be lost at any moment.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::support::Lane;

const VERSION: &str = "2025-11-25";

/// One HTTP connection. Whatever is nothing was lost with it.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    address: String,
}

/// A session of its own on `/mcp`, on a connection of its own.
pub(crate) struct McpClient {
    connection: Connection,
    session: String,
    next_request: u64,
}

/// One event of `/events`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerEvent {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

/// A stream of events that is being read.
pub(crate) struct Events {
    // Dropping the sender would end the connection.
    _connection: Connection,
    body: Incoming,
    buffer: String,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Option<Self> {
        Self::over(TcpStream::connect(address).await.ok()?, address).await
    }

    pub(crate) async fn over(stream: TcpStream, address: &str) -> Option<Self> {
        stream.set_nodelay(true).ok()?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        Some(Self {
            sender,
            address: address.to_owned(),
        })
    }

    /// Status and body.
    pub(crate) async fn get(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Option<(u16, String)> {
        let answer = self.send(Method::GET, path, headers, String::new()).await?;
        Some((answer.status().as_u16(), text(answer).await?))
    }

    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Option<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body)).expect("a request");
        self.sender.ready().await.ok()?;
        self.sender.send_request(request).await.ok()
    }
}

impl McpClient {
    /// Connects and performs the handshake.
    pub(crate) async fn connect(address: &str) -> Option<Self> {
        let mut client = Self {
            connection: Connection::open(address).await?,
            session: String::new(),
            next_request: 1,
        };
        let initialize = json!({
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": {"name": "activity-test", "version": "1"},
        });
        let (headers, _) = client.request("initialize", &initialize).await?;
        let session = headers.get("mcp-session-id").expect("a session id");
        session.to_str().unwrap().clone_into(&mut client.session);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.post(initialized.to_string()).await?;
        Some(client)
    }

    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Calls a tool of mcpproxy; the result, or nothing if the connection was lost.
    pub(crate) async fn call(&mut self, variant: &str, arguments: &Value) -> Option<Value> {
        let params = json!({"name": variant, "arguments": arguments});
        let (_, mut answer) = self.request("tools/call", &params).await?;
        assert!(answer.get("error").is_none(), "{answer}");
        Some(answer["result"].take())
    }

    /// Calls the tool of a lane, which has to be carried out.
    pub(crate) async fn succeed(&mut self, lane: Lane, arguments: &Value) -> Value {
        let result = self.call(lane.variant, &lane.call(arguments)).await;
        let result = result.expect("the daemon answers");
        assert_ne!(result["isError"], true, "{result}");
        result
    }

    /// Calls the tool of a lane, which has to be refused; the code and the message.
    pub(crate) async fn refused(&mut self, variant: &str, arguments: &Value) -> (String, String) {
        let result = self.call(variant, arguments).await;
        let result = result.expect("the daemon answers");
        assert_eq!(result["isError"], true, "{result}");
        let member = |name: &str| {
            let text = result["structuredContent"][name].as_str();
            text.unwrap_or_else(|| panic!("no {name} in {result}"))
                .to_owned()
        };
        (member("code"), member("message"))
    }

    async fn request(&mut self, method: &str, params: &Value) -> Option<(HeaderMap, Value)> {
        let id = self.next_request;
        self.next_request += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = self.post(request.to_string()).await?;
        let headers = answer.headers().clone();
        let body = text(answer).await?;
        // As an event stream, the answer is the last event.
        let json = match body.rfind("data:") {
            Some(place) if !body.starts_with('{') => &body[place + "data:".len()..],
            _ => &body,
        };
        let answer: Value =
            serde_json::from_str(json.trim()).unwrap_or_else(|error| panic!("{error} in {body}"));
        assert_eq!(answer["id"], id, "{body}");
        Some((headers, answer))
    }

    async fn post(&mut self, body: String) -> Option<Response<Incoming>> {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", VERSION),
        ];
        if !self.session.is_empty() {
            headers.push(("mcp-session-id", &self.session));
        }
        self.connection
            .send(Method::POST, "/mcp", &headers, body)
            .await
    }
}

impl Events {
    /// Watches with these filters (`?name=value`), from now on or from after an event.
    pub(crate) async fn watch(
        address: &str,
        key: &str,
        query: &str,
        after: Option<u64>,
    ) -> Result<Self, (u16, String)> {
        let connection = Connection::open(address).await.expect("a connection");
        Self::over(connection, key, query, after).await
    }

    /// Like [`Events::watch`], over a connection that is there.
    pub(crate) async fn over(
        mut connection: Connection,
        key: &str,
        query: &str,
        after: Option<u64>,
    ) -> Result<Self, (u16, String)> {
        let after = after.map(|id| id.to_string());
        let mut headers = vec![("x-api-key", key)];
        if let Some(after) = &after {
            headers.push(("last-event-id", after));
        }
        let path = format!("/events{query}");
        let answer = connection
            .send(Method::GET, &path, &headers, String::new())
            .await
            .expect("the daemon answers");
        if answer.status() != 200 {
            let status = answer.status().as_u16();
            return Err((status, text(answer).await.unwrap_or_default()));
        }
        Ok(Self {
            _connection: connection,
            body: answer.into_body(),
            buffer: String::new(),
        })
    }

    /// The next event; nothing when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<ServerEvent> {
        loop {
            while let Some(end) = self.buffer.find("\n\n") {
                let event: String = self.buffer.drain(..end + 2).collect();
                if let Some(event) = parse(&event) {
                    return Some(event);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            let data = frame.into_data().unwrap_or_default();
            self.buffer
                .push_str(std::str::from_utf8(&data).expect("events are ASCII here"));
        }
    }
}

/// Comments, which keep the connection alive, are no events.
fn parse(text: &str) -> Option<ServerEvent> {
    let field = |name: &str| {
        let lines = text.lines();
        lines
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim_start)
            .next()
    };
    Some(ServerEvent {
        id: field("id").map(|id| id.parse().expect("a number")),
        name: field("event")?.to_owned(),
        data: serde_json::from_str(field("data")?).expect("data is JSON"),
    })
}

async fn text(answer: Response<Incoming>) -> Option<String> {
    let body = answer.into_body().collect().await.ok()?.to_bytes();
    Some(String::from_utf8(body.to_vec()).expect("an answer is UTF-8"))
}
