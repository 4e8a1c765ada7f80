//! The demo server in front of a client that somebody else wrote.

use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use serde_json::json;

use crate::support::serve;

#[tokio::test]
async fn another_client_can_list_and_call() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, serving) = serve(folder.path().join("notes.db"));
    let client = ().serve(pipe).await.unwrap();

    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 21);
    let purge = tools.iter().find(|tool| tool.name == "purge_note").unwrap();
    let annotations = purge.annotations.as_ref().unwrap();
    assert_eq!(annotations.destructive_hint, Some(true));
    assert_eq!(annotations.open_world_hint, Some(false));

    let arguments = json!({ "query": "groceries" }).as_object().unwrap().clone();
    let params = CallToolRequestParams::new("search_notes").with_arguments(arguments);
    let result = client.call_tool(params).await.unwrap();
    assert_eq!(result.is_error, Some(false));
    assert_eq!(
        result.structured_content.unwrap()["notes"][0]["title"],
        "Groceries"
    );

    client.cancel().await.unwrap();
    serving.await.unwrap().unwrap();
}
