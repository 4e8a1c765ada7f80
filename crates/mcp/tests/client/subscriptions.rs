//! Hearing of changes from a modern server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use futures_util::{StreamExt, stream};
use mcp::client::{Client, Era, Origin, RequestError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{
    Heard, LINE_LIMIT, Peer, Seen, Server, deadline, discover_result, error, event, eventually,
    hello_in, json_answer, options, pipes, raw, recorder, response, sse_answer,
};

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

/// What a server says of itself that tells of everything.
fn talkative() -> Value {
    let mut result = discover_result();
    result["capabilities"] = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
    });
    result
}

fn tagged(id: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"][TAG] = id.clone();
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn acknowledged(id: &Value, filter: &Value) -> Value {
    let method = "notifications/subscriptions/acknowledged";
    tagged(id, method, json!({"notifications": filter}))
}

/// A client over pipes whose server has just been asked to tell of changes.
async fn listening() -> (Client, Peer, mpsc::Receiver<Heard>, Value) {
    let (reader, writer, mut peer) = pipes();
    let (events, heard) = recorder();
    let hello = hello_in(Some(Era::Modern));
    let connecting = Client::connect_lines(reader, writer, LINE_LIMIT, hello, events);
    let serving = async {
        let discover = peer.read().await;
        peer.write(&response(&discover["id"], &talkative())).await;
    };
    let (client, ()) = tokio::join!(connecting, serving);
    let listen = peer.read().await;
    assert_eq!(listen["method"], "subscriptions/listen");
    (client.unwrap(), peer, heard, listen)
}

async fn next(heard: &mut mpsc::Receiver<Heard>) -> (String, Option<String>) {
    let Some(Heard::Notification(notification, Origin::Connection)) = heard.recv().await else {
        panic!("no notification came");
    };
    let params = notification.params.map(|params| params.get().to_owned());
    (notification.method, params)
}

#[tokio::test]
async fn changes_of_lists_are_heard_as_from_a_legacy_server() {
    deadline(async {
        let (_client, mut peer, mut heard, listen) = listening().await;
        let filter = json!({"toolsListChanged": true, "resourcesListChanged": true});
        assert_eq!(listen["params"]["notifications"], filter);
        let id = &listen["id"];
        peer.write(&acknowledged(id, &filter)).await;
        let changed = "notifications/tools/list_changed";
        peer.write(&tagged(id, changed, json!({}))).await;
        assert_eq!(
            next(&mut heard).await,
            (changed.to_owned(), Some("{}".to_owned()))
        );
    })
    .await;
}

#[tokio::test]
async fn a_subscription_opens_a_new_stream_before_it_leaves_the_old_one() {
    deadline(async {
        let (client, mut peer, mut heard, first) = listening().await;
        peer.write(&acknowledged(
            &first["id"],
            &first["params"]["notifications"],
        ))
        .await;
        let subscribing = client.request(
            "resources/subscribe",
            Some(raw(r#"{"uri":"file:///a"}"#)),
            options(),
        );
        let serving = async {
            let second = peer.read().await;
            assert_eq!(second["method"], "subscriptions/listen");
            let filter = &second["params"]["notifications"];
            assert_eq!(filter["resourceSubscriptions"], json!(["file:///a"]));
            assert_eq!(filter["toolsListChanged"], true);
            peer.write(&acknowledged(&second["id"], filter)).await;
            let cancelled = peer.read().await;
            assert_eq!(cancelled["method"], "notifications/cancelled");
            assert_eq!(cancelled["params"]["requestId"], first["id"]);
            second
        };
        let (subscribed, second) = tokio::join!(subscribing, serving);
        assert_eq!(subscribed.unwrap().get(), "{}");
        let update = json!({"uri": "file:///a"});
        let updated = "notifications/resources/updated";
        peer.write(&tagged(&second["id"], updated, update)).await;
        let expected = (
            updated.to_owned(),
            Some(r#"{"uri":"file:///a"}"#.to_owned()),
        );
        assert_eq!(next(&mut heard).await, expected);

        let unsubscribed = client.request(
            "resources/unsubscribe",
            Some(raw(r#"{"uri":"file:///a"}"#)),
            options(),
        );
        assert_eq!(unsubscribed.await.unwrap().get(), "{}");
        let third = peer.read().await;
        let filter = &third["params"]["notifications"];
        assert_eq!(filter.get("resourceSubscriptions"), None);
    })
    .await;
}

#[tokio::test]
async fn a_subscription_that_is_not_honoured_is_refused_and_forgotten() {
    deadline(async {
        let (client, mut peer, _heard, first) = listening().await;
        let lists = first["params"]["notifications"].clone();
        peer.write(&acknowledged(&first["id"], &lists)).await;
        let subscribe = || {
            client.request(
                "resources/subscribe",
                Some(raw(r#"{"uri":"x"}"#)),
                options(),
            )
        };
        // Once by leaving it out of the acknowledgement, once with an error.
        let leaving_out = async {
            let second = peer.read().await;
            peer.write(&acknowledged(&second["id"], &lists)).await;
            assert_eq!(peer.read().await["method"], "notifications/cancelled");
            let third = peer.read().await;
            assert_eq!(third["params"]["notifications"], lists);
            peer.write(&acknowledged(&third["id"], &lists)).await;
            assert_eq!(peer.read().await["method"], "notifications/cancelled");
        };
        let (outcome, ()) = tokio::join!(subscribe(), leaving_out);
        assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == -32602));
        let refusing = async {
            let listen = peer.read().await;
            peer.write(&error(&listen["id"], -32602, "no such resource"))
                .await;
            assert_eq!(peer.read().await["params"]["notifications"], lists);
        };
        let (outcome, ()) = tokio::join!(subscribe(), refusing);
        assert!(
            matches!(outcome, Err(RequestError::Rpc(error)) if error.message == "no such resource")
        );
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_the_server_ends_is_opened_again_and_what_was_missed_is_told() {
    for graceful in [true, false] {
        deadline(async {
            let (_client, mut peer, mut heard, first) = listening().await;
            let id = &first["id"];
            let filter = json!({"toolsListChanged": true});
            peer.write(&acknowledged(id, &filter)).await;
            if graceful {
                peer.write(&response(id, &json!({"resultType": "complete"})))
                    .await;
            } else {
                let params = json!({"requestId": id});
                let method = "notifications/cancelled";
                peer.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
                    .await;
            }
            // A stream that the server has given up is not cancelled.
            let again = peer.read().await;
            assert_eq!(again["method"], "subscriptions/listen");
            assert_ne!(&again["id"], id);
            peer.write(&acknowledged(&again["id"], &filter)).await;
            let changed = "notifications/tools/list_changed".to_owned();
            assert_eq!(next(&mut heard).await, (changed, None));
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_that_knows_no_streams_is_not_asked_again() {
    deadline(async {
        let (client, mut peer, _heard, listen) = listening().await;
        peer.write(&error(&listen["id"], -32601, "unknown")).await;
        let subscribing = client.request(
            "resources/subscribe",
            Some(raw(r#"{"uri":"x"}"#)),
            options(),
        );
        let outcome = subscribing.await;
        assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == -32601));
        let outcome = client.request("resources/subscribe", None, options()).await;
        assert!(matches!(outcome, Err(RequestError::Rpc(error)) if error.code == -32602));
    })
    .await;
}

type Stream = mpsc::Sender<String>;

/// An HTTP server whose streams of changes are written to by the test.
async fn over_http(streams: Arc<Mutex<Vec<(Value, Stream)>>>) -> Server {
    Server::start(move |seen: &Seen| {
        if seen.is("server/discover") {
            return json_answer(&response(seen.id(), &talkative()));
        }
        assert!(seen.is("subscriptions/listen"), "{:?}", seen.message);
        let (sender, receiver) = mpsc::channel::<String>(8);
        let filter = &seen.message["params"]["notifications"];
        let first = event(&acknowledged(seen.id(), filter));
        streams.lock().unwrap().push((seen.id().clone(), sender));
        let later = stream::unfold(receiver, async |mut receiver| {
            Some((receiver.recv().await?, receiver))
        });
        let text = stream::iter([first]).chain(later);
        sse_answer(Body::from_stream(text.map(Ok::<_, std::io::Error>)))
    })
    .await
}

#[tokio::test]
async fn over_http_the_stream_is_one_long_answer() {
    deadline(async {
        let streams = Arc::<Mutex<Vec<(Value, Stream)>>>::default();
        let server = over_http(Arc::clone(&streams)).await;
        let (events, mut heard) = recorder();
        let client = server.connect_modern(events).await;
        let count = |wanted: usize| {
            let streams = Arc::clone(&streams);
            move || streams.lock().unwrap().len() == wanted
        };
        eventually("the stream is open", count(1)).await;
        let subscribing = client.request(
            "resources/subscribe",
            Some(raw(r#"{"uri":"a"}"#)),
            options(),
        );
        subscribing.await.unwrap();
        eventually("there is a second stream", count(2)).await;
        let (id, stream) = streams.lock().unwrap()[1].clone();
        let old = streams.lock().unwrap()[0].1.clone();
        tokio::time::timeout(Duration::from_secs(5), old.closed())
            .await
            .expect("the old stream is given up");
        let updated = "notifications/resources/updated";
        let update = event(&tagged(&id, updated, json!({"uri": "a"})));
        stream.send(update).await.unwrap();
        let expected = (updated.to_owned(), Some(r#"{"uri":"a"}"#.to_owned()));
        assert_eq!(next(&mut heard).await, expected);
        // Nothing but POSTs, and each with its headers.
        for seen in server.seen() {
            assert_eq!(seen.header("mcp-method"), seen.message["method"].as_str());
        }
        client.close().await;
        tokio::time::timeout(Duration::from_secs(5), stream.closed())
            .await
            .expect("closing gives up the stream");
    })
    .await;
}
