//! The daemon's own work on a call, step by step, with arguments and a result of 1 kB each.
//!
//! In it: reading the client's envelope, the arguments of `call_tool_read` and the intent; the
//! decision; writing the request to the upstream; reading its answer; writing ours.
//!
//! Not in it: system calls, HTTP, the runtime's handing over between tasks, the session, finding
//! the upstream by its name, and the log, which has a bench of its own. `cargo run --release -p
//! bench -- overhead` measures all of them together on the running daemon.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be set up must not go on"
)]

use daemon::CallRequest;
use divan::{Bencher, black_box};
use mcp::{Inbound, Message, RawValue, Request, RequestId, Response};
use policy::{Annotations, Call, Decision, Rules, ToolId, ToolVariant, decide};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;

/// `params` of `tools/call`.
#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// How the client gives the tool's arguments.
#[derive(Debug, Clone, Copy)]
enum Form {
    Object,
    String,
}

const FORMS: [Form; 2] = [Form::Object, Form::String];

fn main() {
    divan::main();
}

/// All steps in the order of a call.
#[divan::bench(args = FORMS)]
fn whole_call(bencher: Bencher<'_, '_>, form: Form) {
    let (message, answer, tool) = (client_message(form), upstream_answer(), tool());
    let annotations = annotations();
    bencher.bench(|| {
        let request = read(black_box(&message));
        let call = read_arguments(request.params.as_deref());
        let decision = decided(&call, &tool, &annotations);
        assert!(decision.refusal().is_none());
        let sent = upstream_request(&call).encode();
        let answered = read_answer(black_box(&answer));
        (sent, our_answer(answered, request.id).encode())
    });
}

#[divan::bench(args = FORMS)]
fn read_envelope(bencher: Bencher<'_, '_>, form: Form) {
    let message = client_message(form);
    bencher.bench(|| read(black_box(&message)));
}

#[divan::bench(args = FORMS)]
fn read_call_arguments(bencher: Bencher<'_, '_>, form: Form) {
    let request = read(&client_message(form));
    bencher.bench(|| read_arguments(black_box(request.params.as_deref())));
}

#[divan::bench]
fn decide_call(bencher: Bencher<'_, '_>) {
    let request = read(&client_message(Form::Object));
    let call = read_arguments(request.params.as_deref());
    let (tool, annotations) = (tool(), annotations());
    bencher.bench(|| decided(black_box(&call), &tool, &annotations));
}

#[divan::bench]
fn write_upstream_request(bencher: Bencher<'_, '_>) {
    let request = read(&client_message(Form::Object));
    let call = read_arguments(request.params.as_deref());
    bencher.bench(|| upstream_request(black_box(&call)).encode());
}

#[divan::bench]
fn read_upstream_answer(bencher: Bencher<'_, '_>) {
    let answer = upstream_answer();
    bencher.bench(|| read_answer(black_box(&answer)));
}

#[divan::bench]
fn write_answer(bencher: Bencher<'_, '_>) {
    let answer = our_answer(read_answer(&upstream_answer()), RequestId::from(7));
    bencher.bench(|| black_box(&answer).encode());
}

fn read(message: &[u8]) -> Request {
    match Inbound::parse_from_client(message) {
        Ok(Inbound::One(Message::Request(request))) => request,
        other => unexpected(&other),
    }
}

fn read_arguments(params: Option<&RawValue>) -> CallRequest {
    let params: CallParams<'_> =
        serde_json::from_str(params.map_or("{}", RawValue::get)).expect("params");
    CallRequest::parse(ToolVariant::Read, Some(params.arguments), None)
}

fn decided(call: &CallRequest, tool: &ToolId, annotations: &Annotations) -> Decision {
    let call = Call {
        variant: ToolVariant::Read,
        tool,
        intent: call.asked().intent.as_ref(),
        annotations: Some(annotations),
        override_tier: None,
        audited_tier: None,
        distrusted: false,
        pinned: None,
        hold: None,
    };
    decide(&call, &Rules::default())
}

fn upstream_request(call: &CallRequest) -> Request {
    let params = json_params(call.asked().arguments.as_deref());
    Request {
        id: RequestId::from(1),
        method: "tools/call".to_owned(),
        params: Some(params),
    }
}

fn json_params(arguments: Option<&RawValue>) -> Box<RawValue> {
    #[derive(serde::Serialize)]
    struct Params<'a> {
        name: &'static str,
        arguments: Option<&'a RawValue>,
    }
    let params = Params {
        name: "echo",
        arguments,
    };
    to_raw_value(&params).expect("params")
}

fn read_answer(answer: &[u8]) -> Box<RawValue> {
    match Inbound::parse(answer) {
        Ok(Inbound::One(Message::Response(Response {
            outcome: Ok(result),
            ..
        }))) => result,
        other => unexpected(&other),
    }
}

fn our_answer(result: Box<RawValue>, id: RequestId) -> Response {
    Response {
        id: Some(id),
        outcome: Ok(result),
    }
}

#[expect(
    clippy::panic,
    reason = "the messages of a bench are known to be right"
)]
fn unexpected(found: &impl std::fmt::Debug) -> ! {
    panic!("not the message that was expected: {found:?}")
}

fn tool() -> ToolId {
    "server:echo".parse().expect("a tool")
}

fn annotations() -> Annotations {
    Annotations::from_value(json!({"readOnlyHint": true}))
}

fn client_message(form: Form) -> Vec<u8> {
    let arguments = json!({
        "repository": "owner/name",
        "title": "A title as people write them",
        "body": "A few words of text with a \"quoted\" one.\n".repeat(20),
        "options": {"draft": false, "priority": 3, "weight": 0.25, "parent": null},
    });
    let (name, value) = match form {
        Form::Object => ("args", arguments),
        Form::String => ("args_json", arguments.to_string().into()),
    };
    let message = json!({
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {
            "name": "call_tool_read",
            "arguments": {
                "name": "server:echo",
                name: value,
                "intent": {"operation_type": "read", "reason": "measuring"}
            }
        }
    });
    message.to_string().into_bytes()
}

fn upstream_answer() -> Vec<u8> {
    let text = "An answer as servers give it, a line of text at a time.\n".repeat(17);
    let result = json!({"content": [{"type": "text", "text": text}], "isError": false});
    json!({"jsonrpc": "2.0", "id": 1, "result": result})
        .to_string()
        .into_bytes()
}
