//! What must hold for the search whatever the tools and the query are.

use std::sync::Arc;

use crate::support::{by_server, snapshot, tool};
use catalog::{Query, SearchResults, Snapshot, ToolDefinition};
use proptest::prelude::*;

/// Words of which some are stems or synonyms of each other and some are in no other tool.
const WORDS: [&str; 12] = [
    "list", "listing", "show", "issue", "ticket", "file", "folder", "GitHub", "base64", "quartz",
    "copper", "zinc",
];

/// Words without synonyms and without a common stem.
const PLAIN_WORDS: [&str; 6] = ["quartz", "copper", "zinc", "cobalt", "nickel", "silver"];

fn text(
    words: &'static [&'static str],
    count: impl Strategy<Value = usize>,
) -> impl Strategy<Value = String> {
    count
        .prop_flat_map(move |count| prop::collection::vec(prop::sample::select(words), count))
        .prop_map(|words| words.join(" "))
}

fn tools() -> impl Strategy<Value = Vec<Arc<ToolDefinition>>> {
    let server = prop::sample::select(&["a", "a-b", "b", "github"][..]);
    let one = (server, text(&WORDS, 1..4usize), text(&WORDS, 0..9usize));
    prop::collection::vec(one, 0..16).prop_map(|tools| {
        let numbered = tools.into_iter().enumerate();
        numbered
            .map(|(number, (server, name, description))| {
                tool(
                    server,
                    &format!("{}_{number}", name.replace(' ', "_")),
                    &description,
                )
            })
            .collect()
    })
}

fn query() -> impl Strategy<Value = String> {
    prop_oneof![text(&WORDS, 1..5usize), "\\PC{0,20}"]
}

fn ranking(results: &SearchResults) -> Vec<(String, u32)> {
    let hits = results.hits.iter();
    hits.map(|hit| (hit.tool.id.to_string(), hit.score.to_bits()))
        .collect()
}

fn all(snapshot: &Snapshot, query: &str) -> Vec<(String, u32)> {
    ranking(&snapshot.search(&Query::new(query, usize::MAX)))
}

/// The score of one tool when all others are filtered out; none if it does not match.
fn score_alone(snapshot: &Snapshot, query: &str, wanted: &ToolDefinition) -> Option<f32> {
    let only = |tool: &ToolDefinition| tool.id == wanted.id;
    let results = snapshot.search(&Query {
        filter: Some(&only),
        ..Query::new(query, 1)
    });
    results.hits.first().map(|hit| hit.score)
}

fn ids(snapshot: &Snapshot, query: &str) -> Vec<String> {
    all(snapshot, query).into_iter().map(|(id, _)| id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_order_in_which_tools_arrive_does_not_matter(
        (tools, shuffled) in tools().prop_flat_map(|tools| (Just(tools.clone()), Just(tools).prop_shuffle())),
        query in query(),
    ) {
        prop_assert_eq!(all(&snapshot(&tools), &query), all(&snapshot(&shuffled), &query));
    }

    #[test]
    fn scores_fall_from_at_most_one_and_ties_are_ordered_by_id(tools in tools(), query in query()) {
        let hits = snapshot(&tools).search(&Query::new(&query, usize::MAX)).hits;
        for hit in &hits {
            prop_assert!(hit.score > 0.0 && hit.score <= 1.0);
        }
        for pair in hits.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            prop_assert!(before.score > after.score
                || (before.score.to_bits() == after.score.to_bits() && before.tool.id < after.tool.id));
        }
    }

    /// A filter takes tools out of the ranking and changes neither scores nor order. Only then is
    /// the tail cut, so a filter that takes out the best may show what was too weak beside them.
    #[test]
    fn filtering_then_cutting_is_cutting_the_filtered_ranking(
        tools in tools(),
        query in query(),
        limit in 0..8usize,
        on_server in any::<bool>(),
    ) {
        let snapshot = snapshot(&tools);
        let server = "a".parse().unwrap();
        let even = |tool: &ToolDefinition| tool.id.as_str().len().is_multiple_of(2);
        let filtered = |limit| snapshot.search(&Query {
            server: on_server.then_some(&server),
            filter: Some(&even),
            ..Query::new(&query, limit)
        });
        let mut unfiltered = snapshot.search(&Query::new(&query, usize::MAX));
        unfiltered.hits.retain(|hit| even(&hit.tool) && (!on_server || *hit.tool.id.server() == server));
        let (all, cut) = (filtered(usize::MAX), filtered(limit));
        prop_assert!(ranking(&all).starts_with(&ranking(&unfiltered)));
        prop_assert!(ranking(&all).starts_with(&ranking(&cut)));
        prop_assert_eq!(cut.hits.len(), limit.min(all.hits.len()));
        prop_assert_eq!((all.total, cut.total), (all.hits.len(), all.hits.len()));
        for hit in &all.hits {
            prop_assert_eq!(score_alone(&snapshot, &query, &hit.tool), Some(hit.score));
        }
    }

    #[test]
    fn explanations_are_of_the_hits_and_account_for_their_scores(tools in tools(), query in query()) {
        let snapshot = snapshot(&tools);
        let query = Query::new(&query, 5);
        let explained = snapshot.explain(&query);
        let hits: Vec<_> = explained.iter().map(|explanation| explanation.hit.clone()).collect();
        let results = snapshot.search(&query);
        prop_assert_eq!(ranking(&SearchResults { hits, total: results.total }), ranking(&results));
        for explanation in &explained {
            let (score, reasons) = (explanation.hit.score, &explanation.reasons);
            prop_assert!((0.0..=1.0).contains(&reasons.words));
            prop_assert!((0.0..=1.0).contains(&reasons.meaning));
            prop_assert_eq!(reasons.fusion.named, score >= 0.9);
            prop_assert_eq!(reasons.words > 0.0, !reasons.matches.is_empty());
            let fused = reasons.fusion.score(reasons.words, reasons.meaning);
            prop_assert!(reasons.fusion.named || (fused - score).abs() < 1e-5);
        }
    }

    #[test]
    fn a_snapshot_rebuilt_in_steps_is_the_same_as_one_built_at_once(
        before in tools(),
        after in tools(),
        query in query(),
    ) {
        let mut servers = by_server(&after);
        servers.extend(by_server(&before));
        // Some upstreams stay as they were, some are new, some are gone.
        let rebuilt = snapshot(&before).rebuild(servers.clone());
        prop_assert_eq!(all(&rebuilt, &query), all(&Snapshot::build(servers), &query));
    }

    #[test]
    fn a_tool_of_another_kind_is_not_found(tools in tools(), query in text(&WORDS, 1..5usize)) {
        let mut more = tools;
        let other = tool("other", "brew_espresso", "Brews a strong espresso.");
        more.push(Arc::clone(&other));
        prop_assert_eq!(score_alone(&snapshot(&more), &query, &other), None);
    }

    /// Adding a tool changes the rarity of words and the mean lengths, and through them what each
    /// word of a query counts for. With one word and a tool as long as the others neither is left.
    #[test]
    fn a_tool_that_shares_no_word_leaves_the_others_as_they_are(
        descriptions in prop::collection::vec(text(&PLAIN_WORDS, Just(6usize)), 1..12),
        query in prop::sample::select(&PLAIN_WORDS[..]),
    ) {
        let described = |(number, description): (usize, &String)| {
            tool("a", &format!("tool_{}", char::from(b'a' + u8::try_from(number).unwrap())), description)
        };
        let mut tools: Vec<_> = descriptions.iter().enumerate().map(described).collect();
        let before = snapshot(&tools);
        let known = tools.clone();
        tools.push(tool("a", "tool_z", "brews strong espresso served hot black"));
        let after = snapshot(&tools);
        prop_assert_eq!(ids(&before, query), ids(&after, query));
        for tool in &known {
            let [before, after] = [&before, &after].map(|snapshot| score_alone(snapshot, query, tool));
            prop_assert!((before.unwrap_or_default() - after.unwrap_or_default()).abs() < 1e-5);
        }
    }
}
