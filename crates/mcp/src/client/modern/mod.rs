//! A modern server: every request stands by itself. What only legacy servers know, such as a log
//! level that lasts or a subscription, is kept here and put into the requests that need it.

mod channel;
mod discover;
mod envelope;
mod input;
mod listen;
mod tools;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

pub(super) use self::channel::Carrier;
pub use self::tools::ToolHeaders;

use self::channel::{Call, Channel};
use self::discover::discover;
use self::envelope::{Additions, Identity, Retry};
use self::input::{InputRequired, may_ask};
use self::listen::Listening;
use super::era::Refused;
use super::events::Origin;
use super::in_flight::Deadline;
use super::incoming::Incoming;
use super::pending::{Answer, Closed};
use super::{
    CloseReason, ConnectError, Handshake, Hello, Listing, ListingBudget, ProtocolError,
    RequestError, RequestOptions,
};
use crate::lock::lock;
use crate::message::empty_object;
use crate::modern::methods;
use crate::{ErrorObject, codes};

/// How often a server may ask for input before it answers a call.
const MOST_ROUNDS: usize = 10;

/// How long a server is left alone that wants to be asked again without having asked anything.
const PAUSE: Duration = Duration::from_millis(100);

/// A way to a server that may turn out to be modern.
#[derive(Debug)]
pub(super) struct ModernProbe {
    channel: Arc<Channel>,
    budget: ListingBudget,
}

#[derive(Debug)]
pub(super) struct Modern {
    channel: Arc<Channel>,
    handshake: Arc<Handshake>,
    /// Goes along with every request, once it is set.
    log_level: Mutex<Option<Box<RawValue>>>,
    tools: ToolHeaders,
    /// What a listing may take that is made on behalf of a call.
    budget: ListingBudget,
    listening: Listening,
}

// === impl ModernProbe ===

impl ModernProbe {
    pub(super) fn new(
        carrier: Carrier,
        hello: &Hello,
        incoming: Arc<Incoming>,
    ) -> Result<Self, ConnectError> {
        let channel = Channel {
            carrier,
            identity: Identity::new(hello).map_err(ConnectError::Discovery)?,
            incoming,
        };
        Ok(Self {
            channel: Arc::new(channel),
            budget: hello.listing,
        })
    }

    pub(super) async fn discover(&self) -> Result<Handshake, Refused> {
        discover(&self.channel).await
    }

    pub(super) fn connected(self, handshake: Handshake) -> Modern {
        let listening = Listening::start(Arc::clone(&self.channel), &handshake);
        Modern {
            channel: self.channel,
            handshake: Arc::new(handshake),
            log_level: Mutex::default(),
            tools: ToolHeaders::default(),
            budget: self.budget,
            listening,
        }
    }
}

// === impl Modern ===

impl Modern {
    pub(super) fn handshake(&self) -> Arc<Handshake> {
        Arc::clone(&self.handshake)
    }

    pub(super) fn closed(&self) -> &Closed {
        self.channel.carrier.closed()
    }

    pub(super) fn abandon(&self, reason: CloseReason) {
        self.channel.carrier.abandon(reason);
    }

    pub(super) async fn close(&self) {
        self.channel.carrier.close().await;
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: Option<&RawValue>,
        options: &RequestOptions,
    ) -> Answer {
        let log_level = lock(&self.log_level).clone();
        let call = Call {
            method,
            params,
            additions: Additions {
                capabilities: options.capabilities.as_deref(),
                log_level: log_level.as_deref(),
                retry: None,
            },
            origin: options.call.map_or(Origin::Connection, Origin::Call),
            deadline: Deadline::after(options.timeout, &self.channel.incoming.timer),
            repeatable: options.repeatable || method != "tools/call",
        };
        match method {
            "logging/setLevel" => {
                let SetLevel { level } = parse(params)?;
                *lock(&self.log_level) = to_raw_value(&level).ok();
                Ok(empty_object())
            }
            "resources/subscribe" => {
                let Resource { uri } = parse(params)?;
                call.deadline.bound(self.listening.add(uri)).await?;
                Ok(empty_object())
            }
            "resources/unsubscribe" => {
                let Resource { uri } = parse(params)?;
                self.listening.remove(&uri);
                Ok(empty_object())
            }
            "ping" => {
                let call = Call {
                    method: methods::DISCOVER,
                    ..call
                };
                self.channel.call(call, &[]).await?;
                Ok(empty_object())
            }
            "tools/list" => self.list_tools(call).await,
            "tools/call" => match self.rounds(call).await {
                Err(RequestError::Rpc(error)) if self.may_know_tools_better(&error) => {
                    self.learn_tools(call).await?;
                    if !call.repeatable {
                        // The next call has the headers that this one lacked.
                        return Err(RequestError::Rpc(error));
                    }
                    self.rounds(call).await
                }
                answer => answer,
            },
            _ if may_ask(method) => self.rounds(call).await,
            _ => self.channel.call(call, &[]).await,
        }
    }

    pub(super) async fn notify(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), RequestError> {
        match method {
            // The era has no use for these.
            "notifications/initialized"
            | "notifications/roots/list_changed"
            | "notifications/progress" => Ok(()),
            _ => self.channel.notify(method, params).await,
        }
    }

    /// Sends the request again and again, each time with what the server wanted to know, until it
    /// is answered.
    async fn rounds(&self, call: Call<'_>) -> Answer {
        let mut retry: Option<Retry> = None;
        let mut rounds = 0;
        loop {
            let additions = Additions {
                retry: retry.as_ref(),
                ..call.additions
            };
            let headers = match call.method {
                "tools/call" if self.over_http() => self.tools.headers(call.params),
                _ => Vec::new(),
            };
            let sending = self.channel.call(Call { additions, ..call }, &headers);
            let result = sending.await?;
            let Some(required) = InputRequired::parse(&result)? else {
                return Ok(result);
            };
            rounds += 1;
            if rounds == MOST_ROUNDS {
                let error = ProtocolError::InputRounds { rounds };
                return Err(RequestError::Protocol(error));
            }
            let answering = self.answer(required, call.origin);
            retry = Some(call.deadline.bound(answering).await?);
        }
    }

    async fn answer(&self, required: InputRequired, origin: Origin) -> Result<Retry, RequestError> {
        if !required.has_questions() {
            tokio::time::sleep(PAUSE).await;
        }
        required.answer(&self.channel.incoming, origin).await
    }

    async fn list_tools(&self, call: Call<'_>) -> Answer {
        let result = self.channel.call(call, &[]).await?;
        // Only HTTP has headers.
        if self.over_http() {
            return Ok(self.tools.learn(result));
        }
        Ok(result)
    }

    /// Whether a call was refused for headers that we might get right with a newer list of tools.
    fn may_know_tools_better(&self, error: &ErrorObject) -> bool {
        self.over_http() && error.code == codes::HEADER_MISMATCH
    }

    /// Lists the tools for what can be learnt from that, on behalf of a call. A list that goes
    /// beyond its budget has been learnt from as far as it was read.
    async fn learn_tools(&self, call: Call<'_>) -> Result<(), RequestError> {
        let mut listing = Listing::begin(self.budget);
        let mut params = None;
        while let Ok(left) = listing.time_left() {
            let request = Call {
                method: "tools/list",
                params: params.as_deref(),
                repeatable: true,
                ..call
            };
            let Ok(page) = tokio::time::timeout(left, self.list_tools(request)).await else {
                break;
            };
            let page = page?;
            let Ok(Page { tools, next_cursor }) = serde_json::from_str(page.get()) else {
                break;
            };
            let Ok(Some(cursor)) = listing.turn(page.get().len(), tools.len(), next_cursor) else {
                break;
            };
            let cursor = to_raw_value(&serde_json::json!({ "cursor": cursor }));
            params = Some(cursor.map_err(RequestError::Params)?);
        }
        Ok(())
    }

    fn over_http(&self) -> bool {
        matches!(self.channel.carrier, Carrier::Http { .. })
    }
}

#[derive(Deserialize)]
struct SetLevel {
    level: String,
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

/// Reads the params of a request that is answered here, as the server would have.
fn parse<'de, T: Deserialize<'de>>(params: Option<&'de RawValue>) -> Result<T, RequestError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| RequestError::Rpc(ErrorObject::invalid_params(error.to_string())))
}
