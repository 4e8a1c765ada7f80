//! Hears what a server says on one connection and takes it to the client that it is meant for.
//!
//! Where the wire says to which call a message belongs, that settles it. Where it does not, all calls that
//! are under way on the connection must be of one client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::ServerConfig;
use mcp::client::{CallId, Events, Handshake, Origin};
use mcp::{ErrorObject, Notification, RawValue, Request};
use policy::ServerName;
use tokio::sync::{Notify, watch};

use crate::client::{AskError, ClientLine, OnBehalf};
use crate::era::EraMemory;
use crate::fleet::SharedAudience;

/// What the connections of one upstream have in common.
#[derive(Debug, Clone)]
pub(crate) struct ServerContext {
    pub server: ServerName,
    pub audience: SharedAudience,
    /// The tools are to be listed again.
    pub tools_changed: Arc<Notify>,
    /// The server has forgotten what it was told to keep.
    pub renewed: Arc<Notify>,
    pub asked: Asked,
}

/// Whether the server has asked its clients something, now or in an earlier life of the process. Clones
/// share it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    flag: Arc<AtomicBool>,
    memory: EraMemory,
    server: ServerConfig,
}

/// One connection's switchboard.
#[derive(Debug)]
pub(crate) struct Switchboard {
    context: ServerContext,
    /// Whether only one client uses the connection at a time.
    private: bool,
    /// Whether it is the one connection whose subscriptions and log level the actor keeps.
    main: bool,
    /// Whether the server behind it is a process that no other connection leads to.
    process: bool,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    /// In the order in which they began.
    under_way: Vec<Arc<UnderWay>>,
    /// Reaches the client of a private connection between its calls.
    session_line: Option<Arc<dyn ClientLine>>,
}

#[derive(Debug)]
struct UnderWay {
    id: CallId,
    session: Option<String>,
    line: Arc<dyn ClientLine>,
    /// How many questions the client has not answered yet.
    open_questions: watch::Sender<usize>,
}

/// A call while the switchboard knows of it.
#[derive(Debug)]
pub(crate) struct Registered {
    switchboard: Arc<Switchboard>,
    call: Arc<UnderWay>,
}

/// Counts a question as open until it is dropped.
struct OpenQuestion<'a>(&'a watch::Sender<usize>);

// === impl ServerContext ===

impl ServerContext {
    pub(crate) fn announce(&self, notification: &Notification) {
        if let Some(audience) = self.audience.get() {
            audience.hear(&self.server, notification);
        }
    }
}

// === impl Asked ===

impl Asked {
    pub(crate) fn new(memory: EraMemory, server: ServerConfig) -> Self {
        Self {
            flag: Arc::new(AtomicBool::new(memory.asks(&server))),
            memory,
            server,
        }
    }

    pub(crate) fn get(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    fn note(&self) {
        if !self.flag.swap(true, Ordering::Relaxed) {
            self.memory.note_asks(&self.server);
        }
    }
}

// === impl Switchboard ===

impl Switchboard {
    /// For the connection that all clients share.
    pub(crate) fn shared(context: ServerContext) -> Arc<Self> {
        Self::new(context, false, true, false)
    }

    /// For another connection that several clients share.
    pub(crate) fn among_many(context: ServerContext) -> Arc<Self> {
        Self::new(context, false, false, false)
    }

    /// For a connection that one client has to itself, to a process of its own or not.
    pub(crate) fn private(context: ServerContext, process: bool) -> Arc<Self> {
        Self::new(context, true, false, process)
    }

    fn new(context: ServerContext, private: bool, main: bool, process: bool) -> Arc<Self> {
        Arc::new(Self {
            context,
            private,
            main,
            process,
            calls: Mutex::default(),
        })
    }

    /// Takes a call in; what the server says about it goes to its client until the result is dropped.
    pub(crate) fn register(self: &Arc<Self>, client: &OnBehalf) -> Registered {
        let call = Arc::new(UnderWay {
            id: CallId::fresh(),
            session: client.session.clone(),
            line: Arc::clone(&client.line),
            open_questions: watch::Sender::new(0),
        });
        self.calls().under_way.push(Arc::clone(&call));
        Registered {
            switchboard: Arc::clone(self),
            call,
        }
    }

    pub(crate) fn set_session_line(&self, line: Option<Arc<dyn ClientLine>>) {
        self.calls().session_line = line;
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call that a message belongs to, if that is certain.
    fn call_of(&self, origin: Origin) -> Option<Arc<UnderWay>> {
        let calls = self.calls();
        match origin {
            Origin::Call(id) => calls.under_way.iter().find(|call| call.id == id).cloned(),
            // All calls are of one client, and the newest is the likeliest.
            Origin::Connection if self.private => calls.under_way.last().cloned(),
            Origin::Connection => None,
        }
    }

    /// The calls that a question may belong to, the likeliest first; all are of one client. The
    /// one it belongs to is among them, for it is not over before the question is answered.
    fn candidates(&self, origin: Origin) -> Vec<Arc<UnderWay>> {
        let calls = self.calls();
        let calls = calls.under_way.as_slice();
        match (origin, calls) {
            (Origin::Call(id), _) => calls.iter().filter(|call| call.id == id).cloned().collect(),
            (Origin::Connection, [first, others @ ..])
                if self.private || first.is_of_client_of(others) =>
            {
                calls.iter().rev().cloned().collect()
            }
            (Origin::Connection, _) => Vec::new(),
        }
    }

    /// Tells of a changed list or resource. On a connection of one session it is that session that
    /// subscribed; others hear of it on theirs.
    fn announce(&self, notification: &Notification) {
        if !self.tell_session(notification) {
            self.context.announce(notification);
        }
    }

    /// Tells the session whose connection this is, if there is one.
    fn tell_session(&self, notification: &Notification) -> bool {
        let line = self.calls().session_line.clone();
        line.inspect(|line| line.tell(notification)).is_some()
    }

    /// The recipients of something that no list or resource is about.
    fn tell(&self, notification: &Notification, origin: Origin) {
        if let Some(call) = self.call_of(origin) {
            return call.line.tell(notification);
        }
        let line = {
            let calls = self.calls();
            match calls.under_way.as_slice() {
                // On a connection that is shared, one call alone is as good as being told.
                [only] if !self.private => Some(Arc::clone(&only.line)),
                _ => calls.session_line.clone(),
            }
        };
        match line {
            Some(line) => line.tell(notification),
            None if self.private => {}
            None => self.context.announce(notification),
        }
    }
}

/// Asks on the stream of one call after the other until the client is reached: a call that the
/// question does not belong to may be answered, and its stream closed, at any moment.
async fn ask_any(calls: &[Arc<UnderWay>], request: Request) -> Result<Box<RawValue>, AskError> {
    for call in calls {
        let _open = OpenQuestion::new(&call.open_questions);
        match call.line.ask(request.clone()).await {
            Err(AskError::Unreachable) => {}
            answer => return answer,
        }
    }
    Err(AskError::Unreachable)
}

impl Events for Switchboard {
    fn notification(&self, notification: Notification, origin: Origin) {
        match notification.method.as_str() {
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
                if self.process && self.tell_session(&notification) => {}
            // Announced when the new list is known here, so that a client that asks then is told of it.
            "notifications/tools/list_changed" => self.context.tools_changed.notify_one(),
            // The server tells every connection of the same change; clients are to hear of it once.
            "notifications/prompts/list_changed" | "notifications/resources/list_changed"
                if !self.main => {}
            "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated" => self.announce(&notification),
            // Progress of a call that has ended.
            "notifications/progress" => {}
            _ => self.tell(&notification, origin),
        }
    }

    async fn request(
        &self,
        request: Request,
        origin: Origin,
    ) -> Result<Box<RawValue>, ErrorObject> {
        self.context.asked.note();
        let candidates = self.candidates(origin);
        if !candidates.is_empty() {
            return Ok(ask_any(&candidates, request).await?);
        }
        let line = match origin {
            Origin::Connection => self.calls().session_line.clone(),
            Origin::Call(_) => None,
        };
        match line {
            Some(line) => Ok(line.ask(request).await?),
            // Many servers ask for it as soon as they are greeted.
            None if !self.private && request.method == "roots/list" => Ok(no_roots()),
            None => Err(ErrorObject::method_not_found(&request.method)),
        }
    }

    fn session_replaced(&self, _: &Arc<Handshake>) {
        if self.main {
            self.context.renewed.notify_one();
        }
    }
}

fn no_roots() -> Box<RawValue> {
    let none = RawValue::from_string(r#"{"roots":[]}"#.to_owned());
    none.unwrap_or_else(|_| RawValue::NULL.to_owned())
}

// === impl UnderWay ===

impl UnderWay {
    /// Whether these other calls are of the same client.
    fn is_of_client_of(&self, others: &[Arc<Self>]) -> bool {
        let is_same = |other: &Arc<Self>| other.session.is_some() && other.session == self.session;
        others.iter().all(is_same)
    }
}

// === impl Registered ===

impl Registered {
    pub(crate) fn id(&self) -> CallId {
        self.call.id
    }

    /// How many questions the client has not answered yet.
    pub(crate) fn open_questions(&self) -> watch::Receiver<usize> {
        self.call.open_questions.subscribe()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut calls = self.switchboard.calls();
        calls
            .under_way
            .retain(|call| !Arc::ptr_eq(call, &self.call));
    }
}

// === impl OpenQuestion ===

impl<'a> OpenQuestion<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use mcp::RequestId;
    use proptest::prelude::*;

    use super::*;

    const CLIENTS: usize = 3;

    /// A client that answers with its number.
    #[derive(Debug)]
    struct Numbered(usize);

    impl ClientLine for Numbered {
        fn ask(&self, _: Request) -> BoxFuture<'_, Result<Box<RawValue>, AskError>> {
            let number = RawValue::from_string(self.0.to_string()).unwrap();
            Box::pin(async move { Ok(number) })
        }

        fn tell(&self, _: &Notification) {}
    }

    fn client(number: usize) -> OnBehalf {
        OnBehalf {
            session: Some(number.to_string()),
            name: String::new(),
            principal: "".into(),
            shares_processes: true,
            capabilities: RawValue::from_string(r#"{"elicitation":{}}"#.to_owned()).unwrap(),
            log_level: None,
            line: Arc::new(Numbered(number)),
            session_line: Some(Arc::new(Numbered(number))),
        }
    }

    fn context() -> ServerContext {
        ServerContext {
            server: "up".parse().unwrap(),
            audience: SharedAudience::default(),
            tools_changed: Arc::default(),
            renewed: Arc::default(),
            asked: Asked::new(EraMemory::default(), server()),
        }
    }

    fn server() -> ServerConfig {
        let transport = config::Transport::program("x", []);
        ServerConfig::new("up".parse().unwrap(), transport)
    }

    /// Who answers a question of the server, if anybody.
    fn answers(switchboard: &Switchboard, origin: Origin) -> Option<usize> {
        let request = Request {
            id: RequestId::from(1),
            method: "elicitation/create".to_owned(),
            params: None,
        };
        let answer = switchboard.request(request, origin).now_or_never().unwrap();
        answer.ok().map(|raw| raw.get().parse().unwrap())
    }

    /// Counts what it hears.
    #[derive(Debug, Default)]
    struct Heard(std::sync::atomic::AtomicUsize);

    impl crate::FleetListener for Heard {
        fn hear(&self, _: &ServerName, _: &Notification) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_change_that_every_connection_is_told_of_is_announced_once() {
        let (context, heard) = (context(), Arc::new(Heard::default()));
        let _ = context.audience.set(Arc::clone(&heard) as _);
        let connections = [
            Switchboard::shared(context.clone()),
            Switchboard::among_many(context.clone()),
            Switchboard::private(context.clone(), false),
            Switchboard::private(context, false),
        ];
        for list in ["prompts", "resources"] {
            let changed = format!("notifications/{list}/list_changed");
            for connection in &connections {
                connection.notification(Notification::new(&*changed, None), Origin::Connection);
            }
        }
        assert_eq!(heard.0.load(Ordering::Relaxed), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Calls of several clients begin, end and are asked about in any order.
        #[test]
        fn a_question_reaches_the_client_that_it_is_meant_for_and_no_other(
            steps in prop::collection::vec((0..CLIENTS, 0..4_u8), 1..80),
        ) {
            let shared = Switchboard::shared(context());
            let private: Vec<_> = (0..CLIENTS).map(|_| Switchboard::private(context(), false)).collect();
            let mut calls: Vec<(usize, Registered)> = Vec::new();
            let mut own_calls: Vec<Vec<Registered>> = (0..CLIENTS).map(|_| Vec::new()).collect();
            for (who, step) in steps {
                match step {
                    0 => {
                        calls.push((who, shared.register(&client(who))));
                        own_calls[who].push(private[who].register(&client(who)));
                    }
                    1 if !calls.is_empty() => {
                        let ended = who % calls.len();
                        let (whose, call) = calls.remove(ended);
                        own_calls[whose].pop();
                        let id = call.id();
                        drop(call);
                        // What comes too late has no recipient.
                        prop_assert_eq!(answers(&shared, Origin::Call(id)), None);
                    }
                    2 => {
                        for (whose, call) in &calls {
                            prop_assert_eq!(answers(&shared, Origin::Call(call.id())), Some(*whose));
                        }
                    }
                    _ => {
                        // Nothing says whose it is, unless all calls are of one client.
                        let mut clients: Vec<_> = calls.iter().map(|(whose, _)| *whose).collect();
                        clients.dedup();
                        let only = (clients.len() == 1).then(|| clients[0]);
                        prop_assert_eq!(answers(&shared, Origin::Connection), only);
                        let expected = (!own_calls[who].is_empty()).then_some(who);
                        prop_assert_eq!(answers(&private[who], Origin::Connection), expected);
                    }
                }
            }
        }
    }

    /// The stream of a call that has just been answered.
    #[derive(Debug)]
    struct Closed;

    impl ClientLine for Closed {
        fn ask(&self, _: Request) -> BoxFuture<'_, Result<Box<RawValue>, AskError>> {
            Box::pin(async { Err(AskError::Unreachable) })
        }

        fn tell(&self, _: &Notification) {}
    }

    #[test]
    fn a_question_that_misses_an_answered_call_goes_to_another_of_the_client() {
        let switchboard = Switchboard::private(context(), false);
        let asking = switchboard.register(&client(1));
        let answered = OnBehalf {
            line: Arc::new(Closed),
            ..client(1)
        };
        let _answered = switchboard.register(&answered);
        assert_eq!(answers(&switchboard, Origin::Connection), Some(1));
        drop(asking);
        assert_eq!(answers(&switchboard, Origin::Connection), None);
    }

    #[test]
    fn between_two_calls_the_session_is_asked() {
        let switchboard = Switchboard::private(context(), false);
        assert_eq!(answers(&switchboard, Origin::Connection), None);
        switchboard.set_session_line(client(2).session_line);
        assert_eq!(answers(&switchboard, Origin::Connection), Some(2));
    }
}
