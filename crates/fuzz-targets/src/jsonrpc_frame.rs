//! JSON-RPC messages and the lines they come in.

use futures_util::FutureExt;
use mcp::lines::{Line, LineReader};
use mcp::{Inbound, Message, RawValue, asked_call};

const LIMIT: usize = 256;

pub(crate) fn check(input: &[u8]) {
    match Inbound::parse(input) {
        Ok(Inbound::One(message)) => {
            message_holds(&message, input);
            salvage_agrees(&message, input);
        }
        Ok(Inbound::Batch(messages)) => {
            assert!(!messages.is_empty(), "a batch holds something");
            for message in &messages {
                message_holds(message, input);
            }
        }
        Err(error) => {
            let answer = error.to_response().encode();
            assert!(Message::parse(&answer).is_ok(), "an error is a message");
        }
    }
    lines_hold(input);
}

/// What was read is written and read again as the same, and payloads keep their bytes.
fn message_holds(message: &Message, input: &[u8]) {
    for payload in payloads(message) {
        let payload = payload.get().as_bytes();
        let kept = input.windows(payload.len()).any(|part| part == payload);
        assert!(kept, "a payload has other bytes than it came with");
    }
    let written = message.encode();
    let again = Message::parse(&written).expect("what we write can be read");
    assert_eq!(format!("{again:?}"), format!("{message:?}"));
    assert_eq!(again.encode(), written);
}

fn payloads(message: &Message) -> Vec<&RawValue> {
    let payload = match message {
        Message::Request(request) => request.params.as_deref(),
        Message::Notification(notification) => notification.params.as_deref(),
        Message::Response(response) => response.outcome.as_deref().ok(),
    };
    payload.into_iter().collect()
}

/// The id that is guessed from the ends of a message is its own or none.
fn salvage_agrees(message: &Message, input: &[u8]) {
    let (head, tail) = (&input[..input.len() / 2], &input[input.len() / 2..]);
    for (head, tail) in [(input, input), (head, tail), (head, input)] {
        if let Some(guess) = asked_call(head, tail)
            && let Message::Request(request) = message
        {
            assert_eq!(guess, request.id);
        }
    }
}

/// Lines are told apart as they are written, and none is longer than the limit.
fn lines_hold(input: &[u8]) {
    let mut reader = LineReader::new(input, LIMIT);
    let mut read = Vec::new();
    loop {
        let line = reader.next().now_or_never().expect("a slice never waits");
        match line.expect("a slice never fails") {
            None => break,
            Some(Line::Text(text)) => {
                assert!(text.len() <= LIMIT);
                read.push(Some(text.to_vec()));
            }
            Some(Line::Oversized { bytes, head, tail }) => {
                assert!(bytes > LIMIT as u64 && head.len().max(tail.len()) <= 512);
                read.push(None);
            }
        }
    }
    let expected: Vec<_> = input
        .split(|byte| *byte == b'\n')
        .filter(|line| line.len() > LIMIT || !line.trim_ascii().is_empty())
        .map(|line| (line.len() <= LIMIT).then(|| line.trim_ascii().to_vec()))
        .collect();
    assert_eq!(read, expected);
}
