//! Many calls that wait for input at once, resumed in any order: no answer reaches another call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures_util::future::join_all;
use http_body_util::BodyExt;
use mcp::server::{HttpOptions, HttpServer, Parking};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::modern_wire::{VERSION, retry, tool};
use crate::script::Script;
use crate::wire::soon;

/// Clients that run at the same time, each with one plan.
const CLIENTS: usize = 1_000;

/// The questions of every call, and whose turn it is, again and again.
#[derive(Debug, Clone)]
struct Plan {
    calls: Vec<Vec<Vec<String>>>,
    turns: Vec<usize>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let names = prop::sample::subsequence(vec!["a", "b", "c"], 1..=2);
    let names = names.prop_map(|names| names.into_iter().map(ToOwned::to_owned).collect());
    let rounds = prop::collection::vec(names, 1..=2);
    let calls = prop::collection::vec(rounds, 2..=3);
    (calls, prop::collection::vec(0..3_usize, 8)).prop_map(|(calls, turns)| Plan { calls, turns })
}

/// One call of a client, and where it stands.
struct Ongoing {
    message: Value,
    tag: String,
    last: Value,
}

async fn send(server: &HttpServer<Script>, message: &Value) -> Value {
    let request = http::Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", VERSION)
        .header("mcp-method", "tools/call")
        .header("mcp-name", "form")
        .body(Body::from(message.to_string()))
        .unwrap();
    let response = soon(server.handle(request)).await;
    let bytes = soon(response.into_body().collect())
        .await
        .unwrap()
        .to_bytes();
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"))
}

impl Ongoing {
    async fn begin(server: &HttpServer<Script>, tag: String, rounds: &[Vec<String>]) -> Self {
        let message = tool(1, "form", &json!({"tag": tag, "rounds": rounds}));
        let last = send(server, &message).await;
        Self { message, tag, last }
    }

    fn is_over(&self) -> bool {
        self.last["result"]["resultType"] != "input_required"
    }

    /// Answers every question with the call and the name that it was put under.
    async fn advance(&mut self, server: &HttpServer<Script>) {
        let mut responses = BTreeMap::new();
        for (key, question) in self.last["result"]["inputRequests"].as_object().unwrap() {
            let message = question["params"]["message"].clone();
            assert_eq!(message, format!("{}/{key}", self.tag));
            responses.insert(
                key,
                json!({"action": "accept", "content": {"for": message}}),
            );
        }
        let state = &self.last["result"]["requestState"];
        let message = retry(&self.message, 2, state, &json!(responses));
        self.last = send(server, &message).await;
    }

    fn check(&self) {
        let text = self.last["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{}", self.last));
        let answers: BTreeMap<String, Value> = serde_json::from_str(text).unwrap();
        assert!(!answers.is_empty());
        for (name, answer) in answers {
            assert_eq!(answer["content"]["for"], format!("{}/{name}", self.tag));
        }
    }
}

async fn follow(server: HttpServer<Script>, client: usize, plan: Plan) {
    let beginnings = plan
        .calls
        .iter()
        .enumerate()
        .map(|(number, rounds)| Ongoing::begin(&server, format!("{client}.{number}"), rounds));
    let mut calls = join_all(beginnings).await;
    for turn in plan.turns {
        let waiting: Vec<usize> = (0..calls.len())
            .filter(|&it| !calls[it].is_over())
            .collect();
        if let Some(&next) = waiting.get(turn % waiting.len().max(1)) {
            calls[next].advance(&server).await;
        }
    }
    for mut call in calls {
        while !call.is_over() {
            call.advance(&server).await;
        }
        call.check();
    }
}

#[tokio::test]
async fn no_answer_reaches_another_call() {
    let options = HttpOptions {
        patience: Duration::from_mins(1),
        parking: Parking {
            max_calls: 8 * CLIENTS,
            ..Parking::default()
        },
        ..HttpOptions::default()
    };
    let server = HttpServer::new(Arc::clone(&Script::new()), options);
    let mut runner = TestRunner::deterministic();
    let clients = (0..CLIENTS).map(|client| {
        let plan = plans().new_tree(&mut runner).unwrap().current();
        tokio::spawn(follow(server.clone(), client, plan))
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}
