//! Many sessions at once.

use futures_util::future::join_all;
use serde_json::json;

use crate::wire::{Endpoint, EventReader, body};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_sessions_at_once_get_their_own_answers() {
    let endpoint = Endpoint::open().await;
    let sessions = (0..100).map(|number| {
        let endpoint = &endpoint;
        async move {
            let session = endpoint.session("2025-06-18").await;
            for round in 0..5 {
                let sent = json!({"session": number, "round": round});
                let answer = body(session.call(round, "echo", &sent).await).await;
                assert_eq!(answer["id"], round);
                assert_eq!(answer["result"], sent);
            }
            let streamed = session.call(9, "progress", &json!({"count": 3})).await;
            let messages = EventReader::of(streamed).messages().await;
            assert_eq!(messages.len(), 4);
            session.id
        }
    });
    let mut ids = join_all(sessions).await;
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 100);
    assert_eq!(endpoint.server.session_count(), 100);
}
