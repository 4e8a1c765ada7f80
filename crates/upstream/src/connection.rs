//! One connection to an upstream: how calls are sent on it, and how its end is noticed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp::client::{Client, CloseReason, Era, ProgressReceiver, RequestError, RequestOptions};
use mcp::modern::meta;
use mcp::{Json, LogLevel, Members, ProgressToken, RawValue};
use platform::Endings;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::{Mutex, Notify, SetOnce, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::{NO_CAPABILITIES, OnBehalf};
use crate::connect::{Connected, Process};
use crate::failure::Loss;
use crate::health::{Health, Pending};
use crate::switchboard::Switchboard;

/// How many progress notifications may wait for a slow client before later ones are dropped.
const PROGRESS_BACKLOG: usize = 64;

/// How long the reports that came with an answer may take to be passed on before the answer.
const LAST_REPORTS: Duration = Duration::from_secs(1);

/// Progress notifications restart the timeout of a call, which may take this many timeouts in all.
const MOST_TIMEOUTS: u32 = 10;

/// How long the reader gets for what a process wrote before it ended.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// How long a server may take to be told that the connection is over.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long a call whose connection closed waits for the reason to be found out.
const REASON: Duration = Duration::from_secs(2);

const PROGRESS_TOKEN: &str = "progressToken";

#[derive(Debug)]
pub(crate) struct Connection {
    pub client: Client,
    pub switchboard: Arc<Switchboard>,
    pub health: Health,
    /// The process behind it, for a program that runs.
    pub pid: Option<u32>,
    /// On a modern connection: whether the server turned out not to know the legacy era.
    modern_only: AtomicBool,
    /// From which level on a legacy server was asked to log. Held while it is being told.
    log_level: Mutex<Option<LogLevel>>,
    /// Why the connection is gone.
    lost: Arc<SetOnce<Arc<Loss>>>,
    /// Ends the supervision, and the process with it.
    supervision: CancellationToken,
    _unsupervised: DropGuard,
}

/// A request as a connection takes it.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub method: &'a str,
    pub params: Option<Json<'a>>,
    pub progress: Option<mpsc::Sender<Box<RawValue>>>,
    /// Time in which the server waits for the client does not count; a progress notification restarts it.
    pub timeout: Duration,
    /// Whether it may be sent twice.
    pub repeatable: bool,
}

impl Connection {
    /// Takes charge of a connection that is up: from now on the end of its process or of its stream
    /// is noticed, and dropping it ends both.
    pub(crate) fn new(connected: Connected, switchboard: Arc<Switchboard>) -> Self {
        let Connected { client, process } = connected;
        let supervision = CancellationToken::new();
        let lost = Arc::<SetOnce<Arc<Loss>>>::default();
        let pid = process.as_ref().and_then(Process::id);
        tokio::spawn(supervise(
            client.clone(),
            process,
            Arc::clone(&lost),
            supervision.clone(),
        ));
        Self {
            client,
            switchboard,
            health: Health::default(),
            pid,
            modern_only: AtomicBool::new(false),
            log_level: Mutex::default(),
            lost,
            _unsupervised: supervision.clone().drop_guard(),
            supervision,
        }
    }

    /// Whether the server is known not to speak the legacy era.
    pub(crate) fn is_modern_only(&self) -> bool {
        self.modern_only.load(Ordering::Relaxed)
    }

    pub(crate) fn note_modern_only(&self) {
        self.modern_only.store(true, Ordering::Relaxed);
    }

    /// Waits until the connection is gone by itself.
    pub(crate) async fn lost(&self) -> Arc<Loss> {
        Arc::clone(self.lost.wait().await)
    }

    /// Why the connection is gone, for a call that failed because it is.
    pub(crate) async fn why_lost(&self) -> Option<Arc<Loss>> {
        tokio::time::timeout(REASON, self.lost()).await.ok()
    }

    /// Ends the connection and its process in the background.
    pub(crate) fn end(self: Arc<Self>, endings: &Endings) {
        let _ = self.lost.set(Arc::new(Loss::Ordered));
        self.supervision.cancel();
        endings.spawn(async move {
            let _ = tokio::time::timeout(FAREWELL, self.client.close()).await;
        });
    }

    /// Ends the connection of a server that is as good as gone, without a word to it.
    pub(crate) fn give_up(&self, loss: Loss) -> Arc<Loss> {
        let loss = Arc::new(loss);
        let _ = self.lost.set(Arc::clone(&loss));
        self.client
            .abandon(CloseReason::Owner(loss.to_string().into()));
        loss
    }

    /// Sends a request without a client behind it: the server cannot ask anything.
    pub(crate) async fn send_alone(
        &self,
        outgoing: Outgoing<'_>,
    ) -> Result<Box<RawValue>, RequestError> {
        let _pending = self.health.pending();
        let options = RequestOptions {
            timeout: Some(outgoing.timeout),
            repeatable: outgoing.repeatable,
            capabilities: (self.client.era() == Era::Modern).then(|| NO_CAPABILITIES.clone()),
            ..RequestOptions::default()
        };
        self.noted(self.send(outgoing, options, &Notify::new()).await)
    }

    /// Sends a request for a client, who is asked what the server wants to know on the way.
    /// `parked` is told whenever the call begins or ends to wait for the client.
    pub(crate) async fn send_for(
        &self,
        client: &OnBehalf,
        mut outgoing: Outgoing<'_>,
        mut parked: impl FnMut(bool),
    ) -> Result<Box<RawValue>, RequestError> {
        let timeout = outgoing.timeout;
        if let Some(level) = client.log_level {
            self.log_from(level, &mut outgoing).await?;
        }
        let registered = self.switchboard.register(client);
        let options = RequestOptions {
            timeout: None,
            call: Some(registered.id()),
            capabilities: Some(client.capabilities.clone()),
            repeatable: outgoing.repeatable,
        };
        let questions = registered.open_questions();
        let mut pending: Pending<'_> = self.health.pending();
        let parked = |waits: bool| {
            pending.park(waits);
            parked(waits);
        };
        let reported = Notify::new();
        let answering = self.send(outgoing, options, &reported);
        self.noted(unless_late(timeout, questions, &reported, parked, answering).await)
    }

    /// Takes note of what the outcome of a call says about the server.
    fn noted(
        &self,
        answer: Result<Box<RawValue>, RequestError>,
    ) -> Result<Box<RawValue>, RequestError> {
        self.note(&answer);
        answer
    }

    /// The same for a call on another connection to the server.
    pub(crate) fn note(&self, answer: &Result<Box<RawValue>, RequestError>) {
        match answer {
            Ok(_) | Err(RequestError::Rpc(_)) => self.health.answered(),
            Err(RequestError::Timeout { .. }) => self.health.timed_out(),
            Err(RequestError::Transport(_)) => self.health.suspect(),
            Err(_) => {}
        }
    }

    async fn send(
        &self,
        outgoing: Outgoing<'_>,
        options: RequestOptions,
        reported: &Notify,
    ) -> Result<Box<RawValue>, RequestError> {
        let Outgoing { method, params, .. } = outgoing;
        let Some(sink) = outgoing.progress else {
            let params = with_token(params, None)?;
            return self
                .client
                .request_json(method, params.as_ref(), options)
                .await;
        };
        let (token, mut progress) = self.client.progress(PROGRESS_BACKLOG);
        let params = with_token(params, Some(&token))?;
        let request = self.client.request_json(method, params.as_ref(), options);
        tokio::pin!(request);
        // The newest report that the client has had no room for yet.
        let mut newest = None;
        let answer = loop {
            tokio::select! {
                answer = &mut request => break answer,
                Some(report) = progress.next() => {
                    reported.notify_one();
                    newest = Some(report);
                }
                Ok(room) = sink.reserve(), if newest.is_some() => {
                    if let Some(report) = newest.take() {
                        room.send(report);
                    }
                }
            }
            // Reports come in order while there is room. Where there is none, each replaces the one
            // before it, so that a slow reader holds up no other.
            if let Some(report) = newest.take()
                && let Err(mpsc::error::TrySendError::Full(report)) = sink.try_send(report)
            {
                newest = Some(report);
            }
        };
        let _ = tokio::time::timeout(LAST_REPORTS, pass_rest_on(newest, progress, sink)).await;
        answer
    }

    /// Makes sure that the server logs what the client wants to see. A modern server is told with
    /// the request. A legacy one is told once; what is more than others asked for is held back
    /// from them by their endpoints.
    async fn log_from(
        &self,
        level: LogLevel,
        outgoing: &mut Outgoing<'_>,
    ) -> Result<(), RequestError> {
        if self.client.era() == Era::Modern {
            outgoing.params = Some(with_level(outgoing.params.as_ref(), level)?);
            return Ok(());
        }
        self.set_log_level(level).await
    }

    pub(crate) async fn set_log_level(&self, level: LogLevel) -> Result<(), RequestError> {
        let mut told = self.log_level.lock().await;
        let enough = told.is_some_and(|told| told <= level);
        if enough || !self.client.handshake().offers_logging() {
            return Ok(());
        }
        let params =
            to_raw_value(&json!({"level": level.as_str()})).map_err(RequestError::Params)?;
        let options = RequestOptions {
            timeout: Some(Duration::from_secs(10)),
            ..RequestOptions::default()
        };
        self.client
            .request("logging/setLevel", Some(params), options)
            .await?;
        *told = Some(level);
        Ok(())
    }

    /// The session at the server is a new one.
    pub(crate) async fn forget_log_level(&self) -> Option<LogLevel> {
        self.log_level.lock().await.take()
    }
}

/// Passes on what was reported before the answer came.
async fn pass_rest_on(
    newest: Option<Box<RawValue>>,
    mut progress: ProgressReceiver,
    sink: mpsc::Sender<Box<RawValue>>,
) {
    let rest = std::iter::from_fn(|| progress.try_next());
    for report in newest.into_iter().chain(rest) {
        // A client that stopped listening still wants its answer.
        if sink.send(report).await.is_err() {
            return;
        }
    }
}

/// Waits for the end of a connection that comes by itself, and makes known why.
async fn supervise(
    client: Client,
    mut process: Option<Process>,
    lost: Arc<SetOnce<Arc<Loss>>>,
    supervision: CancellationToken,
) {
    let exited = async {
        match &mut process {
            Some(process) => process.exited().await,
            None => std::future::pending().await,
        }
    };
    let reason = tokio::select! {
        () = supervision.cancelled() => return,
        exit = exited => {
            let _ = tokio::time::timeout(LAST_OUTPUT, client.closed()).await;
            Loss::Exited(exit)
        }
        reason = client.closed() => match &*reason {
            CloseReason::Oversized { limit } => Loss::Oversized { limit: *limit },
            CloseReason::Ended { .. } | CloseReason::Read(_) | CloseReason::Write(_) => {
                let exit = match &mut process {
                    Some(process) => process.exited_soon().await,
                    None => None,
                };
                exit.map_or(Loss::Closed(reason), Loss::Exited)
            }
            _ => Loss::Closed(reason),
        },
    };
    client.abandon(CloseReason::Owner(reason.to_string().into()));
    let _ = lost.set(Arc::new(reason));
}

/// Waits for the answer until the server has had its time, in which it waited for nobody.
async fn unless_late<T>(
    timeout: Duration,
    mut questions: watch::Receiver<usize>,
    reported: &Notify,
    mut parked: impl FnMut(bool),
    answering: impl Future<Output = Result<T, RequestError>>,
) -> Result<T, RequestError> {
    tokio::pin!(answering);
    let (mut left, mut left_in_all) = (timeout, timeout.saturating_mul(MOST_TIMEOUTS));
    // What has counted so far, also before the last restart.
    let mut counted = Duration::ZERO;
    loop {
        let waits_for_client = *questions.borrow_and_update() > 0;
        parked(waits_for_client);
        let since = Instant::now();
        let is_report = tokio::select! {
            answer = &mut answering => return answer,
            // The sender lives as long as the call.
            _ = questions.changed() => false,
            () = reported.notified() => true,
            () = tokio::time::sleep(left.min(left_in_all)), if !waits_for_client => {
                return Err(RequestError::Timeout { after: counted + left.min(left_in_all) });
            }
        };
        if !waits_for_client {
            let passed = since.elapsed();
            counted += passed;
            left = left.saturating_sub(passed);
            left_in_all = left_in_all.saturating_sub(passed);
        }
        if is_report {
            left = timeout;
        }
    }
}

/// The params with our own progress token, or none: the client's is its own, and two clients may
/// have chosen the same. Params without any stay as they are.
fn with_token<'a>(
    params: Option<Json<'a>>,
    token: Option<&ProgressToken>,
) -> Result<Option<Json<'a>>, RequestError> {
    let has_token = |params: &Json<'_>| params.get().contains(PROGRESS_TOKEN);
    if token.is_none() && !params.as_ref().is_some_and(has_token) {
        return Ok(params);
    }
    in_meta(params.as_ref(), |meta| {
        match token {
            Some(token) => meta.set(PROGRESS_TOKEN, to_raw_value(token)?),
            None => meta.remove(PROGRESS_TOKEN),
        }
        Ok(())
    })
    .map(Some)
}

fn with_level(params: Option<&Json<'_>>, level: LogLevel) -> Result<Json<'static>, RequestError> {
    in_meta(params, |members| {
        members.set(meta::LOG_LEVEL, to_raw_value(level.as_str())?);
        Ok(())
    })
}

/// The params with a changed `_meta`, which goes when nothing is left of it.
fn in_meta(
    params: Option<&Json<'_>>,
    change: impl FnOnce(&mut Members<'_>) -> Result<(), serde_json::Error>,
) -> Result<Json<'static>, RequestError> {
    let attempt = || {
        let mut members = params.map(Members::of).transpose()?.unwrap_or_default();
        let meta = members.get("_meta").map(ToOwned::to_owned);
        let meta = meta.as_deref();
        let mut meta = meta.map(Members::parse).transpose()?.unwrap_or_default();
        change(&mut meta)?;
        if meta.is_empty() {
            members.remove("_meta");
        } else {
            members.set("_meta", meta.to_raw()?);
        }
        members.to_raw()
    };
    attempt().map(Json::from).map_err(RequestError::Params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json<'static> {
        Json::parse(text.to_owned()).unwrap()
    }

    fn token(params: Option<&str>, token: Option<u64>) -> Option<String> {
        let token = token.map(ProgressToken::from);
        let params = with_token(params.map(json), token.as_ref()).unwrap();
        params.map(|params| params.get().to_owned())
    }

    #[test]
    fn the_token_is_replaced_and_everything_else_keeps_its_bytes() {
        let theirs = r#"{"name":"echo","arguments":{ "b": 1.0 },"_meta":{"progressToken":"theirs","traceparent":"00-1"}}"#;
        assert_eq!(
            token(Some(theirs), Some(7)).unwrap(),
            r#"{"name":"echo","arguments":{ "b": 1.0 },"_meta":{"progressToken":7,"traceparent":"00-1"}}"#
        );
        assert_eq!(
            token(Some(r#"{"uri":"a","_meta":{"progressToken":3}}"#), None).unwrap(),
            r#"{"uri":"a"}"#
        );
        assert_eq!(
            token(None, Some(7)).unwrap(),
            r#"{"_meta":{"progressToken":7}}"#
        );
    }

    #[test]
    fn params_without_a_token_stay_as_they_are() {
        assert_eq!(token(None, None), None);
        let odd = r#"{ "a" :1, "a":2, "_meta":{ } }"#;
        assert_eq!(token(Some(odd), None).unwrap(), odd);
    }

    #[test]
    fn params_that_cannot_hold_a_token_are_an_error() {
        let token = ProgressToken::from(1);
        for params in ["[1]", r#"{"_meta":7}"#] {
            let outcome = with_token(Some(json(params)), Some(&token));
            assert!(matches!(outcome, Err(RequestError::Params(_))), "{params}");
        }
    }

    async fn until_late(
        timeout: Duration,
        questions: &watch::Sender<usize>,
        reported: &Notify,
        answering: impl Future<Output = Result<(), RequestError>>,
    ) -> Result<(), RequestError> {
        unless_late(timeout, questions.subscribe(), reported, |_| (), answering).await
    }

    #[tokio::test]
    async fn time_in_which_the_server_waits_for_the_client_does_not_count() {
        let (count, reported) = (watch::Sender::new(1), Notify::new());
        let answering = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(())
        };
        let asked = until_late(Duration::ZERO, &count, &reported, answering).await;
        asked.unwrap();
        count.send_replace(0);
        let never = std::future::pending();
        let late = until_late(Duration::ZERO, &count, &reported, never).await;
        assert!(matches!(late, Err(RequestError::Timeout { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_extends_the_time_up_to_a_maximum() {
        let (count, reported) = (watch::Sender::new(0), Notify::new());
        let timeout = Duration::from_secs(10);
        let reporting = async |times: u32| {
            for _ in 0..times {
                tokio::time::sleep(Duration::from_secs(9)).await;
                reported.notify_one();
            }
            Ok(())
        };
        until_late(timeout, &count, &reported, reporting(11))
            .await
            .unwrap();
        let late = until_late(timeout, &count, &reported, reporting(1_000)).await;
        let Err(RequestError::Timeout { after }) = late else {
            panic!("{late:?}");
        };
        assert_eq!(after.as_secs(), 100);
        let silent = async {
            reporting(1).await?;
            std::future::pending().await
        };
        let late = until_late(timeout, &count, &reported, silent).await;
        let Err(RequestError::Timeout { after }) = late else {
            panic!("{late:?}");
        };
        assert_eq!(after.as_secs(), 19);
    }
}
