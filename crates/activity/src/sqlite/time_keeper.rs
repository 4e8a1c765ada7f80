//! The time that retention believes it is, kept over restarts.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::Connection;

use super::codes::{signed, unsigned};
use super::links;
use crate::believed_time::BelievedTime;

#[derive(Debug)]
pub(super) struct TimeKeeper {
    /// Nothing in a log that was never pruned and has no record.
    time: Option<BelievedTime>,
    /// When the clock was last looked at.
    looked: Instant,
}

impl TimeKeeper {
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT believed_ms, doubted_ms FROM progress";
        let (believed, doubted): (Option<i64>, i64) =
            connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let believed = believed.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let time = match believed {
            Some(now) => Some(BelievedTime {
                now,
                doubted: Duration::from_millis(unsigned(doubted)),
            }),
            None => links::last_record(connection)?.map(|id| BelievedTime::at(id.timestamp())),
        };
        Ok(Self {
            time,
            looked: Instant::now(),
        })
    }

    /// Takes a look at the clock, and tells what time is believed.
    pub(super) fn observe(&mut self, clock: Timestamp) -> Timestamp {
        let uptime = self.looked.elapsed();
        self.looked += uptime;
        let time = self.time.get_or_insert(BelievedTime::at(clock));
        let was_in_doubt = time.is_in_doubt();
        time.observe(clock, uptime);
        if time.is_in_doubt() && !was_in_doubt {
            tracing::warn!(
                %clock,
                believed = %time.now,
                "the clock is far ahead of the activity log; no record is removed for its age \
                 before it has been so for a day of uptime"
            );
        }
        time.now
    }

    pub(super) fn save(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(time) = self.time else { return Ok(()) };
        let doubted = u64::try_from(time.doubted.as_millis()).unwrap_or(u64::MAX);
        connection
            .prepare_cached("UPDATE progress SET believed_ms = ?1, doubted_ms = ?2")?
            .execute([time.now.as_millisecond(), signed(doubted)])?;
        Ok(())
    }
}
