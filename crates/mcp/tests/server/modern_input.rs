//! Calls that need input: asked for by their answer, brought by the next request.

use std::time::Duration;

use mcp::server::{HttpOptions, Parking};
use serde_json::{Value, json};

use crate::modern_wire::{meta, modern, retry, tool};
use crate::wire::{Endpoint, EventReader, body, soon};

fn form(id: u64, rounds: &Value) -> Value {
    tool(id, "form", &json!({"tag": "t", "rounds": rounds}))
}

fn accept(content: &str) -> Value {
    json!({"action": "accept", "content": {"value": content}})
}

fn text(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str();
    serde_json::from_str(text.unwrap_or_else(|| panic!("{answer}"))).unwrap()
}

#[track_caller]
fn asks_for(answer: &Value, keys: &[&str]) -> Value {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let asked = answer["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(asked.keys().collect::<Vec<_>>(), keys);
    answer["result"]["requestState"].clone()
}

#[tokio::test]
async fn a_question_is_the_answer_and_its_answer_a_request() {
    let endpoint = Endpoint::open().await;
    let call = form(1, &json!([["name"]]));
    let asked = endpoint.answer(&call).await;
    assert_eq!(asked["id"], 1);
    let state = asks_for(&asked, &["name"]);
    let question = &asked["result"]["inputRequests"]["name"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "t/name");
    let again = retry(
        &call,
        2,
        &state,
        &json!({"name": accept("Ada"), "other": accept("x")}),
    );
    let answer = endpoint.answer(&again).await;
    assert_eq!(answer["id"], 2);
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(text(&answer), json!({"name": accept("Ada")}));
    assert_eq!(endpoint.script.events.borrow().begun, 1);
}

#[tokio::test]
async fn a_legacy_client_is_asked_on_its_stream() {
    let endpoint = Endpoint::open().await;
    let session = endpoint.session("2025-11-25").await;
    let arguments = json!({"rounds": [["name"]]});
    let response = session.call(1, "form", &arguments).await;
    let mut events = EventReader::of(response);
    let _priming = events.next().await;
    let question = events.message().await;
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": accept("Ada")});
    session.send(&answer).await;
    assert_eq!(
        text(&events.message().await),
        json!({"name": accept("Ada")})
    );
}

#[tokio::test]
async fn questions_put_at_once_are_asked_at_once() {
    let endpoint = Endpoint::open().await;
    let call = form(1, &json!([["a", "b"]]));
    let state = asks_for(&endpoint.answer(&call).await, &["a", "b"]);
    // One is left out, so it is asked for again.
    let half = retry(&call, 2, &state, &json!({"a": accept("1")}));
    let rest = asks_for(&endpoint.answer(&half).await, &["b"]);
    assert_ne!(rest, state);
    let whole = retry(&call, 3, &rest, &json!({"b": accept("2")}));
    let answers = json!({"a": accept("1"), "b": accept("2")});
    assert_eq!(text(&endpoint.answer(&whole).await), answers);
}

#[tokio::test]
async fn one_round_may_follow_another() {
    let endpoint = Endpoint::open().await;
    let call = form(1, &json!([["a"], ["b"], ["c"]]));
    let mut state = asks_for(&endpoint.answer(&call).await, &["a"]);
    for (id, (given, next)) in [("a", "b"), ("b", "c")].into_iter().enumerate() {
        let message = retry(&call, 2 + id as u64, &state, &json!({given: accept(given)}));
        let following = asks_for(&endpoint.answer(&message).await, &[next]);
        assert_ne!(following, state);
        state = following;
    }
    let message = retry(&call, 9, &state, &json!({"c": accept("c")}));
    let answers = json!({"a": accept("a"), "b": accept("b"), "c": accept("c")});
    assert_eq!(text(&endpoint.answer(&message).await), answers);
}

#[tokio::test]
async fn a_question_without_a_name_gets_one() {
    let endpoint = Endpoint::open().await;
    let answer = endpoint.answer(&tool(1, "roots", &json!({}))).await;
    let state = asks_for(&answer, &["input-1"]);
    assert_eq!(
        answer["result"]["inputRequests"]["input-1"]["params"],
        json!({})
    );
    let call = tool(1, "roots", &json!({}));
    let roots = retry(&call, 2, &state, &json!({"input-1": {"roots": []}}));
    assert_eq!(text(&endpoint.answer(&roots).await), json!({"roots": []}));
}

#[tokio::test]
async fn an_answer_may_come_with_the_call_itself() {
    let endpoint = Endpoint::open().await;
    let mut call = form(1, &json!([["a"]]));
    call["params"]["inputResponses"] = json!({"b": accept("2")});
    asks_for(&endpoint.answer(&call).await, &["a"]);
    call["params"]["inputResponses"] = json!({"a": accept("1"), "b": accept("2")});
    assert_eq!(
        text(&endpoint.answer(&call).await),
        json!({"a": accept("1")})
    );
    for nonsense in [json!({"a": 1}), json!(null), json!([])] {
        call["params"]["inputResponses"] = nonsense;
        assert_eq!(endpoint.answer(&call).await["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn a_state_is_good_for_its_own_call_and_only_once() {
    let endpoint = Endpoint::open().await;
    let call = form(1, &json!([["a"]]));
    let state = asks_for(&endpoint.answer(&call).await, &["a"]);
    let responses = json!({"a": accept("1")});
    let tampered = json!(format!("{}-TAMPERED", state.as_str().unwrap()));
    let other_call = form(1, &json!([["b"]]));
    let other_tool = tool(1, "roots", &json!({"tag": "t", "rounds": [["a"]]}));
    for refused in [
        retry(&call, 2, &tampered, &responses),
        retry(&call, 2, &json!(""), &responses),
        retry(&call, 2, &json!({"a": 1}), &responses),
        retry(&other_call, 2, &state, &responses),
        retry(&other_tool, 2, &state, &responses),
    ] {
        assert_eq!(
            endpoint.answer(&refused).await["error"]["code"],
            -32602,
            "{refused}"
        );
    }
    let again = retry(&call, 3, &state, &responses);
    assert_eq!(
        text(&endpoint.answer(&again).await),
        json!({"a": accept("1")})
    );
    assert_eq!(endpoint.answer(&again).await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_state_is_worth_nothing_to_somebody_else() {
    let endpoint = Endpoint::open().await;
    let call = form(1, &json!([["a"]]));
    let as_user = |message: &Value, user: &str| {
        let request = endpoint.modern_post(message).header("x-principal", user);
        async { body(soon(request.send()).await.unwrap()).await }
    };
    let state = asks_for(&as_user(&call, "ada").await, &["a"]);
    let again = retry(&call, 2, &state, &json!({"a": accept("1")}));
    assert_eq!(as_user(&again, "eve").await["error"]["code"], -32602);
    assert_eq!(endpoint.answer(&again).await["error"]["code"], -32602);
    let answer = as_user(&again, "ada").await;
    assert_eq!(text(&answer), json!({"a": accept("1")}));
}

#[tokio::test]
async fn a_client_that_stays_away_finds_its_call_cancelled() {
    let endpoint = Endpoint::with(HttpOptions {
        parking: Parking {
            expiry: Duration::from_millis(50),
            ..Parking::default()
        },
        ..HttpOptions::default()
    })
    .await;
    let call = form(1, &json!([["a"]]));
    let state = asks_for(&endpoint.answer(&call).await, &["a"]);
    endpoint
        .script
        .until(|events| events.outbound_gone == 1 && events.finished == 1)
        .await;
    let late = retry(&call, 2, &state, &json!({"a": accept("1")}));
    assert_eq!(endpoint.answer(&late).await["error"]["code"], -32602);
}

#[tokio::test]
async fn only_so_many_calls_wait() {
    let endpoint = Endpoint::with(HttpOptions {
        parking: Parking {
            max_calls: 1,
            ..Parking::default()
        },
        ..HttpOptions::default()
    })
    .await;
    let call = form(1, &json!([["a"]]));
    let state = asks_for(&endpoint.answer(&call).await, &["a"]);
    let refused = endpoint.answer(&form(2, &json!([["a"]]))).await;
    assert_eq!(refused["error"]["code"], -32603);
    let first = retry(&call, 3, &state, &json!({"a": accept("1")}));
    assert_eq!(
        text(&endpoint.answer(&first).await),
        json!({"a": accept("1")})
    );
    asks_for(&endpoint.answer(&form(4, &json!([["a"]]))).await, &["a"]);
}

#[tokio::test]
async fn a_client_is_asked_only_what_it_can_answer() {
    let endpoint = Endpoint::open().await;
    let with = |capabilities: Value, name: &str, arguments: Value| {
        let meta = meta(&capabilities);
        let params = json!({"name": name, "arguments": arguments, "_meta": meta});
        modern(1, "tools/call", params)
    };
    let sample = with(json!({"elicitation": {}}), "sample", json!({}));
    let response = endpoint.modern(&sample).await;
    assert_eq!(response.status(), 400);
    let error = body(response).await["error"].clone();
    assert_eq!(error["code"], -32021);
    assert_eq!(
        error["data"]["requiredCapabilities"],
        json!({"sampling": {}})
    );
    let asked = with(json!({"sampling": {}}), "sample", json!({}));
    asks_for(&endpoint.answer(&asked).await, &["input-1"]);
    let form = with(
        json!({"elicitation": {"url": {}}}),
        "form",
        json!({"rounds": [["a"]]}),
    );
    assert_eq!(endpoint.answer(&form).await["error"]["code"], -32021);
}

#[tokio::test]
async fn a_call_that_ends_while_it_waits_is_answered_by_the_retry() {
    let endpoint = Endpoint::open().await;
    let answer = endpoint.answer(&tool(1, "impatient", &json!({}))).await;
    let state = asks_for(&answer, &["input-1"]);
    endpoint.script.until(|events| events.finished == 1).await;
    let call = tool(1, "impatient", &json!({}));
    let again = retry(&call, 2, &state, &json!({}));
    let answer = endpoint.answer(&again).await;
    assert_eq!(answer["result"]["content"][0]["text"], "gave up");
}

#[tokio::test]
async fn the_end_of_the_server_cancels_calls_that_wait() {
    let endpoint = Endpoint::open().await;
    let call = form(1, &json!([["a"]]));
    let state = asks_for(&endpoint.answer(&call).await, &["a"]);
    // Being asked ended the first round, and with it the response, but not the call.
    assert_eq!(endpoint.script.events.borrow().finished, 0);
    endpoint.server.end_all_sessions();
    endpoint
        .script
        .until(|events| events.outbound_gone == 1)
        .await;
    let late = retry(&call, 2, &state, &json!({"a": accept("1")}));
    assert_eq!(endpoint.answer(&late).await["error"]["code"], -32602);
}

#[tokio::test]
async fn capabilities_are_those_of_the_request_that_asks() {
    let endpoint = Endpoint::open().await;
    let call = form(1, &json!([["a"], ["b"]]));
    let state = asks_for(&endpoint.answer(&call).await, &["a"]);
    let mut poorer = retry(&call, 2, &state, &json!({"a": accept("1")}));
    poorer["params"]["_meta"] = meta(&json!({}));
    assert_eq!(endpoint.answer(&poorer).await["error"]["code"], -32021);
}
