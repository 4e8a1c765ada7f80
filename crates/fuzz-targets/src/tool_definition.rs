//! A tool's definition on its way to tier, findings, fingerprint, signature and headers.

use std::fmt;

use auditor::{Operator, ToolFacts, audit_all, audit_tier, render};
use catalog::{Fingerprint, ToolDefinition, summary};
use mcp::modern::ParameterHeaders;
use policy::Annotations;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) fn check(input: &[u8]) {
    let Ok(raw) = serde_json::from_slice::<Box<RawValue>>(input) else {
        return;
    };
    fingerprint_holds(&raw);
    let server = "fuzz".parse().expect("a server's name");
    let text = raw.get().to_owned();
    let Ok(tool) = ToolDefinition::parse(&server, raw) else {
        return;
    };
    assert_eq!(tool.raw.get(), text, "the definition keeps its bytes");
    let signature = tool.signature();
    assert!(signature.len() < 8_000, "a signature is bounded");
    assert!(!signature.contains('\n'), "a signature is one line");
    assert!(summary(&tool.description, 80).chars().count() <= 81);
    audit_holds(&tool);
    headers_hold(tool.input_schema.as_deref());
}

/// Order of members and space do not count; what is said does.
fn fingerprint_holds(raw: &RawValue) {
    let fingerprint = Fingerprint::of(raw);
    assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
    if serde_json::from_str::<Plain>(raw.get()).is_ok_and(|it| it.0)
        && let Ok(value) = serde_json::from_str::<Value>(raw.get())
    {
        let pretty = RawValue::from_string(format!("{value:#}")).expect("JSON");
        assert_eq!(Fingerprint::of(&pretty), fingerprint, "form counts");
        let wrapped = RawValue::from_string(format!("[{value}]")).expect("JSON");
        assert_ne!(
            Fingerprint::of(&wrapped),
            fingerprint,
            "content does not count"
        );
    }
}

fn audit_holds(tool: &ToolDefinition) {
    let facts = ToolFacts {
        server: tool.id.server().as_str(),
        name: tool.id.tool().as_str(),
        title: tool.title.as_deref(),
        description: &tool.description,
        input_schema: tool.input_schema.as_deref(),
        output_schema: tool.output_schema.as_deref(),
        annotations: tool.annotations.as_ref(),
        pinned: None,
    };
    let audit = audit_tier(&facts);
    assert!((0.0..=1.0).contains(&audit.confidence));
    assert!(!audit.reason.contains('\n'), "a reason is one line");
    let silent = ToolFacts {
        annotations: None,
        ..facts
    };
    assert_eq!(audit, audit_tier(&silent), "hints are no evidence");
    let report = audit_all(&[facts], Operator::default());
    assert_eq!(report.tools.len(), 1);
    let acts = |it: char| it.is_control() && it != '\n';
    assert!(!render::markdown(&report).contains(acts), "Markdown acts");
    let sarif = render::sarif(&report).to_string();
    assert!(serde_json::from_str::<IgnoredAny>(&sarif).is_ok());
    let _ = tool
        .annotations
        .as_ref()
        .and_then(Annotations::declared_tier);
}

/// The headers that are derived from arguments are those that are asked for.
fn headers_hold(schema: Option<&RawValue>) {
    let Some(Ok(parameters)) = schema.map(ParameterHeaders::of_schema) else {
        return;
    };
    // Any JSON may come as arguments; the schema itself is as good as another.
    for arguments in [None, schema] {
        let headers = parameters.derive(arguments).into_iter().collect();
        assert_eq!(parameters.check(&headers, arguments), Ok(()));
    }
}

/// Whether JSON has no member twice and no number that is written in several ways.
struct Plain(bool);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Plain;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Plain, E> {
        Ok(Plain(true))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Plain, E> {
        Ok(Plain(true))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Plain, E> {
        Ok(Plain(true))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Plain, E> {
        Ok(Plain(true))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Plain, E> {
        Ok(Plain(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<Plain, E> {
        Ok(Plain(true))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Plain, A::Error> {
        let mut plain = true;
        while let Some(item) = seq.next_element::<Plain>()? {
            plain &= item.0;
        }
        Ok(Plain(plain))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Plain, A::Error> {
        let (mut plain, mut names) = (true, std::collections::HashSet::new());
        while let Some((name, value)) = map.next_entry::<String, Plain>()? {
            plain &= names.insert(name) && value.0;
        }
        Ok(Plain(plain))
    }
}
