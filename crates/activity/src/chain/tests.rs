//! Hashes of fixed entries. They are in every log that exists: if one of them changes, so that
//! logs no longer verify, the code is wrong and not the test.

use super::*;
use crate::facts::{Facts, Given};
use crate::id::ActivityId;
use crate::payload::{Payload, SealedPayload};
use crate::record::{Metadata, RecordedIntent};
use crate::words::{RecordType, Source, Status};
use policy::{DataSensitivity, OperationType, Provenance, Tier, ToolVariant};

fn sealed(text: &str) -> SealedPayload {
    SealedPayload {
        digest: Hash::of(text.as_bytes()),
        truncated: true,
        text: Some(Payload::new(text)),
        kept: true,
    }
}

fn started() -> Started {
    Started {
        id: ActivityId::from_halves(0x0193_0000_0000_0001, 7),
        record_type: RecordType::ToolCall,
        source: Source::Mcp,
        server_name: Some("files".into()),
        tool_name: Some("read_file".into()),
        session_id: Some("session-1".into()),
        client_name: None,
        request_id: Some("".into()),
        request_bytes: 180,
        metadata: Metadata {
            intent: Some(RecordedIntent {
                operation_type: Some(OperationType::Read),
                data_sensitivity: Some(DataSensitivity::Private),
                reason: Some("the user asked for it".to_owned()),
            }),
            tool_variant: Some(ToolVariant::Read),
            effective_tier: Some(Tier::ReadOnly),
            provenance: Some(Provenance::Declared),
            warnings: vec!["one".to_owned(), "zwei ä".to_owned()],
            facts: None,
        },
        arguments: Some(sealed(r#"{"path":"/tmp"}"#)),
    }
}

fn ended() -> Ended {
    Ended {
        status: Status::Error,
        error_code: Some("UPSTREAM_ERROR".into()),
        error_message: Some("the upstream said no".into()),
        duration_ms: 12,
        response_bytes: 34,
        response: None,
    }
}

fn hash_after_genesis(started: &Started, ended: Option<&Ended>, kind: EntryKind) -> String {
    let link = Link::GENESIS.extend(started, ended, kind);
    assert_eq!(link.sequence, 1);
    link.hash.to_string()
}

#[test]
fn hashes_of_records_stay_what_they_are() {
    let (started, ended) = (started(), ended());
    assert_eq!(
        hash_after_genesis(&started, None, EntryKind::Start),
        "0453325b50e6b06c818302fb410ec83b20e5478daffe70f9bc9f1e1cab909ca4"
    );
    assert_eq!(
        hash_after_genesis(&started, Some(&ended), EntryKind::End),
        "2f486e4be1365e0149b3f700dd8d50d90e5036b6fb5d6a51bbe9cba58ad1ef66"
    );
    assert_eq!(
        hash_after_genesis(&started, Some(&ended), EntryKind::Whole),
        "e64dfbd736eed5369d8badbc2099eda6bcb38a5e81a36c003db005e452b739bf"
    );
}

#[test]
fn hashes_of_records_with_facts_stay_what_they_are() {
    let mut started = started();
    started.metadata.facts = Some(Facts {
        declared_tier: Some(Tier::ReadOnly),
        audited_tier: None,
        pinned: None,
        hold: None,
        lane_chosen: true,
        intent_given: true,
        operation_type: Given::Understood,
        data_sensitivity: Given::Absent,
    });
    assert_eq!(
        hash_after_genesis(&started, Some(&ended()), EntryKind::Whole),
        "bf87115611f659dcbf43bc185ca13c355def84a28bedcba2f168b0d3c1eec0cd"
    );
}

#[test]
fn hashes_of_checkpoints_stay_what_they_are() {
    let checkpoint = Checkpoint {
        through: Link {
            sequence: 41,
            hash: Hash::of(b"41"),
        },
        removed_records: 20,
        made_at: Timestamp::from_millisecond(1_700_000_000_123).unwrap(),
    };
    let link = checkpoint.through.extend_checkpoint(&checkpoint);
    assert_eq!(link.sequence, 42);
    assert_eq!(
        link.hash.to_string(),
        "cdcfe0abc0040aa560b7dd338572b20f9ddbfa10109605b9492f84a4f6c9f118"
    );
}
