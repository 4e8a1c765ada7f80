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
use crate::client::subscriptions::AcceptedFilter;
use crate::client::{Handshake, RequestError};
use crate::modern::methods;
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
    filter: Filter,
    /// Grows with every change.
    generation: u64,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    #[serde(skip_serializing_if = "is_false")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    resource_subscriptions: BTreeSet<String>,
}

/// How the newest attempt ended, and which generation it was for.
#[derive(Debug, Clone, Default)]
struct ListenStatus {
    generation: u64,
    outcome: Outcome,
}

#[derive(Debug, Clone)]
enum Outcome {
    AcceptedFilter(AcceptedFilter),
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
    honoured: AcceptedFilter,
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
        let filter = Filter {
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
            Outcome::AcceptedFilter(honoured) if honoured.resource_subscriptions.contains(&uri) => {
                return Ok(());
            }
            // It stays wanted, and is asked for again with everything else.
            Outcome::Failed => return Ok(()),
            Outcome::AcceptedFilter(_) => {
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
                    let honoured = stream.as_ref().map(|it| it.honoured.clone());
                    let honoured = honoured.unwrap_or_default();
                    if std::mem::take(&mut interrupted) {
                        self.announce(&honoured);
                    }
                    Outcome::AcceptedFilter(honoured)
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
                Outcome::AcceptedFilter(_) => true,
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
    async fn attempt(&self, filter: &Filter) -> Result<Option<Stream>, RequestError> {
        if filter.is_empty() {
            return Ok(None);
        }
        self.open(filter).await.map(Some)
    }

    async fn open(&self, filter: &Filter) -> Result<Stream, RequestError> {
        #[derive(Serialize)]
        struct Params<'a> {
            notifications: &'a Filter,
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
                deadline: Deadline::after(None),
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
        let honoured = tokio::select! {
            biased;
            Ok(honoured) = acknowledged => honoured,
            answer = &mut task => return Err(match answer {
                Ok(Err(error)) => error,
                // It ended at once, or the runtime is shutting down.
                Ok(Ok(_)) | Err(_) => RequestError::StreamEnded,
            }),
            () = tokio::time::sleep(ACKNOWLEDGEMENT) => filter.honoured(),
        };
        Ok(Stream {
            task,
            honoured,
            since: Instant::now(),
        })
    }

    /// Tells of every change that may have been missed while no stream was open.
    fn announce(&self, honoured: &AcceptedFilter) {
        let lists = [
            (honoured.tools_list_changed, "tools"),
            (honoured.prompts_list_changed, "prompts"),
            (honoured.resources_list_changed, "resources"),
        ];
        let incoming = &self.channel.incoming;
        for (_, list) in lists.into_iter().filter(|(honoured, _)| *honoured) {
            let method = format!("notifications/{list}/list_changed");
            incoming.notification(Notification::new(method, None), Origin::Connection);
        }
        for uri in &honoured.resource_subscriptions {
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

// === impl Filter ===

impl Filter {
    fn is_empty(&self) -> bool {
        !self.tools_list_changed
            && !self.prompts_list_changed
            && !self.resources_list_changed
            && self.resource_subscriptions.is_empty()
    }

    /// Everything that was asked for.
    fn honoured(&self) -> AcceptedFilter {
        AcceptedFilter {
            tools_list_changed: self.tools_list_changed,
            prompts_list_changed: self.prompts_list_changed,
            resources_list_changed: self.resources_list_changed,
            resource_subscriptions: self.resource_subscriptions.iter().cloned().collect(),
        }
    }
}

impl Default for Outcome {
    fn default() -> Self {
        Self::AcceptedFilter(AcceptedFilter::default())
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}
