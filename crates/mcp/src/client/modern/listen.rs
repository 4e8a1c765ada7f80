//! One stream on which a modern server tells of changes: of its lists, as a legacy server would
//! unasked, and of the resources that were subscribed to.
//!
//! What is wanted may change at any time, and a stream may end. A new one is opened before the old
//! one is given up, so that nothing falls between them.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::channel::{Call, Channel};
use super::envelope::Additions;
use crate::client::events::Origin;
use crate::client::in_flight::Deadline;
use crate::client::pending::Answer;
use crate::client::{Handshake, RequestError};
use crate::modern::{SubscriptionFilter, methods};
use crate::{ErrorObject, Notification, codes};

/// How long a server may take to acknowledge. One that says nothing is taken to have agreed.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(10);

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// A stream that lived this long was a good one, and is missed.
const HEALTHY_AFTER: Duration = Duration::from_secs(5);

/// What is wanted of the stream, and what became of it.
#[derive(Debug)]
pub(super) struct Listening {
    wanted: watch::Sender<Wanted>,
    standing: watch::Receiver<ListenStatus>,
    /// Held while one resource is added, so that a refusal is about that one.
    adding: Mutex<()>,
}

#[derive(Debug, Clone, Default)]
struct Wanted {
    filter: SubscriptionFilter,
    /// Grows with every change.
    generation: u64,
}

/// How the newest attempt ended, and which generation it was for.
#[derive(Debug, Clone, Default)]
struct ListenStatus {
    generation: u64,
    outcome: Outcome,
}

#[derive(Debug, Clone)]
enum Outcome {
    Accepted(SubscriptionFilter),
    Refused(ErrorObject),
    /// Not now; it is tried again.
    Failed,
}

struct Listener {
    channel: Arc<Channel>,
    wanted: watch::Receiver<Wanted>,
    standing: watch::Sender<ListenStatus>,
}

/// An open stream. Dropping it closes it.
struct Stream {
    task: AbortOnDropHandle<Answer>,
    accepted: SubscriptionFilter,
    since: Instant,
}

/// What is known of a stream while it is open, however it ends.
struct Entry {
    channel: Arc<Channel>,
    id: u64,
}

// === impl Listening ===

impl Listening {
    /// Listens in the background for as long as there is a client.
    pub(super) fn start(channel: Arc<Channel>, handshake: &Handshake) -> Self {
        let filter = SubscriptionFilter {
            tools_list_changed: handshake.announces_tool_changes(),
            prompts_list_changed: handshake.announces_prompt_changes(),
            resources_list_changed: handshake.announces_resource_changes(),
            resource_subscriptions: BTreeSet::new(),
        };
        let (wanted, wanted_receiver) = watch::channel(Wanted {
            filter,
            generation: 1,
        });
        let (standing_sender, standing) = watch::channel(ListenStatus::default());
        let gone = channel.incoming.gone().clone();
        let listener = Listener {
            channel,
            wanted: wanted_receiver,
            standing: standing_sender,
        };
        tokio::spawn(async move { gone.run_until_cancelled(listener.run()).await });
        Self {
            wanted,
            standing,
            adding: Mutex::default(),
        }
    }

    /// Adds a resource, and waits until the server has agreed to tell of it.
    pub(super) async fn add(&self, uri: String) -> Result<(), RequestError> {
        let _turn = self.adding.lock().await;
        let generation = self.change(|resources| resources.insert(uri.clone()));
        let mut standing = self.standing.clone();
        let settled = standing.wait_for(|standing| standing.generation >= generation);
        let outcome = match settled.await {
            Ok(standing) => standing.outcome.clone(),
            // The listener has given up for good.
            Err(_) => Outcome::Refused(ErrorObject::method_not_found(methods::LISTEN)),
        };
        let refusal = match outcome {
            Outcome::Accepted(accepted) if accepted.resource_subscriptions.contains(&uri) => {
                return Ok(());
            }
            // It stays wanted, and is asked for again with everything else.
            Outcome::Failed => return Ok(()),
            Outcome::Accepted(_) => {
                ErrorObject::invalid_params(format!("The server does not tell of changes of {uri}"))
            }
            Outcome::Refused(error) => error,
        };
        self.remove(&uri);
        Err(RequestError::Rpc(refusal))
    }

    pub(super) fn remove(&self, uri: &str) {
        self.change(|resources| resources.remove(uri));
    }

    /// Changes the resources. The generation from which on that is in force.
    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>) -> bool) -> u64 {
        let mut generation = 0;
        self.wanted.send_if_modified(|wanted| {
            let changed = change(&mut wanted.filter.resource_subscriptions);
            wanted.generation += u64::from(changed);
            generation = wanted.generation;
            changed
        });
        generation
    }
}

// === impl Listener ===

impl Listener {
    async fn run(mut self) {
        let mut stream = None;
        let mut interrupted = false;
        let mut pause = SHORTEST_PAUSE;
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            let outcome = match self.attempt(&wanted.filter).await {
                Ok(opened) => {
                    stream = opened;
                    let accepted = stream.as_ref().map(|it| it.accepted.clone());
                    let accepted = accepted.unwrap_or_default();
                    if std::mem::take(&mut interrupted) {
                        self.announce(&accepted);
                    }
                    Outcome::Accepted(accepted)
                }
                Err(RequestError::Closed(_) | RequestError::NotSent(_)) => return,
                Err(RequestError::Rpc(error)) if error.code == codes::METHOD_NOT_FOUND => {
                    tracing::debug!("the server does not tell of changes");
                    return;
                }
                Err(RequestError::Rpc(error)) => Outcome::Refused(error),
                Err(error) => {
                    tracing::debug!(?error, "the stream of changes could not be opened");
                    Outcome::Failed
                }
            };
            // A refusal is not repeated while there is an older stream to fall back on.
            let satisfied = match outcome {
                Outcome::Accepted(_) => true,
                Outcome::Refused(_) => stream.is_some(),
                Outcome::Failed => false,
            };
            self.standing.send_replace(ListenStatus {
                generation: wanted.generation,
                outcome,
            });
            tokio::select! {
                changed = self.wanted.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                life = ended(&mut stream) => {
                    tracing::debug!("the stream of changes ended");
                    interrupted = true;
                    if life >= HEALTHY_AFTER {
                        pause = SHORTEST_PAUSE;
                    }
                    self.rest(pause).await;
                }
                () = tokio::time::sleep(pause), if !satisfied => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits before the next attempt, unless something new is wanted.
    async fn rest(&mut self, pause: Duration) {
        let _ = tokio::time::timeout(pause, self.wanted.changed()).await;
    }

    /// Opens a stream, if anything is wanted of it.
    async fn attempt(&self, filter: &SubscriptionFilter) -> Result<Option<Stream>, RequestError> {
        if filter.is_empty() {
            return Ok(None);
        }
        self.open(filter).await.map(Some)
    }

    async fn open(&self, filter: &SubscriptionFilter) -> Result<Stream, RequestError> {
        #[derive(Serialize)]
        struct Params<'a> {
            notifications: &'a SubscriptionFilter,
        }

        let params = to_raw_value(&Params {
            notifications: filter,
        })
        .map_err(RequestError::Params)?;
        let channel = Arc::clone(&self.channel);
        let id = channel.carrier.next_id();
        let (acknowledged, ended) = channel.incoming.subscriptions.expect(id);
        let entry = Entry {
            channel: Arc::clone(&channel),
            id,
        };
        let mut task = AbortOnDropHandle::new(tokio::spawn(async move {
            let _entry = entry;
            let call = Call {
                method: methods::LISTEN,
                params: Some(&params),
                additions: Additions::default(),
                origin: Origin::Connection,
                deadline: Deadline::NONE,
                repeatable: true,
            };
            let given_up = async {
                ended.cancelled().await;
                channel.carrier.forget(id);
            };
            tokio::select! {
                answer = channel.send(id, call, &[]) => answer,
                () = given_up => Err(RequestError::StreamEnded),
            }
        }));
        let accepted = tokio::select! {
            biased;
            Ok(accepted) = acknowledged => accepted,
            answer = &mut task => return Err(match answer {
                Ok(Err(error)) => error,
                // It ended at once, or the runtime is shutting down.
                Ok(Ok(_)) | Err(_) => RequestError::StreamEnded,
            }),
            () = tokio::time::sleep(ACKNOWLEDGEMENT) => filter.clone(),
        };
        Ok(Stream {
            task,
            accepted,
            since: Instant::now(),
        })
    }

    /// Tells of every change that may have been missed while no stream was open.
    fn announce(&self, accepted: &SubscriptionFilter) {
        let lists = [
            (accepted.tools_list_changed, "tools"),
            (accepted.prompts_list_changed, "prompts"),
            (accepted.resources_list_changed, "resources"),
        ];
        let incoming = &self.channel.incoming;
        for (_, list) in lists.into_iter().filter(|(accepted, _)| *accepted) {
            let method = format!("notifications/{list}/list_changed");
            incoming.notification(Notification::new(method, None), Origin::Connection);
        }
        for uri in &accepted.resource_subscriptions {
            let params = to_raw_value(&serde_json::json!({ "uri": uri })).ok();
            let updated = Notification::new("notifications/resources/updated", params);
            incoming.notification(updated, Origin::Connection);
        }
    }
}

/// Waits until the stream has ended, for ever if there is none. How long it lived.
async fn ended(stream: &mut Option<Stream>) -> Duration {
    let Some(open) = stream else {
        return pending().await;
    };
    let _ = (&mut open.task).await;
    let life = open.since.elapsed();
    *stream = None;
    life
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.channel.incoming.subscriptions.forget(self.id);
    }
}

impl Default for Outcome {
    fn default() -> Self {
        Self::Accepted(SubscriptionFilter::default())
    }
}
