//! How often the inferred tier is the one authors declare, and the cases that rules were made for.

use std::collections::BTreeMap;

use crate::support::{development_data, fixture};
use auditor::{Audit, Manifest, ToolFacts, audit_tier};
use policy::{Annotations, Tier, ToolVariant};
use serde_json::value::RawValue;

/// Declared lanes by inferred lanes.
#[derive(Default)]
struct Confusion([[usize; 3]; 3]);

impl Confusion {
    fn add(&mut self, declared: ToolVariant, inferred: ToolVariant) {
        let index = |lane| match lane {
            ToolVariant::Read => 0,
            ToolVariant::Write => 1,
            ToolVariant::Destructive => 2,
        };
        self.0[index(declared)][index(inferred)] += 1;
    }

    fn total(&self) -> usize {
        self.0.iter().flatten().sum()
    }

    fn accuracy(&self) -> f64 {
        share((0..3).map(|lane| self.0[lane][lane]).sum(), self.total())
    }

    /// How often reading is told from not reading.
    fn read_accuracy(&self) -> f64 {
        let not_reading: usize = self.0[1..].iter().flat_map(|row| &row[1..]).sum();
        share(self.0[0][0] + not_reading, self.total())
    }

    /// The rate that matters most: these run unasked.
    fn mutating_called_read(&self) -> f64 {
        let mutating = self.0[1..].iter().flatten().sum();
        share(self.0[1][0] + self.0[2][0], mutating)
    }

    fn destructive_called_read(&self) -> f64 {
        share(self.0[2][0], self.0[2].iter().sum())
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tools are small")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[test]
fn inferred_tiers_agree_with_declared_ones() {
    let Some(tools) = development_data("annotations/tools.jsonl") else {
        return;
    };
    let mut all = Confusion::default();
    let mut repositories = BTreeMap::<&str, Confusion>::new();
    let mut by_confidence = BTreeMap::<String, (usize, usize)>::new();
    for tool in &tools {
        let hints = tool.annotations.as_ref();
        let Some(declared) = hints
            .and_then(Annotations::declared_tier)
            .map(Tier::variant)
        else {
            continue;
        };
        let audit = audit_tier(&tool.facts());
        let inferred = audit.tier.variant();
        all.add(declared, inferred);
        repositories
            .entry(&tool.repo)
            .or_default()
            .add(declared, inferred);
        let (right, count) = by_confidence
            .entry(format!("{:.2}", audit.confidence))
            .or_default();
        *count += 1;
        *right += usize::from(declared == inferred);
    }
    println!("declared x inferred {:?} of {} tools", all.0, all.total());
    println!("accuracy                {:.4}", all.accuracy());
    println!("read against not read   {:.4}", all.read_accuracy());
    println!("mutating called read    {:.4}", all.mutating_called_read());
    println!(
        "destructive called read {:.4}",
        all.destructive_called_read()
    );
    for (repository, confusion) in &repositories {
        println!(
            "{repository:40} {:4} tools, accuracy {:.3}, mutating called read {:.3}",
            confusion.total(),
            confusion.accuracy(),
            confusion.mutating_called_read(),
        );
    }
    println!("right of all by confidence {by_confidence:?}");
    assert!(all.total() > 1_000);
    assert!(
        all.accuracy() >= 0.81,
        "accuracy fell to {}",
        all.accuracy()
    );
    assert!(
        all.read_accuracy() >= 0.94,
        "read accuracy fell to {}",
        all.read_accuracy()
    );
    let missed = all.mutating_called_read();
    assert!(
        missed <= 0.025,
        "mutating tools called read rose to {missed}"
    );
}

#[test]
fn the_tiers_of_97_tools_are_mostly_told_by_their_names_alone() {
    let manifest = Manifest::parse(&fixture("notes-tiers.json")).unwrap();
    let (mut right, mut right_lane, mut called_read) = (0, 0, 0);
    for (name, tier) in manifest.tools() {
        let audit = infer(name, "", "{}");
        right += usize::from(audit.tier == tier);
        right_lane += usize::from(audit.tier.variant() == tier.variant());
        called_read += usize::from(tier > Tier::ReadOnly && audit.tier == Tier::ReadOnly);
        if audit.tier != tier {
            println!("{name}: {tier}, but {}", audit.reason);
        }
    }
    println!("{right} tiers and {right_lane} lanes of 97; {called_read} mutating called read");
    assert!(right >= 86);
    assert_eq!(
        called_read, 1,
        "only the export of keys, which sounds like a read"
    );
}

fn infer(name: &str, description: &str, schema: &str) -> Audit {
    let schema = RawValue::from_string(schema.to_owned()).unwrap();
    audit_tier(&ToolFacts {
        server: "notes",
        name,
        description,
        input_schema: Some(&schema),
        ..ToolFacts::default()
    })
}

#[test]
fn deleting_for_good_is_told_from_putting_aside() {
    let table = [
        ("delete_note", "Deletes a note.", "{}", Tier::Destructive),
        (
            "delete_note",
            "Moves a note to the trash.",
            "{}",
            Tier::SoftDelete,
        ),
        (
            "delete_note",
            "Soft delete; can be restored within 30 days.",
            "{}",
            Tier::SoftDelete,
        ),
        (
            "delete_note",
            "Deletes a note. This cannot be undone.",
            "{}",
            Tier::Destructive,
        ),
        (
            "delete_note",
            "Permanently deletes a note from the trash.",
            "{}",
            Tier::Destructive,
        ),
        (
            "delete_note",
            "Moves it to the bin. Use purge_note to delete permanently.",
            "{}",
            Tier::SoftDelete,
        ),
        ("archive_note", "Archives a note.", "{}", Tier::SoftDelete),
        ("trash_note", "", "{}", Tier::SoftDelete),
        (
            "trash_note",
            "",
            r#"{"properties": {"permanent": {"type": "boolean"}}}"#,
            Tier::Destructive,
        ),
        (
            "restore_note",
            "Restores a note from the trash.",
            "{}",
            Tier::Write,
        ),
        (
            "update_note",
            "Replaces a note. Irreversible.",
            "{}",
            Tier::Destructive,
        ),
    ];
    for (name, description, schema, tier) in table {
        let audit = infer(name, description, schema);
        assert_eq!(audit.tier, tier, "{name}: {description}: {}", audit.reason);
    }
}

#[test]
fn what_runs_code_is_never_read_only() {
    let sql = r#"{"properties": {"sql": {"type": "string"}}}"#;
    let command = r#"{"properties": {"command": {"type": "string"}}}"#;
    for (name, schema) in [
        ("query", sql),
        ("get_rows", sql),
        ("run_sql", sql),
        ("execute_command", command),
        ("shell", command),
        ("eval", "{}"),
        ("run", "{}"),
        ("exec", "{}"),
        ("search", command),
    ] {
        assert_ne!(infer(name, "", schema).tier, Tier::ReadOnly, "{name}");
    }
    assert_eq!(
        infer("explain_sql", "Explains a statement.", sql).tier,
        Tier::ReadOnly
    );
    let elsewhere = "Runs SQL. For read-only queries use query instead.";
    assert_eq!(infer("run_sql", elsewhere, sql).tier, Tier::Destructive);
    assert_eq!(
        infer("query", "Runs a read-only SQL query.", sql).tier,
        Tier::ReadOnly
    );
}

#[test]
fn a_tool_with_a_choice_of_actions_is_as_bad_as_the_worst() {
    let choices = |list: &str| format!(r#"{{"properties": {{"action": {{"enum": {list}}}}}}}"#);
    let worst = |list| infer("manage_label", "Manages labels.", &choices(list)).tier;
    assert_eq!(worst(r#"["get", "create", "delete"]"#), Tier::Destructive);
    assert_eq!(worst(r#"["get", "create"]"#), Tier::Write);
    let read = infer(
        "label_read",
        "Reads labels.",
        &choices(r#"["get", "list"]"#),
    );
    assert_eq!(read.tier, Tier::ReadOnly);
    let lying = infer(
        "get_label",
        "Gets a label.",
        &choices(r#"["get", "purge"]"#),
    );
    assert_eq!(lying.tier, Tier::Destructive);
}

#[test]
fn the_reason_is_one_line_that_names_the_deciding_words() {
    let audit = infer(
        "delete_note",
        "Permanently deletes.",
        r#"{"properties": {"force": {}}}"#,
    );
    assert_eq!(audit.reason, "destructive: \"delete\" in the name");
    let audit = infer("zzz", "", "{}");
    assert_eq!(
        audit.reason,
        "write: no word that tells, so a write is assumed"
    );
    assert!(audit.confidence < 0.5);
}
