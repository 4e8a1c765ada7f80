//! Laws that hold for any tool.

use auditor::{FailOn, FindingCode, Operator, ToolFacts, audit_all, audit_tier, render};
use policy::Tier;
use proptest::prelude::*;
use serde_json::value::RawValue;

const VERBS: [&str; 8] = [
    "get", "list", "create", "delete", "run", "archive", "manage", "frob",
];

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn tier(name: &str, description: &str, schema: &str) -> Tier {
    let schema = raw(schema);
    let audit = audit_tier(&ToolFacts {
        server: "s",
        name,
        description,
        input_schema: Some(&schema),
        output_schema: Some(&schema),
        ..ToolFacts::default()
    });
    assert!((0.0..=1.0).contains(&audit.confidence));
    assert!(!audit.reason.is_empty() && !audit.reason.contains('\n'));
    audit.tier
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn evidence_of_harm_never_lowers_a_tier(
        verb in prop::sample::select(&VERBS),
        noun in "[a-z]{3,8}",
        description in "[A-Za-z ,.]{0,60}",
        parameter in prop::sample::select(vec!["force", "permanent", "dry_run", "sql", "overwrite", "body"]),
        choice in prop::sample::select(vec!["delete", "create", "purge", "update"]),
    ) {
        let name = format!("{verb}_{noun}");
        let before = tier(&name, &description, "{}");
        let with_parameter = format!(r#"{{"properties": {{"{parameter}": {{}}}}}}"#);
        prop_assert!(tier(&name, &description, &with_parameter) >= before);
        let with_choice = format!(r#"{{"properties": {{"action": {{"enum": ["{choice}"]}}}}}}"#);
        prop_assert!(tier(&name, &description, &with_choice) >= before);
    }

    #[test]
    fn any_definition_is_audited_and_rendered(
        server in "\\PC{0,8}",
        name in any::<String>(),
        title in any::<Option<String>>(),
        description in any::<String>(),
        key in any::<String>(),
    ) {
        let schema = serde_json::json!({"properties": {key: {"enum": [description]}}});
        let schema = raw(&schema.to_string());
        let tool = ToolFacts {
            server: &server,
            name: &name,
            title: title.as_deref(),
            description: &description,
            input_schema: Some(&schema),
            output_schema: Some(&schema),
            annotations: None,
            pinned: None,
        };
        let report = audit_all(&[tool, tool], Operator::default());
        prop_assert_eq!(&report.tools[0].reason, &report.tools[1].reason);
        prop_assert!(report.tools[0].findings.iter().any(|f| f.code == FindingCode::DuplicateName));
        for text in [
            render::markdown(&report),
            render::junit(&report, FailOn::Error),
            render::sarif(&report).to_string(),
        ] {
            let strange = text.chars().find(|c| c.is_control() && *c != '\n');
            prop_assert_eq!(strange, None);
        }
    }

    #[test]
    fn a_table_has_as_many_columns_in_every_row(name in "[|\\\\`a\\n\u{202e}<]{0,12}") {
        let tool = ToolFacts { server: "s", name: &name, ..ToolFacts::default() };
        let text = render::markdown(&audit_all(&[tool], Operator::default()));
        let columns = |line: &str| {
            let bytes = line.replace("\\\\", "").replace("\\|", "");
            bytes.matches('|').count()
        };
        let table: Vec<_> = text.lines().skip_while(|l| !l.starts_with('|')).take(3).map(columns).collect();
        prop_assert_eq!(table, vec![8, 8, 8]);
    }
}
