//! Lists that are too long, too slow or without an end.

use config::Limits;

use crate::support::{Setup, Shell, limits, seconds, within};

/// A page with a new cursor every time, and these tools.
fn endless(list: &'static str) -> Shell {
    Shell {
        list,
        ..Shell::default()
    }
}

#[tokio::test]
async fn pages_without_anything_new_end_the_listing() {
    let shell = endless(r#"answer '{"tools":[],"nextCursor":"'$id'"}'"#);
    let setup = Setup::of(shell, limits()).await;
    let failure = setup.failure("waiting").await;
    assert!(failure.contains("nothing new"), "{failure}");
    assert!(setup.count("tools/list") <= 20, "{}", setup.log());
}

#[tokio::test]
async fn a_list_has_so_many_pages_and_bytes() {
    let tools = r#"answer '{"tools":[{"name":"t'$id'"}],"nextCursor":"'$id'"}'"#;
    let few_pages = Limits {
        listing_pages: 5,
        ..limits()
    };
    let setup = Setup::of(endless(tools), few_pages).await;
    let failure = setup.failure("waiting").await;
    assert!(failure.contains("5 pages"), "{failure}");
    let few_bytes = Limits {
        listing_bytes: 300,
        ..limits()
    };
    let setup = Setup::of(endless(tools), few_bytes).await;
    let failure = setup.failure("waiting").await;
    assert!(failure.contains("300 bytes"), "{failure}");
}

#[tokio::test]
async fn all_pages_of_a_list_share_one_time() {
    let shell =
        endless(r#"sleep 0.2; answer '{"tools":[{"name":"t'$id'"}],"nextCursor":"'$id'"}'"#);
    let setup = Setup::of(
        shell,
        Limits {
            listing_time: seconds(1.0),
            ..limits()
        },
    )
    .await;
    let failure = setup.failure("waiting").await;
    assert!(failure.contains("longer than 1 s"), "{failure}");
}

#[tokio::test]
async fn a_cursor_that_repeats_ends_the_listing() {
    let shell = endless(r#"answer '{"tools":[{"name":"t'$id'"}],"nextCursor":"again"}'"#);
    let setup = Setup::of(shell, limits()).await;
    let failure = setup.failure("waiting").await;
    assert!(failure.contains("same cursor"), "{failure}");
}

#[tokio::test]
async fn tools_beyond_the_limit_are_left_out() {
    let shell = endless(
        r#"answer '{"tools":[{"name":"a"},{"name":"b"},{"name":"c","inputSchema":{"description":"a description that is too long"}},{"name":"d"},{"name":"e"}]}'"#,
    );
    let few = Limits {
        tools_per_server: 3,
        schema_bytes: 20,
        ..limits()
    };
    let setup = Setup::of(shell, few).await;
    let status = setup.state("ready").await;
    let names: Vec<_> = status
        .tools
        .all()
        .iter()
        .map(|tool| tool.id.as_str())
        .collect();
    assert_eq!(names, ["up:a", "up:b", "up:d"]);
}

/// A refresh that goes wrong keeps the tools, and shows.
#[tokio::test]
async fn a_list_that_breaks_later_degrades_the_server_until_it_is_whole_again() {
    let shell = endless(
        r#"case $(grep -c tools/list "$LOG") in
             1|4|5|6|7|8|9) answer '{"tools":[{"name":"t"}]}';;
             *) answer '{"tools":7}';;
           esac"#,
    );
    let setup = Setup::with(shell, limits(), |server| {
        server.refresh_interval = Some(std::time::Duration::from_millis(300));
    })
    .await;
    let status = setup.state("degraded").await;
    let failure = status.state.failure().unwrap().to_string();
    assert!(failure.contains("listed again"), "{failure}");
    assert_eq!(status.tools.all().len(), 1);
    setup.call().await.unwrap();
    setup.state("ready").await;
}

#[tokio::test]
async fn a_storm_of_changes_costs_one_listing_a_second() {
    let shell = Shell {
        call: r#"for n in $(seq 300); do echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; sleep 0.01; done; answer '{"content":[]}'"#,
        ..Shell::default()
    };
    let setup = Setup::of(shell, limits()).await;
    setup.state("ready").await;
    let before = setup.count("tools/list");
    let began = std::time::Instant::now();
    within(60, setup.call()).await.unwrap();
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap();
    let listings = setup.count("tools/list") - before;
    assert!(listings <= seconds + 2, "{listings} in {seconds} s");
}
