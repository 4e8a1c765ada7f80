//! Results that ask for input first.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use mcp::client::{CallId, Client, Events, Origin, ProtocolError, RequestError, RequestOptions};
use mcp::{ErrorObject, Notification, RawValue, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{
    Peer, Server, connect_modern, deadline, discovered, json_answer, options, raw, response,
};

fn asks(questions: &Value, state: Option<&str>) -> Value {
    let mut result = json!({"resultType": "input_required", "inputRequests": questions});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

fn elicit(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"message": message}})
}

/// Answers a form with what it says and whose call it was, and nothing else.
struct Person;

impl Events for Person {
    fn notification(&self, _: Notification, _: Origin) {}

    async fn request(
        &self,
        request: Request,
        origin: Origin,
    ) -> Result<Box<RawValue>, ErrorObject> {
        if request.method != "elicitation/create" {
            return Err(ErrorObject::method_not_found(&request.method));
        }
        let params: Value = serde_json::from_str(request.params.unwrap().get()).unwrap();
        let answer = json!({"message": params["message"], "origin": format!("{origin:?}")});
        Ok(raw(&answer.to_string()))
    }
}

fn of_call(call: CallId) -> RequestOptions {
    RequestOptions {
        call: Some(call),
        ..options()
    }
}

async fn serve(peer: &mut Peer, result: Value) -> Value {
    let request = peer.read().await;
    peer.write(&response(&request["id"], &result)).await;
    request
}

#[tokio::test]
async fn questions_are_answered_and_the_state_is_handed_back() {
    deadline(async {
        let (client, mut peer) = connect_modern(Person).await;
        let call = CallId::fresh();
        let params = raw(r#"{"name":"t","arguments":{"b":1,"a":2}}"#);
        let calling = client.request("tools/call", Some(params), of_call(call));
        let serving = async {
            let questions = json!({"one": elicit("1"), "two": elicit("2")});
            let first = serve(&mut peer, asks(&questions, Some("s1"))).await;
            let second = serve(&mut peer, asks(&json!({"three": elicit("3")}), None)).await;
            let third = serve(&mut peer, json!({"content": []})).await;
            [first, second, third]
        };
        let (result, [first, second, third]) = tokio::join!(calling, serving);
        assert_eq!(result.unwrap().get(), r#"{"content":[]}"#);
        let origin = format!("{:?}", Origin::Call(call));
        let answer = |message: &str| json!({"message": message, "origin": origin});
        assert_eq!(first["params"].get("inputResponses"), None);
        let responses = json!({"one": answer("1"), "two": answer("2")});
        assert_eq!(second["params"]["inputResponses"], responses);
        assert_eq!(second["params"]["requestState"], "s1");
        let responses = json!({"three": answer("3")});
        assert_eq!(third["params"]["inputResponses"], responses);
        assert_eq!(third["params"].get("requestState"), None);
        for request in [&first, &second, &third] {
            assert_eq!(request["params"]["arguments"], json!({"b": 1, "a": 2}));
        }
        assert!(first["id"] != second["id"] && second["id"] != third["id"]);
    })
    .await;
}

#[tokio::test]
async fn a_state_without_questions_is_handed_back_alone() {
    deadline(async {
        let (client, mut peer) = connect_modern(Person).await;
        let calling = client.request("resources/read", Some(raw(r#"{"uri":"a"}"#)), options());
        let serving = async {
            let wait = json!({"resultType": "input_required", "requestState": "later"});
            serve(&mut peer, wait).await;
            serve(&mut peer, json!({"contents": []})).await
        };
        let (result, retried) = tokio::join!(calling, serving);
        result.unwrap();
        assert_eq!(retried["params"]["requestState"], "later");
        assert_eq!(retried["params"].get("inputResponses"), None);
    })
    .await;
}

#[tokio::test]
async fn a_question_that_is_not_answered_fails_the_call() {
    deadline(async {
        let (client, mut peer) = connect_modern(Person).await;
        let calling = client.request("prompts/get", Some(raw(r#"{"name":"p"}"#)), options());
        let questions = json!({"form": elicit("1"), "roots": {"method": "roots/list"}});
        let (outcome, _) = tokio::join!(calling, serve(&mut peer, asks(&questions, None)));
        let Err(RequestError::InputRefused { method, source }) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((method.as_str(), source.code), ("roots/list", -32601));
    })
    .await;
}

#[tokio::test]
async fn a_server_that_never_stops_asking_is_left() {
    deadline(async {
        let (client, mut peer) = connect_modern(Person).await;
        let calling = client.request("tools/call", Some(raw(r#"{"name":"t"}"#)), options());
        let serving = async {
            for _ in 0..10 {
                serve(&mut peer, asks(&json!({"again": elicit("?")}), None)).await;
            }
        };
        let (outcome, ()) = tokio::join!(calling, serving);
        assert!(matches!(
            outcome,
            Err(RequestError::Protocol(ProtocolError::InputRounds {
                rounds: 10
            }))
        ));
    })
    .await;
}

#[tokio::test]
async fn nonsense_is_not_asked_of_anybody() {
    deadline(async {
        let (client, mut peer) = connect_modern(Person).await;
        for questions in [json!([1]), json!({"a": {"params": {}}}), json!({"a": 7})] {
            let calling = client.request("tools/call", Some(raw("{}")), options());
            let (outcome, _) = tokio::join!(calling, serve(&mut peer, asks(&questions, None)));
            assert!(
                matches!(
                    outcome,
                    Err(RequestError::Protocol(ProtocolError::InputRequired(_)))
                ),
                "{questions}: {outcome:?}"
            );
        }
        // Other methods have no business asking; their results are nobody else's either.
        let odd = asks(&json!({"a": elicit("?")}), None);
        let calling = client.request("tools/list", None, options());
        let (outcome, _) = tokio::join!(calling, serve(&mut peer, odd));
        assert!(outcome.unwrap().get().contains("input_required"));
    })
    .await;
}

#[tokio::test]
async fn the_timeout_covers_the_questions() {
    struct Nobody;

    impl Events for Nobody {
        fn notification(&self, _: Notification, _: Origin) {}

        async fn request(&self, _: Request, _: Origin) -> Result<Box<RawValue>, ErrorObject> {
            std::future::pending().await
        }
    }

    deadline(async {
        let (client, mut peer) = connect_modern(Nobody).await;
        let brief = RequestOptions {
            timeout: Some(Duration::from_millis(100)),
            ..options()
        };
        let calling = client.request("tools/call", Some(raw("{}")), brief);
        let questions = asks(&json!({"a": elicit("?")}), None);
        let (outcome, _) = tokio::join!(calling, serve(&mut peer, questions));
        assert!(matches!(outcome, Err(RequestError::Timeout { .. })));
    })
    .await;
}

/// A server that wants each call to come back a number of times, and remembers what it said.
async fn interrogator() -> Server {
    let states = Mutex::new(HashMap::<String, (String, u64)>::new());
    Server::start(move |seen| {
        if let Some(answer) = discovered(seen) {
            return answer;
        }
        let params = &seen.message["params"];
        let name = params["name"].as_str().unwrap().to_owned();
        let rounds = params["arguments"]["rounds"].as_u64().unwrap();
        let mut states = states.lock().unwrap();
        let round = match params["requestState"].as_str() {
            None => {
                assert!(params.get("inputResponses").is_none());
                0
            }
            Some(state) => {
                let (owner, round) = states.remove(state).expect("a state nobody was given");
                assert_eq!(owner, name, "the state of another call");
                let answer = &params["inputResponses"]["question"];
                assert_eq!(answer["message"], json!(format!("{name}/{round}")));
                assert_eq!(answer["origin"], params["arguments"]["origin"]);
                round
            }
        };
        if round == rounds {
            return json_answer(&response(seen.id(), &json!({"name": name})));
        }
        let state = format!("{name}:{round}:{}", seen.id());
        states.insert(state.clone(), (name.clone(), round + 1));
        let question = json!({"question": elicit(&format!("{name}/{}", round + 1))});
        json_answer(&response(seen.id(), &asks(&question, Some(&state))))
    })
    .await
}

async fn interrogate(client: Client, name: String, rounds: u64) {
    let call = CallId::fresh();
    let origin = format!("{:?}", Origin::Call(call));
    let params = json!({"name": name, "arguments": {"rounds": rounds, "origin": origin}});
    let params = Some(raw(&params.to_string()));
    let result = client.request("tools/call", params, of_call(call)).await;
    let result: Value = serde_json::from_str(result.unwrap().get()).unwrap();
    assert_eq!(result["name"], json!(name));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// The server fails on any state or answer that belongs to another call.
    #[test]
    fn calls_beside_each_other_never_mix(rounds in prop::collection::vec(0_u64..6, 1..16)) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(deadline(async {
            let server = interrogator().await;
            let client = server.connect_modern(Person).await;
            let calls: Vec<_> = rounds
                .into_iter()
                .enumerate()
                .map(|(number, rounds)| {
                    tokio::spawn(interrogate(client.clone(), format!("call-{number}"), rounds))
                })
                .collect();
            for call in calls {
                call.await.unwrap();
            }
        }));
    }
}
