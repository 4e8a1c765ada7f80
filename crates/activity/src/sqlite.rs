//! The store in one SQLite file: a thread that writes, a few connections that read.

mod batch;
mod beside;
mod body;
mod checkpoints;
mod codes;
mod derived;
mod error;
mod files;
mod folding;
mod histogram;
mod index;
mod journal;
mod links;
mod list;
mod names;
mod open;
mod pool;
mod prune;
mod queue;
mod recount;
mod replay;
mod row;
mod rows;
mod schema;
mod sums;
mod time_keeper;
mod walk;
mod write;
mod writer;

use std::fmt;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::broadcast;

pub use error::OpenError;
#[doc(hidden)]
pub use journal::{read_segment, write_body, write_segment};

use crate::chain::{Hash, Link};
use crate::event::{Event, Replay};
use crate::filter::Filter;
use crate::id::ActivityId;
use crate::page::{Cursor, ListRequest, Page};
use crate::record::Record;
use crate::retention::{PruneStep, RetentionPolicy};
use crate::stats::{GroupBy, Period, Summary, Usage};
use crate::store::{ActivityStore, Durability, Entry, Health, StoreError, StoreFuture};
use crate::verify::Verification;
use beside::Beside;
use files::Files;
use journal::Journal;
use pool::{Pool, Sharing, open_reader};
use queue::{Job, Queue};
use writer::{SharedHealth, Writer};

/// How long a question waits for what was recorded before it.
const PATIENCE: Duration = Duration::from_secs(5);

/// How far a watcher may fall behind before it loses its place.
const WATCHED_EVENTS: usize = 1_024;

pub struct SqliteStore {
    files: Files,
    readers: Arc<Pool>,
    access: Access,
    health: Arc<SharedHealth>,
    /// What the writer enforces while the log grows.
    limits: Arc<Mutex<RetentionPolicy>>,
    /// Whether something was pruned since the write-ahead log was last emptied.
    pruned: AtomicBool,
}

/// Who writes.
enum Access {
    /// This process does.
    Writing {
        queue: Queue,
        events: broadcast::Sender<Event>,
    },
    /// Others may.
    Reading(Arc<Beside>),
}

#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// A directory of the store's own; it is created, or tightened, to be private.
    pub directory: PathBuf,
    /// The file never grows beyond this, whatever retention does. It then counts as full.
    pub max_file_bytes: Option<u64>,
}

/// An open store, and what had to be done to open it.
#[derive(Debug)]
pub struct Opened {
    pub store: SqliteStore,
    /// Where a damaged file was put. The store is a new one then.
    pub moved_aside: Option<PathBuf>,
    /// The copy that was made before the layout was changed.
    pub backup: Option<PathBuf>,
    /// Whether the file was there, and empty.
    pub was_empty: bool,
    /// How many records the last process left open; they are interrupted now.
    pub interrupted: u64,
    /// Whether the index by which records are found was not as it was written, and was rebuilt.
    pub rebuilt: bool,
}

/// A store that is open for reading, and what it cannot show.
#[derive(Debug)]
pub struct OpenedToRead {
    pub store: SqliteStore,
    /// Entries that a process which died left behind, and that could not be stored: they are
    /// not shown before the next start.
    pub waiting: u64,
}

impl SqliteStore {
    /// Opens the store for writing. Blocks while it reads, checks and repairs.
    pub fn open(options: &SqliteOptions) -> Result<Opened, OpenError> {
        let files = Files::prepare(&options.directory)?;
        let lock = files.lock()?;
        let was_empty = files.is_empty();
        let mut prepared = open::prepare(&files, options.max_file_bytes)?;
        let (moved_aside, backup) = (prepared.moved_aside.take(), prepared.backup.take());
        let (interrupted, rebuilt) = (prepared.interrupted, prepared.rebuilt);
        let readers = Pool::open(|| open_reader(&files.database(), Sharing::Shared))?;
        let (queue, inbox) = queue::queue(Journal::open(&files)?);
        let (events, _) = broadcast::channel(WATCHED_EVENTS);
        let health = Arc::new(SharedHealth::default());
        let limits = Arc::<Mutex<RetentionPolicy>>::default();
        let writer = Writer::new(
            prepared,
            inbox,
            events.clone(),
            Arc::clone(&health),
            Arc::clone(&limits),
            lock,
        );
        std::thread::Builder::new()
            .name("activity-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(OpenError::file(files.database()))?;
        let pruned = AtomicBool::new(false);
        Ok(Opened {
            store: Self {
                files,
                readers,
                access: Access::Writing { queue, events },
                health,
                limits,
                pruned,
            },
            moved_aside,
            backup,
            was_empty,
            interrupted,
            rebuilt,
        })
    }

    /// Opens the store beside a process that may be writing to it. What is open stays open, and
    /// nothing is written but what a process that died has left in its journal.
    pub fn open_read_only(directory: &Path) -> Result<OpenedToRead, OpenError> {
        let files = Files::existing(directory)?;
        if !files.database().exists() {
            return Err(OpenError::Missing(directory.to_owned()));
        }
        let stored = open::store_left_behind(&files);
        let mut beside = Beside::new(files.clone());
        let reader = || open_reader(&files.database(), files.sharing());
        let first = reader()?;
        schema::check(&first, &files, schema::MIGRATIONS)?;
        let waiting = match stored {
            Ok(()) | Err(OpenError::InUse(_)) => 0,
            Err(error) => {
                tracing::warn!(%error, "what the last process left behind cannot be stored");
                open::count_left_behind(&first, &files)?
            }
        };
        let readers = Pool::open(reader)?;
        beside.journal_stays = waiting > 0;
        let store = Self::reading(files, readers, beside);
        Ok(OpenedToRead { store, waiting })
    }

    /// Stands in for a store that is not there yet: it has no records, takes none, and creates
    /// nothing.
    pub fn nothing_in(directory: &Path) -> Result<Self, OpenError> {
        let files = Files::named(directory);
        let beside = Beside::new(files.clone());
        let readers = Pool::open(schema::nothing)?;
        Ok(Self::reading(files, readers, beside))
    }

    fn reading(files: Files, readers: Arc<Pool>, beside: Beside) -> Self {
        Self {
            files,
            readers,
            access: Access::Reading(Arc::new(beside)),
            health: Arc::new(SharedHealth::default()),
            limits: Arc::default(),
            pruned: AtomicBool::new(false),
        }
    }

    fn queue(&self) -> Result<&Queue, StoreError> {
        match &self.access {
            Access::Writing { queue, .. } => Ok(queue),
            Access::Reading(_) => Err(StoreError::ReadOnly),
        }
    }

    /// Has what was recorded so far stored, so that it is found. A store that is busy for so long
    /// that nobody wants to wait is asked as it is.
    async fn stored(&self) -> Result<(), StoreError> {
        match &self.access {
            Access::Writing { queue, .. } => tokio::time::timeout(PATIENCE, queue.ask(Job::Store))
                .await
                .unwrap_or(Ok(())),
            Access::Reading(_) => Ok(()),
        }
    }

    /// Has the sums brought up to date, where there is somebody to do it.
    async fn settle(&self) -> Result<(), StoreError> {
        match &self.access {
            Access::Writing { queue, .. } => queue.ask(Job::Flush).await,
            Access::Reading(_) => Ok(()),
        }
    }

    /// Empties the write-ahead log on a connection of its own, so that the writer is not held up.
    async fn empty_log(&self) -> Result<(), StoreError> {
        let database = self.files.database();
        let task = tokio::task::spawn_blocking(move || {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_NOFOLLOW;
            let connection = Connection::open_with_flags(database, flags)?;
            connection.busy_timeout(Duration::from_millis(100))?;
            // The first does the work without a lock; the second then has little left to do. A
            // reader in the way means that it happens another time.
            for mode in ["PASSIVE", "TRUNCATE"] {
                let sql = format!("PRAGMA wal_checkpoint({mode})");
                connection.query_row(&sql, [], |_| Ok(()))?;
            }
            Ok(())
        });
        task.await
            .map_err(|error| StoreError::Unavailable(Some(Arc::new(error))))?
    }
}

impl ActivityStore for SqliteStore {
    fn append(&self, entry: Entry, durability: Durability) -> StoreFuture<'_, ()> {
        let queue = match self.queue() {
            Ok(queue) => queue,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        match self.health.refusal() {
            None => queue.append(entry, durability),
            // A caller that ends a record while nothing can be stored is told so.
            Some(_) if matches!(entry, Entry::End(..)) => queue.append_end(entry),
            Some(refusal) => Box::pin(ready(Err(refusal))),
        }
    }

    fn abandon(&self, id: ActivityId) {
        if let Access::Writing { queue, .. } = &self.access {
            queue.abandon(id);
        }
    }

    fn page(&self, request: ListRequest) -> StoreFuture<'_, Page> {
        Box::pin(async move {
            self.stored().await?;
            self.readers
                .run(move |connection| list::page(connection, &request))
                .await
        })
    }

    fn get(&self, id: ActivityId) -> StoreFuture<'_, Option<Record>> {
        Box::pin(async move {
            self.stored().await?;
            self.readers
                .run(move |connection| list::get(connection, id))
                .await
        })
    }

    fn scan(
        &self,
        filter: Filter,
        after: Option<Cursor>,
        limit: u32,
        include_bodies: bool,
    ) -> StoreFuture<'_, Vec<Record>> {
        Box::pin(async move {
            self.stored().await?;
            self.readers
                .run(move |connection| {
                    list::scan(connection, &filter, after, limit, include_bodies)
                })
                .await
        })
    }

    fn summary(&self, period: Period, by: GroupBy, now: Timestamp) -> StoreFuture<'_, Summary> {
        Box::pin(async move {
            self.settle().await?;
            self.readers
                .run(move |connection| sums::summary(connection, period, by, now))
                .await
        })
    }

    fn usage(&self, period: Period, now: Timestamp) -> StoreFuture<'_, Usage> {
        Box::pin(async move {
            self.settle().await?;
            self.readers
                .run(move |connection| sums::usage(connection, period, now))
                .await
        })
    }

    fn verify(&self, noted_head: Option<Hash>) -> StoreFuture<'_, Verification> {
        Box::pin(async move {
            self.stored().await?;
            self.readers
                .run(move |connection| walk::verify(connection, noted_head))
                .await
        })
    }

    fn head(&self) -> StoreFuture<'_, Link> {
        Box::pin(async move {
            self.stored().await?;
            self.readers
                .run(|connection| Ok(links::head(connection)?))
                .await
        })
    }

    fn prune_step(&self, policy: RetentionPolicy, now: Timestamp) -> StoreFuture<'_, PruneStep> {
        Box::pin(async move {
            let step = self
                .queue()?
                .ask(|answer| Job::Prune(policy, now, answer))
                .await?;
            if step == PruneStep::Done {
                if self.pruned.swap(false, Ordering::Relaxed) {
                    self.empty_log().await?;
                }
            } else {
                self.pruned.store(true, Ordering::Relaxed);
            }
            Ok(step)
        })
    }

    fn limit(&self, policy: RetentionPolicy) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    fn subscribe(&self) -> Option<broadcast::Receiver<Event>> {
        match &self.access {
            Access::Writing { events, .. } => Some(events.subscribe()),
            Access::Reading(_) => None,
        }
    }

    fn replay(&self, after: u64, limit: u32) -> StoreFuture<'_, Replay> {
        let beside = match &self.access {
            Access::Writing { .. } => None,
            Access::Reading(beside) => Some(Arc::clone(beside)),
        };
        Box::pin(self.readers.run(move |connection| {
            if let Some(beside) = beside {
                beside.check()?;
            }
            replay::replay(connection, after, limit)
        }))
    }

    fn health(&self) -> Health {
        self.health.get()
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            match &self.access {
                Access::Writing { queue, .. } => queue.ask(Job::Close).await,
                Access::Reading(_) => Ok(()),
            }
        })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SqliteStore")
            .field("directory", &self.files.directory())
            .field("health", &self.health.get())
            .finish_non_exhaustive()
    }
}
