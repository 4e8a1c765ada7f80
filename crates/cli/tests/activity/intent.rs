//! What an agent declared, kept and shown: FR-031 to FR-039.

use serde_json::{Value, json};

use crate::support::{DESTRUCTIVE, LANES, Proxy, READ};

const REASON: &str = "the user asked to clean up";

/// A call on each lane with a whole intent, and one that is refused.
async fn proxy_with_calls() -> Proxy {
    let proxy = Proxy::start().await;
    let mut client = proxy.client().await;
    for lane in LANES {
        let mut arguments = lane.call(&json!({"n": 1}));
        arguments["intent"]["data_sensitivity"] = "private".into();
        arguments["intent"]["reason"] = REASON.into();
        let result = client.call(lane.variant, &arguments).await.unwrap();
        assert_ne!(result["isError"], true, "{result}");
    }
    let mut arguments = DESTRUCTIVE.call(&json!({}));
    arguments["intent"] = json!({"operation_type": "read", "reason": REASON});
    let (code, _) = client.refused("call_tool_read", &arguments).await;
    assert_eq!(code, "SERVER_MISMATCH");
    proxy
}

fn whole_intent(operation_type: &str) -> Value {
    json!({
        "operation_type": operation_type,
        "data_sensitivity": "private",
        "reason": REASON,
    })
}

#[tokio::test]
async fn the_whole_intent_is_stored() {
    let proxy = proxy_with_calls().await;
    let records = proxy.recorded_calls().await;
    let intents: Vec<&Value> = records.iter().map(|it| &it["metadata"]["intent"]).collect();
    let blocked = json!({"operation_type": "read", "reason": REASON});
    let expected = ["read", "write", "destructive"].map(whole_intent);
    assert_eq!(
        intents,
        [&expected[0], &expected[1], &expected[2], &blocked]
    );
    // What was refused keeps what it declared, and says why it was refused.
    let refused = &records[3];
    assert_eq!(refused["type"], "policy_decision");
    assert_eq!(refused["status"], "blocked");
    assert_eq!(refused["error_code"], "SERVER_MISMATCH");
    assert_eq!(refused["tool_name"], "wipe");
}

#[tokio::test]
async fn every_form_of_an_intent_is_stored_alike() {
    let proxy = Proxy::start().await;
    let mut client = proxy.client().await;
    let intent = whole_intent("read");
    let forms = [
        json!({"name": "up:look", "intent": intent}),
        json!({"name": "up:look", "intent": intent.to_string()}),
        json!({
            "name": "up:look",
            "intent_operation_type": "read",
            "intent_data_sensitivity": "private",
            "intent_reason": REASON,
        }),
    ];
    for form in &forms {
        let result = client.call(READ.variant, form).await.unwrap();
        assert_ne!(result["isError"], true, "{result}");
    }
    for record in proxy.recorded_calls().await {
        assert_eq!(record["metadata"]["intent"], intent);
    }
}

#[tokio::test]
async fn the_variant_is_stored() {
    let proxy = proxy_with_calls().await;
    let records = proxy.recorded_calls().await;
    let variants = records
        .iter()
        .map(|it| it["metadata"]["tool_variant"].as_str());
    let variants: Vec<_> = variants.map(Option::unwrap).collect();
    assert_eq!(
        variants,
        [
            "call_tool_read",
            "call_tool_write",
            "call_tool_destructive",
            "call_tool_read"
        ]
    );
    let metadata = &records[2]["metadata"];
    assert_eq!(metadata["effective_tier"], "destructive");
    assert_eq!(metadata["provenance"], "declared");
}

#[tokio::test]
async fn records_are_found_by_operation_type() {
    let proxy = proxy_with_calls().await;
    for (operation_type, expected) in [("read", 2), ("write", 1), ("destructive", 1)] {
        let query = format!("?intent_type={operation_type}");
        let records = proxy.list(&query).await;
        assert_eq!(records.len(), expected, "{operation_type}");
        for record in &records {
            assert_eq!(
                record["metadata"]["intent"]["operation_type"],
                operation_type
            );
        }
        let arguments = [
            "activity",
            "list",
            "--intent-type",
            operation_type,
            "-o",
            "json",
        ];
        let output = proxy.daemon.home.cli(arguments).await;
        let listed = &output.succeeded().json()["activities"];
        assert_eq!(listed, &json!(records));
    }
}

#[tokio::test]
async fn the_list_shows_the_operation_type_as_letter_and_word() {
    let proxy = proxy_with_calls().await;
    let output = proxy.daemon.home.cli(["activity", "list"]).await;
    let table = &output.succeeded().stdout;
    assert!(table.lines().next().unwrap().contains("INTENT"), "{table}");
    for (tool, shown) in [
        ("look", "R read"),
        ("save", "W write"),
        ("wipe", "D destructive"),
    ] {
        let line = table
            .lines()
            .find(|line| line.contains(tool) && line.contains("success"));
        assert!(line.is_some_and(|line| line.contains(shown)), "{table}");
    }
    assert!(!table.contains('\u{1b}'), "no colour but on a terminal");
}

#[tokio::test]
async fn showing_a_record_has_a_section_for_the_intent() {
    let proxy = proxy_with_calls().await;
    let record = &proxy.recorded_calls().await[1];
    let id = record["id"].as_str().unwrap();
    let output = proxy.daemon.home.cli(["activity", "show", id]).await;
    let text = output.succeeded().stdout.clone();
    let (_, intent) = text
        .split_once("intent\n")
        .unwrap_or_else(|| panic!("{text}"));
    // A section ends where the next line is not indented.
    let intent: Vec<&str> = intent
        .lines()
        .take_while(|line| line.starts_with(' '))
        .collect();
    let intent = intent.join("\n");
    for word in ["write", "private", REASON] {
        assert!(intent.contains(word), "{word} is not in {intent}");
    }
    for word in [
        "call_tool_write",
        "declared",
        "up",
        "save",
        "activity-test",
        "\"n\": 1",
    ] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
}

#[tokio::test]
async fn json_and_yaml_have_the_whole_intent() {
    let proxy = proxy_with_calls().await;
    let home = &proxy.daemon.home;
    let id = proxy.recorded_calls().await[2]["id"].clone();
    let show = ["activity", "show", id.as_str().unwrap()];
    let list = ["activity", "list", "--intent-type", "destructive"];

    let shown = home.cli(show.iter().chain(&["-o", "json"])).await.json();
    assert_eq!(shown["metadata"]["intent"], whole_intent("destructive"));
    let listed = home.cli(list.iter().chain(&["-o", "json"])).await.json();
    assert_eq!(listed["activities"][0], shown);
    let lines = home.cli(list.iter().chain(&["-o", "jsonl"])).await;
    assert_eq!(
        serde_json::from_str::<Value>(lines.stdout.trim()).unwrap(),
        shown
    );

    for command in [&show[..], &list[..]] {
        let yaml = home.cli(command.iter().chain(&["-o", "yaml"])).await;
        let yaml = &yaml.succeeded().stdout;
        let (_, intent) = yaml
            .split_once("intent:")
            .unwrap_or_else(|| panic!("{yaml}"));
        for member in [
            "operation_type: destructive",
            "data_sensitivity: private",
            "reason: ",
        ] {
            assert!(intent.contains(member), "{member} is not in {yaml}");
        }
        assert!(intent.contains(REASON), "{yaml}");
    }
}

#[tokio::test]
async fn rest_answers_have_the_intent() {
    let proxy = proxy_with_calls().await;
    for lane in LANES {
        let query = format!("?intent_type={}&type=tool_call", lane.operation_type);
        let records = proxy.list(&query).await;
        let [record] = records.as_slice() else {
            panic!("{records:?}");
        };
        let id = record["id"].as_str().unwrap();
        assert_eq!(
            record["metadata"]["intent"],
            whole_intent(lane.operation_type)
        );
        assert_eq!(proxy.data(&format!("/activity/{id}")).await, *record);
    }
}
