//! What has just been stored, for those who watch; and the same again for those who come back.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, MissedTickBehavior};

use crate::record::Record;
use crate::store::{ActivityStore, StoreError};
use crate::words::RecordType;

/// How many events are fetched at once when catching up.
const REPLAY_CHUNK: u32 = 256;

/// How often a log that another process writes is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// One stored entry. The sequence is that of the hash chain: it only rises, also over restarts.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub sequence: u64,
    pub phase: Phase,
    /// As it was after this entry; a response is never included.
    pub record: Arc<Record>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Started,
    Completed,
}

/// Events that a watcher missed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    pub events: Vec<Event>,
    /// The last entry that was looked at; the next replay continues after it.
    pub through: u64,
    /// Whether the place that was asked for is no longer, or not yet, in the log.
    pub place_lost: bool,
}

/// Events in order without gaps: first those that were missed, then live ones.
pub struct Follow {
    store: Arc<dyn ActivityStore>,
    news: News,
    replayed: VecDeque<Event>,
    /// The last entry that was seen; nothing before the first, if it is followed from now on.
    last: Option<u64>,
    catching_up: bool,
}

/// How new entries are learnt of.
enum News {
    Told(broadcast::Receiver<Event>),
    Looked(Interval),
}

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// Too slow, or away for too long. Following can go on; what lies between is only in the log.
    #[error("events were missed; the log has them")]
    PlaceLost,
    #[error("the activity log is closed")]
    Closed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Event {
    /// The name under which it is sent to clients.
    pub fn name(&self) -> &'static str {
        match (self.record.record_type, self.phase) {
            (RecordType::ToolCall, Phase::Started) => "activity.tool_call.started",
            (RecordType::ToolCall, Phase::Completed) => "activity.tool_call.completed",
            (RecordType::PolicyDecision, _) => "activity.policy_decision",
            (RecordType::QuarantineChange, _) => "activity.quarantine_change",
            (RecordType::ServerChange, _) => "activity.server_change",
            (RecordType::ConfigChange, _) => "activity.config_change",
            (RecordType::System, _) => "activity.system",
        }
    }
}

impl News {
    fn by_looking() -> Self {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self::Looked(looks)
    }
}

impl Follow {
    /// Follows from now on, or from after the entry that was seen last.
    pub(crate) fn new(store: Arc<dyn ActivityStore>, after: Option<u64>) -> Self {
        // Subscribing first means that nothing falls between the replay and the live events.
        let news = store.subscribe().map_or_else(News::by_looking, News::Told);
        Self {
            store,
            news,
            replayed: VecDeque::new(),
            last: after,
            catching_up: after.is_some(),
        }
    }

    pub async fn next(&mut self) -> Result<Event, FollowError> {
        loop {
            if let Some(event) = self.replayed.pop_front() {
                self.last = Some(event.sequence);
                return Ok(event);
            }
            if self.catching_up {
                self.catch_up().await?;
                continue;
            }
            match &mut self.news {
                News::Told(live) => match live.recv().await {
                    Ok(event) if Some(event.sequence) <= self.last => {}
                    Ok(event) => {
                        self.last = Some(event.sequence);
                        return Ok(event);
                    }
                    Err(RecvError::Lagged(_)) => return Err(FollowError::PlaceLost),
                    Err(RecvError::Closed) => return Err(FollowError::Closed),
                },
                News::Looked(looks) => {
                    looks.tick().await;
                    self.catching_up = true;
                }
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), FollowError> {
        let last = match self.last {
            Some(last) => last,
            None => self.store.head().await?.sequence,
        };
        let replay = self.store.replay(last, REPLAY_CHUNK).await?;
        self.catching_up = replay.through > last && !replay.place_lost;
        self.last = Some(replay.through);
        self.replayed.extend(replay.events);
        if replay.place_lost {
            Err(FollowError::PlaceLost)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Follow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Follow")
            .field("last", &self.last)
            .field("catching_up", &self.catching_up)
            .finish_non_exhaustive()
    }
}
