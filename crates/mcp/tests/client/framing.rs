//! What comes out of a pipe: messages, noise, lines that are too long, and results to the byte.

use mcp::client::{Client, CloseReason, ConnectError, Origin, ProtocolError, RequestError};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{
    Heard, LINE_LIMIT, connect, deadline, hello, options, pipes, raw, recorder, response,
};

#[tokio::test]
async fn a_batch_is_taken_apart() {
    deadline(async {
        let (events, mut heard) = recorder();
        let (client, mut peer) = connect(events).await;
        let calls = async {
            tokio::join!(
                client.request("one", None, options()),
                client.request("two", None, options())
            )
        };
        let serving = async {
            let (one, two) = (peer.read().await, peer.read().await);
            peer.write(&json!([
                {"jsonrpc": "2.0", "method": "notifications/message"},
                response(&one["id"], &json!(1)),
                response(&two["id"], &json!(2)),
            ]))
            .await;
        };
        let ((one, two), ()) = tokio::join!(calls, serving);
        assert_eq!((one.unwrap().get(), two.unwrap().get()), ("1", "2"));
        assert!(matches!(
            heard.recv().await,
            Some(Heard::Notification(notification, Origin::Connection))
                if notification.method == "notifications/message"
        ));
    })
    .await;
}

#[tokio::test]
async fn banners_before_and_noise_after_the_handshake_are_passed_over() {
    deadline(async {
        let (reader, writer, mut peer) = pipes();
        let connecting = Client::connect_lines(reader, writer, LINE_LIMIT, hello(), ());
        let serving = async {
            peer.write_line("Starting up \u{1b}[1mserver\u{1b}[0m v3")
                .await;
            peer.write_line(r#"{"level":30,"id":1,"msg":"listening"}"#)
                .await;
            peer.accept().await;
            for _ in 0..500 {
                peer.write_line("[debug] tick").await;
            }
            let call = peer.read().await;
            peer.write(&response(&call["id"], &json!("still here")))
                .await;
        };
        let calling = async {
            let client = connecting.await.unwrap();
            client.request("call", None, options()).await.unwrap()
        };
        let (result, ()) = tokio::join!(calling, serving);
        assert_eq!(result.get(), "\"still here\"");
    })
    .await;
}

#[tokio::test]
async fn a_program_that_never_speaks_mcp_is_given_up_and_quoted() {
    deadline(async {
        let (reader, writer, mut peer) = pipes();
        let connecting = Client::connect_lines(reader, writer, LINE_LIMIT, hello(), ());
        let serving = async {
            for line in 0..101 {
                peer.write_line(&format!("usage: line {line}")).await;
            }
        };
        let (client, ()) = tokio::join!(connecting, serving);
        let error = client.unwrap_err();
        let ConnectError::Initialize(RequestError::Closed(reason)) = error else {
            panic!("{error:?}");
        };
        assert!(matches!(*reason, CloseReason::NotMcp { .. }), "{reason:?}");
        assert!(reason.to_string().contains("usage: line 0"), "{reason}");
    })
    .await;
}

#[tokio::test]
async fn a_program_that_ends_at_once_has_its_last_words_quoted() {
    deadline(async {
        let (reader, writer, mut peer) = pipes();
        peer.write_line("error: no such option \u{1b}[31m--mcp")
            .await;
        drop(peer);
        let error = Client::connect_lines(reader, writer, LINE_LIMIT, hello(), ())
            .await
            .unwrap_err();
        let ConnectError::Initialize(RequestError::Closed(reason)) = error else {
            panic!("{error:?}");
        };
        assert!(matches!(*reason, CloseReason::Ended { .. }), "{reason:?}");
        let text = reason.to_string();
        assert!(text.contains("no such option \\u{1b}[31m--mcp"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn a_line_over_the_limit_ends_the_connection_with_or_without_an_end() {
    for end in ["", "\n"] {
        deadline(async {
            let (client, mut peer) = connect(()).await;
            let calls = async {
                tokio::join!(
                    client.request("one", None, options()),
                    client.request("other", None, options())
                )
            };
            let serving = async {
                let (one, _) = (peer.read().await, peer.read().await);
                let huge = "x".repeat(LINE_LIMIT);
                peer.write_text(&format!(
                    r#"{{"jsonrpc":"2.0","id":{},"result":"{huge}"}}{end}"#,
                    one["id"]
                ))
                .await;
            };
            let ((one, other), ()) = tokio::join!(calls, serving);
            for outcome in [one, other] {
                let Err(RequestError::Closed(reason)) = outcome else {
                    panic!("{outcome:?}");
                };
                assert!(
                    matches!(*reason, CloseReason::Oversized { limit: LINE_LIMIT }),
                    "{reason:?}"
                );
            }
            // What comes later is not sent at all.
            let late = client.request("late", None, options()).await;
            assert!(matches!(late, Err(RequestError::NotSent(_))), "{late:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn an_answer_that_is_no_json_rpc_fails_its_call_at_once() {
    deadline(async {
        let (client, mut peer) = connect(()).await;
        for broken in [
            r#"{"id":ID,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":ID,"result":{"a":tru}}"#,
            r#"{"jsonrpc":"2.0","id":ID,"error":"just text"}"#,
            r#"{"jsonrpc":"2.0","id":ID}"#,
        ] {
            let serving = async {
                let call = peer.read().await;
                peer.write_line(&broken.replace("ID", &call["id"].to_string()))
                    .await;
            };
            let (outcome, ()) = tokio::join!(client.request("call", None, options()), serving);
            assert!(
                matches!(
                    outcome,
                    Err(RequestError::Protocol(ProtocolError::Message(_)))
                ),
                "{broken}: {outcome:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn nesting_100_000_deep_passes_untouched() {
    deadline(async {
        let (reader, writer, mut peer) = pipes();
        let connecting = Client::connect_lines(reader, writer, 1024 * 1024, hello(), ());
        let (client, ()) = tokio::join!(connecting, peer.accept());
        let client = client.unwrap();
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let serving = async {
            let call = peer.read().await;
            peer.write_line(&format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{deep}}}"#,
                call["id"]
            ))
            .await;
        };
        let (outcome, ()) = tokio::join!(client.request("call", None, options()), serving);
        assert!(outcome.unwrap().get() == deep, "the result was changed");
    })
    .await;
}

/// JSON as nobody's serialiser would write it: odd numbers, white space, keys in any order and
/// more than once, escapes where none are needed.
fn odd_json() -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec!["", " ", "\t", "  "]);
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "null",
            "true",
            "1.0",
            "1e400",
            "-0",
            "-0.0E+1",
            "12345678901234567890123",
            "0.10",
            r#""\u0041\/""#,
            r#""é\ud83d\ude00""#,
            r#""""#,
        ])
        .prop_map(str::to_owned),
        prop::num::f64::NORMAL.prop_map(|number| format!("{number:e}")),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let space = space.clone();
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..4), space.clone()).prop_map(
                |(items, space)| format!("[{space}{}{space}]", items.join(&format!("{space},")))
            ),
            (prop::collection::vec(("[ab]{1,2}", inner), 0..4), space).prop_map(
                |(members, space)| {
                    let members: Vec<_> = members
                        .iter()
                        .map(|(key, value)| format!("\"{key}\"{space}:{space}{value}"))
                        .collect();
                    format!("{{{space}{}{space}}}", members.join(&format!("{space},")))
                }
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn results_and_params_keep_every_byte(result in odd_json(), params in odd_json()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(deadline(async {
            let (client, mut peer) = connect(()).await;
            let serving = async {
                let line = peer.read_line().await;
                let sent = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"call","params":{params}}}"#);
                assert_eq!(line.trim_end(), sent);
                peer.write_line(&format!(r#"{{"result" : {result} ,"jsonrpc":"2.0","id":2}}"#)).await;
            };
            let (outcome, ()) =
                tokio::join!(client.request("call", Some(raw(&params)), options()), serving);
            assert_eq!(outcome.unwrap().get(), result);
        }));
    }
}

#[tokio::test]
async fn one_broken_member_of_a_batch_fails_only_its_own_call() {
    deadline(async {
        let (client, mut peer) = connect(()).await;
        let serving = async {
            let (first, second) = (peer.read().await, peer.read().await);
            let broken = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":1,"error":2}}"#,
                first["id"]
            );
            let whole = response(&second["id"], &json!("done"));
            peer.write_line(&format!("[{broken},{whole}]")).await;
        };
        let (first, second, ()) = tokio::join!(
            client.request("first", None, options()),
            client.request("second", None, options()),
            serving
        );
        assert!(matches!(
            first,
            Err(RequestError::Protocol(ProtocolError::Message(_)))
        ));
        assert_eq!(second.unwrap().get(), "\"done\"");
    })
    .await;
}
