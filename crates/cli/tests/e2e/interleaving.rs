//! Two clients at once on one upstream, each with a question to its user in flight: whatever the
//! order of calls, questions and answers, each hears only what is its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp::client::{Client, Era, Events, Hello, HttpEndpoint, Origin, RequestOptions};
use mcp::{ErrorObject, Notification, RawValue, Request};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use testkit::TestDaemon;
use testkit::conformance::{Eras, Fixture};
use tokio::sync::watch;

use crate::support::home;

/// Interleavings, in each test.
const ROUNDS: usize = 500;

/// In which order calls begin and are answered.
#[derive(Debug, Clone)]
struct Plan {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// The client makes its call of this number.
    Begin(usize, usize),
    /// The user of the client answers the question of its call of this number; one that was not
    /// asked yet is answered as soon as it is.
    Answer(usize, usize),
    /// Whatever is on its way gets this many milliseconds.
    Pause(u64),
}

/// One or two calls of each client, and their steps in any order.
fn plans() -> impl Strategy<Value = Plan> {
    let pauses = prop::collection::vec(0..4_u64, 0..4);
    (1..=2_usize, 1..=2_usize, pauses).prop_flat_map(|(one, two, pauses)| {
        let mut steps = Vec::new();
        for (client, calls) in [(0, one), (1, two)] {
            for call in 0..calls {
                steps.extend([Step::Begin(client, call), Step::Answer(client, call)]);
            }
        }
        steps.extend(pauses.into_iter().map(Step::Pause));
        Just(steps).prop_shuffle().prop_map(|steps| Plan { steps })
    })
}

/// The user of a client: sees questions, and answers those that the plan has come to.
#[derive(Debug, Clone)]
struct User {
    name: &'static str,
    answered: watch::Receiver<Vec<String>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Events for User {
    fn notification(&self, _: Notification, _: Origin) {}

    async fn request(&self, request: Request, _: Origin) -> Result<Box<RawValue>, ErrorObject> {
        let params: Value = serde_json::from_str(request.params.unwrap().get()).unwrap();
        let question = params["message"].as_str().unwrap().to_owned();
        self.seen.lock().unwrap().push(question.clone());
        if question.starts_with(self.name) {
            let mut answered = self.answered.clone();
            let come = answered.wait_for(|answered| answered.contains(&question));
            // The sender is gone only when the test has failed already.
            let _ = come.await;
        }
        let content = json!({"username": format!("{} on {question}", self.name), "email": "-"});
        let answer = json!({"action": "accept", "content": content});
        Ok(to_raw_value(&answer).unwrap())
    }
}

/// One of the two clients.
struct Party {
    client: Arc<Client>,
    user: User,
    answers: watch::Sender<Vec<String>>,
}

impl Party {
    async fn connect(name: &'static str, url: &str, era: Era) -> Self {
        let (answers, answered) = watch::channel(Vec::new());
        let user = User {
            name,
            answered,
            seen: Arc::default(),
        };
        let mut hello = Hello::new(name, "1");
        hello.era = Some(era);
        hello.capabilities = to_raw_value(&json!({"elicitation": {}})).unwrap();
        let endpoint = HttpEndpoint::new(url.parse().unwrap());
        let client = Client::connect_http(endpoint, hello, user.clone()).await;
        Self {
            client: Arc::new(client.unwrap()),
            user,
            answers,
        }
    }

    fn tag(&self, round: usize, call: usize) -> String {
        format!("{}/{round}/{call}", self.user.name)
    }

    async fn call(client: Arc<Client>, question: String) -> String {
        let params = json!({"name": "test_elicitation", "arguments": {"message": question}});
        let params = to_raw_value(&params).unwrap();
        let options = RequestOptions::default();
        let result = client.request("tools/call", Some(params), options).await;
        result.unwrap().get().to_owned()
    }
}

async fn play(parties: &[Party; 2], round: usize, plan: &Plan) {
    let mut calls = HashMap::new();
    for &step in &plan.steps {
        match step {
            Step::Begin(of, call) => {
                let party = &parties[of];
                let question = party.tag(round, call);
                let calling = Party::call(Arc::clone(&party.client), question.clone());
                calls.insert((of, question), tokio::spawn(calling));
            }
            Step::Answer(of, call) => {
                let question = parties[of].tag(round, call);
                parties[of]
                    .answers
                    .send_modify(|answers| answers.push(question));
            }
            Step::Pause(milliseconds) => {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            }
        }
    }
    for ((of, question), calling) in calls {
        let result = calling.await.unwrap();
        let own = format!("{} on {question}\\\"", parties[of].user.name);
        assert!(result.contains(&own), "{plan:?}: {question} got {result}");
    }
    for party in parties {
        let mine = format!("{}/{round}/", party.user.name);
        let seen = std::mem::take(&mut *party.user.seen.lock().unwrap());
        assert!(
            seen.iter().all(|question| question.starts_with(&mine)),
            "{plan:?}: {} was asked {seen:?}",
            party.user.name
        );
        party.answers.send_modify(Vec::clear);
    }
}

async fn play_all(daemon: &TestDaemon) {
    daemon.wait_for_server("fixture").await;
    let url = daemon.url("/mcp/server/fixture");
    let parties = [
        Party::connect("ada", &url, Era::Legacy).await,
        Party::connect("bob", &url, Era::Modern).await,
    ];
    let mut runner = TestRunner::deterministic();
    for round in 0..ROUNDS {
        let plan = plans().new_tree(&mut runner).unwrap().current();
        play(&parties, round, &plan).await;
    }
}

/// A pipe does not say which call a question belongs to.
#[tokio::test(flavor = "multi_thread")]
async fn no_client_hears_what_is_meant_for_another_over_a_legacy_pipe() {
    let home = home();
    let fixture = home.conformance_upstream(Eras::Legacy);
    let daemon = TestDaemon::with_servers(home, json!({"fixture": fixture})).await;
    play_all(&daemon).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_hears_what_is_meant_for_another_over_modern_http() {
    let fixture = Fixture::http(0, Eras::Modern).await.unwrap();
    let servers = json!({"fixture": fixture.config()});
    let daemon = TestDaemon::with_servers(home(), servers).await;
    play_all(&daemon).await;
}
