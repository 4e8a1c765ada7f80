//! Clients that share a daemon do not notice each other.

use futures_util::future::join_all;
use serde_json::json;
use testkit::{DEADLINE, Outcome, Session, Tool, wait_until};

use crate::support::{Front, call, text_of};

fn request(id: u64, tool: &str, mark: u64) -> String {
    let mut arguments = call(tool, "read");
    arguments["args"] = json!({ "mark": mark });
    let meta = json!({"progressToken": 1});
    let params = json!({"name": "call_tool_read", "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test]
async fn equal_ids_and_tokens_do_not_get_mixed_up() {
    let front = Front::of([Tool::read_only("work").progress(2).after_ms(50)]).await;
    front.session("work").await;
    let mut sessions: Vec<Session> = Vec::new();
    for _ in 0..12 {
        sessions.push(front.daemon.session().await);
    }
    let calls = sessions.iter().zip(0..).map(async |(session, mark)| {
        let reply = session.post(&request(5, "up:work", mark)).await;
        (mark, reply.answer_to(5))
    });
    for (mark, answer) in join_all(calls).await {
        let steps: Vec<_> = answer
            .notifications
            .iter()
            .map(|progress| progress["params"]["progress"].clone())
            .collect();
        assert_eq!(steps, [json!(1), json!(2)], "{mark}");
        let echoed = text_of(&answer.result.unwrap());
        assert!(
            echoed.contains(&format!("\"mark\":{mark}}}")),
            "{mark}: {echoed}"
        );
    }
}

#[tokio::test]
async fn nobody_cancels_the_call_of_another() {
    let tools = [
        Tool::read_only("slow").after_ms(700),
        Tool::read_only("hang").outcome(Outcome::Hang),
    ];
    let front = Front::of(tools).await;
    let owner = front.session("slow").await;
    let stranger = front.daemon.session().await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    let meddle = async {
        wait_until("the call arrived", DEADLINE, async || {
            !front.record.calls().is_empty()
        })
        .await;
        stranger.post(cancel).await;
    };
    let work = request(5, "up:slow", 0);
    let (reply, ()) = tokio::join!(owner.post(&work), meddle);
    text_of(&reply.answer_to(5).result.unwrap());
    assert!(front.record.received("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn many_calls_at_once_all_get_their_own_answer() {
    let front = Front::of([Tool::read_only("work")]).await;
    let session = front.session("work").await;
    let calls = (0..200).map(async |mark| {
        let reply = session.post(&request(1_000 + mark, "up:work", mark)).await;
        (mark, reply.answer_to(1_000 + mark))
    });
    for (mark, answer) in join_all(calls).await {
        let echoed = text_of(&answer.result.unwrap());
        assert!(
            echoed.contains(&format!("\"mark\":{mark}}}")),
            "{mark}: {echoed}"
        );
    }
    assert_eq!(front.record.calls().len(), 200);
}
