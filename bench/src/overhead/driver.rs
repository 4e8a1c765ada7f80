//! The client of the measurement: connections that are kept open, each with one call at a time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::messages::Messages;
use crate::echo::RESULT;
use crate::session::{Session, message_in};

#[derive(Debug)]
pub(super) struct Driver {
    connections: Vec<Connection>,
}

/// What was seen of a number of calls.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) latencies: Vec<Duration>,
    pub(super) elapsed: Duration,
}

/// A session, and the calls it makes.
#[derive(Debug)]
struct Connection {
    session: Session,
    messages: Messages,
    last_id: usize,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: usize,
    #[serde(borrow)]
    result: &'a RawValue,
}

// === impl Driver ===

impl Driver {
    pub(super) async fn connect(
        address: SocketAddr,
        messages: Messages,
        connections: usize,
    ) -> Result<Self> {
        let connecting = (0..connections).map(|_| Connection::open(address, messages.clone()));
        Ok(Self {
            connections: try_join_all(connecting).await?,
        })
    }

    /// Makes `calls` calls, spread evenly over the connections.
    pub(super) async fn run(&mut self, calls: usize) -> Result<Load> {
        let each = calls.div_ceil(self.connections.len());
        let started = Instant::now();
        let running = self.connections.iter_mut().map(|it| it.calls(each));
        let latencies = try_join_all(running).await?.concat();
        Ok(Load {
            latencies,
            elapsed: started.elapsed(),
        })
    }
}

impl Load {
    pub(super) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.elapsed += other.elapsed;
    }
}

// === impl Connection ===

impl Connection {
    async fn open(address: SocketAddr, messages: Messages) -> Result<Self> {
        Ok(Self {
            session: Session::open(address).await?,
            messages,
            last_id: 0,
        })
    }

    async fn calls(&mut self, calls: usize) -> Result<Vec<Duration>> {
        let mut latencies = Vec::with_capacity(calls);
        for _ in 0..calls {
            self.last_id += 1;
            let message = self.messages.call(self.last_id);
            let started = Instant::now();
            let (status, body) = self.session.post(message.into()).await?;
            latencies.push(started.elapsed());
            let said = || String::from_utf8_lossy(&body).into_owned();
            ensure!(status == StatusCode::OK, "{status}: {}", said());
            let answer: Answer<'_> =
                serde_json::from_slice(message_in(&body)).with_context(said)?;
            // A refusal would be quick, and a result that was changed on the way is none.
            ensure!(
                answer.id == self.last_id,
                "another call's answer: {}",
                said()
            );
            ensure!(answer.result.get() == *RESULT, "not the result: {}", said());
        }
        Ok(latencies)
    }
}
