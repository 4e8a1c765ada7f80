//! What the daemon says outside the client's requests, across restarts of the daemon: the stream of
//! a legacy session, and the streams of modern subscriptions.

use http::StatusCode;
use mcp::modern::{meta, methods};
use mcp::{Notification, RawValue, RequestId};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::Relay;
use super::frame::{Call, Frame, Peek};
use super::link::{Answer, Backoff, Events, Failed};
use super::session::Current;

/// How a stream of subscriptions ended.
enum Ended {
    /// The request was answered by an error.
    Refused,
    /// The daemon went away or is about to.
    Broken,
}

/// The params of `notifications/subscriptions/acknowledged`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Acknowledged {
    notifications: Filter,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
}

impl Relay {
    /// Passes on what comes on the stream of the session until stdin ends.
    pub(super) async fn follow_session(&self) {
        tokio::select! {
            () = self.stopping.cancelled() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&self) {
        let mut backoff = Backoff::endless();
        let mut last = None;
        loop {
            let session = self.session.current();
            let Some(id) = &session.id else {
                return;
            };
            let opened = Instant::now();
            match self.link.get(id, last.as_deref()).await {
                Ok(response) if response.status().is_success() => {
                    let Answer::Events(mut events) = Answer::of(response, self.event_limit) else {
                        return;
                    };
                    self.pass_while_current(&session, &mut events).await;
                    last = events.last.or(last);
                    backoff.after_stream(opened.elapsed());
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                    if let Err(error) = self.renew(session.generation).await {
                        tracing::debug!(%error, "the session was not opened again");
                    }
                }
                Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => return,
                Ok(response) => {
                    let status = response.status();
                    tracing::debug!(%status, "the stream of the session was refused");
                    // Perhaps the last event is no longer known; then what followed it is lost.
                    last = None;
                }
                Err(error) => tracing::debug!(%error, "the stream of the session is closed"),
            }
            if self.session.current().generation != session.generation {
                last = None;
            }
            backoff.wait().await;
        }
    }

    async fn pass_while_current(&self, session: &Current, events: &mut Events) {
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = session.superseded.cancelled() => return,
            };
            match event {
                Ok(Some(message)) => self.send(message).await,
                Ok(None) => return,
                Err(error) => return tracing::debug!(%error, "the stream of the session broke off"),
            }
        }
    }

    /// Keeps a stream of subscriptions open until the client cancels it or stdin ends.
    pub(super) async fn listen(&self, frame: Frame, call: Call) {
        let cancelled = call.cancelled.clone();
        tokio::select! {
            () = cancelled.cancelled() => {}
            () = self.stopping.cancelled() => {}
            () = self.keep_listening(frame, call) => {}
        }
    }

    async fn keep_listening(&self, frame: Frame, call: Call) {
        let mut backoff = Backoff::for_at_most(self.reconnect);
        let mut acknowledged = false;
        loop {
            let opened = Instant::now();
            // To subscribe twice does no harm, so it does not matter whether it was sent.
            let outcome = self.link.post(&frame.headers, None, frame.body.clone());
            let failed = match outcome.await.map(|it| Answer::of(it, self.event_limit)) {
                Ok(Answer::Plain(response)) => {
                    let mut waiting = vec![call];
                    if let Err(failed) = self.settle(response, &frame, &mut waiting).await {
                        self.fail(&mut waiting, &failed).await;
                    }
                    return;
                }
                Ok(Answer::Events(events)) => {
                    match self.subscribed(events, &call.id, &mut acknowledged).await {
                        Ended::Refused => return,
                        Ended::Broken => None,
                    }
                }
                Err(failed) => Some(failed.into_unsent()),
            };
            if acknowledged {
                backoff.forget_end();
                backoff.after_stream(opened.elapsed());
            }
            if !backoff.wait().await {
                let failed = failed.unwrap_or_else(|| Failed::Unsent("it ended".to_owned()));
                return self.fail(&mut vec![call], &failed).await;
            }
        }
    }

    /// Passes on one stream. The client is told once that it listens, and later that the lists it
    /// wants to hear of may have changed meanwhile.
    async fn subscribed(
        &self,
        mut events: Box<Events>,
        id: &RequestId,
        acknowledged: &mut bool,
    ) -> Ended {
        loop {
            let message = match events.next().await {
                Ok(Some(message)) => message,
                Ok(None) => return Ended::Broken,
                Err(error) => {
                    tracing::debug!(%error, "a stream of subscriptions broke off");
                    return Ended::Broken;
                }
            };
            let peeked = Peek::all(&message);
            let first = peeked.first();
            let is_acknowledgement =
                first.is_some_and(|it| it.method.as_deref() == Some(methods::ACKNOWLEDGED));
            if is_acknowledgement && *acknowledged {
                let params = first.and_then(|it| it.params);
                let changed = changed_lists(params, id);
                for notification in changed {
                    self.send(notification).await;
                }
                continue;
            }
            *acknowledged |= is_acknowledgement;
            if let Some(answer) = first.filter(|it| it.is_answer()) {
                // A result ends the stream in order, which the daemon does when it stops.
                if answer.result.is_some() && *acknowledged {
                    return Ended::Broken;
                }
                self.send(message).await;
                return Ended::Refused;
            }
            self.send(message).await;
        }
    }
}

/// Notifications that the lists of an acknowledged filter have changed.
fn changed_lists(params: Option<&RawValue>, id: &RequestId) -> Vec<Vec<u8>> {
    let acknowledged: Acknowledged = params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default();
    let filter = acknowledged.notifications;
    let tag = json!({"_meta": {meta::SUBSCRIPTION_ID: id}});
    [
        (filter.tools_list_changed, "tools"),
        (filter.prompts_list_changed, "prompts"),
        (filter.resources_list_changed, "resources"),
    ]
    .into_iter()
    .filter(|(wanted, _)| *wanted)
    .map(|(_, kind)| {
        let params = serde_json::value::to_raw_value(&tag).ok();
        Notification::new(format!("notifications/{kind}/list_changed"), params).encode()
    })
    .collect()
}
