//! Manifests against announced tools: 97 tools with their tiers, and every kind of violation.

use std::collections::BTreeMap;

use crate::support::fixture;
use auditor::{Manifest, Operator, ToolFacts, ViolationCode, audit_all, verify};
use policy::{Annotations, Overrides, Tier};

fn manifest() -> Manifest {
    Manifest::parse(&fixture("notes-tiers.json")).unwrap()
}

fn hints(tier: Tier) -> Annotations {
    let mut hints = Annotations::default();
    match tier {
        Tier::ReadOnly => hints.read_only_hint = Some(true),
        Tier::Write | Tier::SoftDelete => hints.destructive_hint = Some(false),
        Tier::Destructive => hints.destructive_hint = Some(true),
    }
    hints
}

/// A server that announces every tool of the manifest with the hints of its tier.
fn announced(manifest: &Manifest) -> BTreeMap<String, Option<Annotations>> {
    let tools = manifest.tools();
    tools
        .map(|(name, tier)| (name.to_owned(), Some(hints(tier))))
        .collect()
}

fn facts(tools: &BTreeMap<String, Option<Annotations>>) -> Vec<ToolFacts<'_>> {
    tools
        .iter()
        .map(|(name, hints)| ToolFacts {
            server: "notes",
            name,
            annotations: hints.as_ref(),
            ..ToolFacts::default()
        })
        .collect()
}

/// What is found after one change to a server that agreed.
fn after(
    change: impl FnOnce(&mut BTreeMap<String, Option<Annotations>>),
) -> Vec<(ViolationCode, String)> {
    let manifest = manifest();
    let mut tools = announced(&manifest);
    change(&mut tools);
    let found = verify(&manifest, &facts(&tools));
    found
        .into_iter()
        .map(|violation| (violation.code, violation.tool))
        .collect()
}

fn one(code: ViolationCode, tool: &str) -> Vec<(ViolationCode, String)> {
    vec![(code, tool.to_owned())]
}

#[test]
fn the_fixture_has_97_tools_in_four_tiers() {
    let manifest = manifest();
    let count = |tier| manifest.tools().filter(|(_, other)| *other == tier).count();
    assert_eq!(Tier::ALL.map(count), [51, 32, 3, 11]);
}

#[test]
fn a_server_that_agrees_has_no_violation() {
    assert_eq!(after(|_| {}), []);
}

#[test]
fn a_tool_without_annotations_is_found() {
    let found = after(|tools| drop(tools.insert("get_note".into(), None)));
    assert_eq!(found, one(ViolationCode::NoAnnotations, "notes:get_note"));
}

#[test]
fn a_read_only_tool_that_does_not_say_so_is_found() {
    let found = after(|tools| drop(tools.insert("get_note".into(), Some(Annotations::default()))));
    assert_eq!(found, one(ViolationCode::NotReadOnly, "notes:get_note"));
}

#[test]
fn a_write_or_soft_delete_that_does_not_deny_destruction_is_found() {
    for name in ["create_note", "delete_note"] {
        for wrong in [hints(Tier::ReadOnly), hints(Tier::Destructive)] {
            let found = after(|tools| drop(tools.insert(name.into(), Some(wrong))));
            assert_eq!(
                found,
                one(ViolationCode::NotHarmless, &format!("notes:{name}"))
            );
        }
    }
}

#[test]
fn a_destructive_tool_that_does_not_say_so_is_found() {
    let found = after(|tools| drop(tools.insert("purge_note".into(), Some(hints(Tier::Write)))));
    assert_eq!(
        found,
        one(ViolationCode::NotDestructive, "notes:purge_note")
    );
}

#[test]
fn a_tool_that_is_gone_and_one_that_is_new_are_found() {
    let found = after(|tools| drop(tools.remove("list_jobs")));
    assert_eq!(found, one(ViolationCode::Missing, "list_jobs"));
    let found = after(|tools| drop(tools.insert("wipe".into(), Some(hints(Tier::Destructive)))));
    assert_eq!(found, one(ViolationCode::New, "notes:wipe"));
}

#[test]
fn a_tool_in_two_tiers_under_two_names_is_found() {
    let text = r#"{"version": 1, "tools": {"read_only": ["get"], "write": ["notes:get"]}}"#;
    let tools = BTreeMap::from([("get".to_owned(), Some(hints(Tier::ReadOnly)))]);
    let found = verify(&Manifest::parse(text).unwrap(), &facts(&tools));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code, ViolationCode::TwoTiers);
}

#[test]
fn the_manifest_of_a_report_is_kept_by_the_same_server() {
    let manifest = manifest();
    let tools = announced(&manifest);
    // The hints of a write and of a soft delete are the same; the operator knows the difference.
    let soft = manifest
        .tools()
        .filter(|(_, tier)| *tier == Tier::SoftDelete);
    let overrides =
        Overrides::compile(soft.map(|(name, tier)| (format!("notes:{name}"), tier))).unwrap();
    let operator = Operator {
        overrides: Some(&overrides),
        ..Operator::default()
    };
    let report = audit_all(&facts(&tools), operator);
    let written = Manifest::from_report(&report).unwrap();
    for (name, tier) in manifest.tools() {
        assert_eq!(written.tier(&format!("notes:{name}")), Some(tier), "{name}");
    }
    let again = Manifest::parse(&written.to_json()).unwrap();
    assert_eq!(again, written);
    assert_eq!(verify(&again, &facts(&tools)), []);
    assert_eq!(
        Manifest::from_report(&audit_all(&[], Operator::default())),
        None
    );
}

#[test]
fn violations_are_stable_for_scripts_and_safe_to_print() {
    let tools = BTreeMap::from([("a\u{1b}[2J".to_owned(), None)]);
    let text = r#"{"version": 1, "tools": {"write": ["a\u001b[2J"]}}"#;
    let found = verify(&Manifest::parse(text).unwrap(), &facts(&tools));
    assert!(!found[0].to_string().contains('\u{1b}'));
    assert_eq!(
        serde_json::to_value(&found[0]).unwrap()["code"],
        "NO_ANNOTATIONS"
    );
}
