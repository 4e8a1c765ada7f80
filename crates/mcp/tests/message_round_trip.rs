//! What is encoded can be parsed again and is the same, payloads to the byte.
#![cfg(test)]

use mcp::{
    ErrorObject, Inbound, Message, Notification, ParseError, RawValue, Request, RequestId,
    Response, codes,
};
use proptest::prelude::*;

fn payload() -> impl Strategy<Value = Box<RawValue>> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "null",
            "1.0",
            "1e999",
            "-0",
            "{ \"b\":1 ,\"a\":[ ] }",
            "\"\\u0041\"",
            "{\"a\":1,\"a\":2}",
        ])
        .prop_map(str::to_owned),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        any::<i64>().prop_map(|number| number.to_string()),
    ];
    leaf.prop_map(|text| RawValue::from_string(text).unwrap())
}

fn id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<u64>().prop_map(RequestId::from),
        any::<String>().prop_map(|text| RequestId::from(text.as_str())),
        prop::sample::select(vec!["-1", "1.0", "1e3"])
            .prop_map(|text| RequestId::Number(text.into())),
    ]
}

fn error() -> impl Strategy<Value = ErrorObject> {
    (any::<i64>(), any::<String>(), prop::option::of(payload())).prop_map(
        |(code, message, data)| ErrorObject {
            code,
            message,
            data,
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let call = || (any::<String>(), prop::option::of(payload()));
    prop_oneof![
        (id(), call()).prop_map(|(id, (method, params))| {
            Message::Request(Request { id, method, params })
        }),
        call().prop_map(|(method, params)| Message::Notification(Notification { method, params })),
        (id(), payload()).prop_map(|(id, result)| {
            Message::Response(Response {
                id: Some(id),
                outcome: Ok(result),
            })
        }),
        (prop::option::of(id()), error()).prop_map(|(id, error)| {
            Message::Response(Response {
                id,
                outcome: Err(error),
            })
        }),
    ]
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    raw.map(|raw| raw.get().to_owned())
}

/// Everything a message holds, comparable.
fn parts(message: &Message) -> (Option<RequestId>, Option<String>, Vec<Option<String>>) {
    match message {
        Message::Request(it) => (
            Some(it.id.clone()),
            Some(it.method.clone()),
            vec![text(it.params.as_deref())],
        ),
        Message::Notification(it) => (
            None,
            Some(it.method.clone()),
            vec![text(it.params.as_deref())],
        ),
        Message::Response(it) => match &it.outcome {
            Ok(result) => (it.id.clone(), None, vec![text(Some(result))]),
            Err(error) => (
                it.id.clone(),
                None,
                // An absent `data` and one that is null mean the same.
                vec![
                    Some(error.code.to_string()),
                    Some(error.message.clone()),
                    text(error.data.as_deref()).filter(|data| data != "null"),
                ],
            ),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_message_survives_the_trip(message in message()) {
        let parsed = Message::parse(&message.encode()).unwrap();
        prop_assert_eq!(parts(&parsed), parts(&message));
    }

    #[test]
    fn a_batch_survives_the_trip(messages in prop::collection::vec(message(), 1..5)) {
        let joined = messages.iter().map(Message::encode).collect::<Vec<_>>().join(&b","[..]);
        let batch = [b" [", joined.as_slice(), b"]"].concat();
        let Inbound::Batch(parsed) = Inbound::parse(&batch).unwrap() else {
            panic!("a batch was read as one message");
        };
        prop_assert_eq!(
            parsed.iter().map(parts).collect::<Vec<_>>(),
            messages.iter().map(parts).collect::<Vec<_>>()
        );
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Inbound::parse(&bytes);
    }
}

fn refusal(text: &str) -> (i64, Option<RequestId>) {
    let error: ParseError = Message::parse(text.as_bytes()).unwrap_err();
    let response = error.to_response();
    (response.outcome.unwrap_err().code, response.id)
}

#[test]
fn a_broken_envelope_is_refused_to_the_one_who_sent_it() {
    let id = Some(RequestId::from(7));
    for text in [
        r#"{"id":7,"method":"m"}"#,
        r#"{"jsonrpc":2.0,"id":7,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":7}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":"text"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m","result":{}}"#,
    ] {
        assert_eq!(
            refusal(text),
            (codes::INVALID_REQUEST, id.clone()),
            "{text}"
        );
    }
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#),
        (codes::INVALID_REQUEST, None)
    );
    assert_eq!(refusal("{"), (codes::PARSE_ERROR, None));
    assert_eq!(refusal(r#"{"id":7,"id":7}"#), (codes::PARSE_ERROR, None));
}

#[test]
fn members_of_json_rpc_1_are_tolerated_where_they_are_null() {
    let parse = |text: &str| Message::parse(text.as_bytes()).unwrap();
    assert!(matches!(
        parse(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#),
        Message::Response(Response { outcome: Ok(_), .. })
    ));
    assert!(matches!(
        parse(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}"#),
        Message::Response(Response {
            outcome: Err(_),
            ..
        })
    ));
    assert!(matches!(
        parse(r#"{"jsonrpc":"\u0032.0","id":1,"result":null,"method":null}"#),
        Message::Response(Response { outcome: Ok(result), .. }) if result.get() == "null"
    ));
}
