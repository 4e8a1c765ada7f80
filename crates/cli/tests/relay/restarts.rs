//! The daemon stops, is killed and comes back, under a client that stays.

use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::TokioChildProcess;
use serde_json::json;
use testkit::process;

use crate::client::{Client, ERAS, Place, calls_of};

#[derive(Debug, Clone, Copy)]
enum End {
    Stop,
    Kill,
}

#[tokio::test]
async fn a_client_survives_the_daemon_however_it_ends() {
    for era in ERAS {
        let mut place = Place::new(json!({})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        client.call_ok("look").await;
        for end in [End::Stop, End::Kill, End::Stop] {
            let (home, left) = match end {
                End::Stop => place.stopped().await,
                End::Kill => place.killed().await,
            };
            place = Place::again(home, left).await;
            let before = place.calls_of("look");
            client.call_ok("look").await;
            assert_eq!(place.calls_of("look"), before + 1, "{era:?} {end:?}");
        }
        client.close_stdin();
        assert!(client.ended().await.success());
    }
}

#[tokio::test]
async fn a_request_waits_for_a_daemon_that_is_away() {
    for era in ERAS {
        let place = Place::new(json!({})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        client.call_ok("look").await;
        let (home, left) = place.stopped().await;
        let id = client.send("tools/list", json!({})).await;
        let place = Place::again(home, left).await;
        let list = client.answer(id).await;
        assert_eq!(
            list["result"]["tools"].as_array().unwrap().len(),
            6,
            "{list}"
        );
        client.call_ok("look").await;
        assert_eq!(place.calls_of("look"), 2);
    }
}

#[tokio::test]
async fn a_daemon_that_stays_away_is_an_error_that_says_that_nothing_was_sent() {
    for era in ERAS {
        let place = Place::new(json!({"limits": {"reconnect_time": "300ms"}})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        client.call_ok("look").await;
        let (home, left) = place.killed().await;
        // The daemon that the client would start cannot start either.
        home.write_config_text("{");
        let id = client.send_call("look").await;
        let answer = client.answer(id).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("was not sent"), "{answer}");
        assert!(message.contains("mcpproxy serve"), "{answer}");
        // It is not the end of the client.
        let place = Place::again(home, left).await;
        client.call_ok("look").await;
        assert_eq!(place.calls_of("look"), 2);
    }
}

#[tokio::test]
async fn a_call_that_may_have_run_is_not_sent_again() {
    for era in ERAS {
        let place = Place::new(json!({})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        let id = client.send_call("hang").await;
        place.until_called("hang", 1).await;
        let (home, left) = place.killed().await;
        let answer = client.answer(id).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("may have been carried out"), "{answer}");
        let place = Place::again(home, left).await;
        client.call_ok("look").await;
        assert_eq!(place.calls_of("hang"), 1);
        // Nothing else was answered under this id: `answer` fails on what it does not expect.
        client.call_ok("look").await;
    }
}

#[tokio::test]
async fn calls_under_way_when_the_daemon_stops_are_answered_once() {
    for era in ERAS {
        let place = Place::new(json!({"shutdown_grace": "200ms"})).await;
        let mut client = Client::start(&place.daemon.home, era).await;
        let id = client.send_call("hang").await;
        place.until_called("hang", 1).await;
        process::terminate(place.daemon.pid());
        let answer = client.answer(id).await;
        let is_failure = answer.get("error").is_some() || answer["result"]["isError"] == true;
        assert!(is_failure, "{answer}");
        let (home, left) = place.ended().await;
        let place = Place::again(home, left).await;
        client.call_ok("look").await;
        assert_eq!(calls_of(&place.record, "hang"), 1);
    }
}

/// The official SDK, which knows nothing of restarts.
#[tokio::test]
async fn rmcp_of_either_era_survives_the_daemon() {
    let discover = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::LATEST],
    };
    for lifecycle in [ClientLifecycleMode::Initialize, discover] {
        let place = Place::new(json!({})).await;
        let mut command = place.daemon.home.command();
        command.arg("stdio");
        let transport = TokioChildProcess::new(command).unwrap();
        let client = ().serve_with_lifecycle(transport, lifecycle).await.unwrap();
        let look = || {
            let arguments = json!({"name": "up:look", "intent": {"operation_type": "read"}});
            let arguments = arguments.as_object().unwrap().clone();
            CallToolRequestParams::new("call_tool_read").with_arguments(arguments)
        };
        let before = client.call_tool(look()).await.unwrap();
        assert_ne!(before.is_error, Some(true), "{before:?}");
        let (home, left) = place.killed().await;
        let place = Place::again(home, left).await;
        let after = client.call_tool(look()).await.unwrap();
        assert_ne!(after.is_error, Some(true), "{after:?}");
        assert_eq!(place.calls_of("look"), 2);
        client.cancel().await.unwrap();
    }
}
