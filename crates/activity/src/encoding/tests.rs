use std::sync::Arc;

use policy::{DataSensitivity, OperationType, Provenance, Tier, ToolVariant};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::chain::Hash;
use crate::facts::tests::any_facts;
use crate::record::{Metadata, RecordedIntent};
use crate::words::{RecordType, Source, Status};

fn any_word<W: Word + std::fmt::Debug>() -> impl Strategy<Value = W> {
    select(W::ALL)
}

fn any_name() -> impl Strategy<Value = Option<Arc<str>>> {
    option::of(any::<String>().prop_map(Arc::from))
}

/// Without its text, which is not encoded.
fn any_payload() -> impl Strategy<Value = Option<SealedPayload>> {
    let payload =
        any::<([u8; 32], bool, bool)>().prop_map(|(digest, truncated, kept)| SealedPayload {
            digest: Hash(digest),
            truncated,
            text: None,
            kept,
        });
    option::of(payload)
}

prop_compose! {
    fn any_intent()(
        operation_type in option::of(any_word::<OperationType>()),
        data_sensitivity in option::of(any_word::<DataSensitivity>()),
        reason in option::of(any::<String>()),
    ) -> RecordedIntent {
        RecordedIntent { operation_type, data_sensitivity, reason }
    }
}

prop_compose! {
    fn any_metadata()(
        intent in option::of(any_intent()),
        tool_variant in option::of(any_word::<ToolVariant>()),
        effective_tier in option::of(any_word::<Tier>()),
        provenance in option::of(any_word::<Provenance>()),
        warnings in vec(any::<String>(), 0..3),
        facts in option::of(any_facts()),
    ) -> Metadata {
        Metadata { intent, tool_variant, effective_tier, provenance, warnings, facts }
    }
}

prop_compose! {
    pub(crate) fn any_started()(
        (order, tail) in any::<(u64, u64)>(),
        record_type in any_word::<RecordType>(),
        source in any_word::<Source>(),
        [server_name, tool_name, session_id, client_name, request_id] in
            [any_name(), any_name(), any_name(), any_name(), any_name()],
        request_bytes in any::<u64>(),
        metadata in any_metadata(),
        arguments in any_payload(),
    ) -> Started {
        Started {
            id: ActivityId::from_halves(order, tail),
            record_type, source, server_name, tool_name, session_id, client_name, request_id,
            request_bytes, metadata, arguments,
        }
    }
}

prop_compose! {
    pub(crate) fn any_ended()(
        status in any_word::<Status>(),
        [error_code, error_message] in [any_name(), any_name()],
        duration_ms in any::<u64>(),
        response_bytes in any::<u64>(),
        response in any_payload(),
    ) -> Ended {
        Ended { status, error_code, error_message, duration_ms, response_bytes, response }
    }
}

fn encoded(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Encoder(&mut bytes));
    bytes
}

fn decoded<'a, T>(
    bytes: &'a [u8],
    read: impl FnOnce(&mut Decoder<'a>) -> Result<T, InvalidEncoding>,
) -> Result<T, InvalidEncoding> {
    let mut decoder = Decoder(bytes);
    let read = read(&mut decoder)?;
    decoder.finish()?;
    Ok(read)
}

proptest! {
    #[test]
    fn starts_are_decoded_as_they_were(started in any_started()) {
        let bytes = encoded(|encoder| encoder.start(&started));
        let version = version(&started);
        prop_assert_eq!(decoded(&bytes, |decoder| decoder.start(version)), Ok(started));
    }

    #[test]
    fn ends_are_decoded_as_they_were(ended in any_ended()) {
        let bytes = encoded(|encoder| encoder.end(&ended));
        prop_assert_eq!(decoded(&bytes, Decoder::end), Ok(ended));
    }

    #[test]
    fn what_is_decoded_has_no_other_encoding(
        started in any_started(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = encoded(|encoder| encoder.start(&started));
        let version = version(&started);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(started) = decoded(&bytes, |decoder| decoder.start(version)) {
            prop_assert_eq!(encoded(|encoder| encoder.start(&started)), bytes);
        }
    }

    #[test]
    fn a_part_is_no_record(ended in any_ended(), cut in any::<prop::sample::Index>()) {
        let bytes = encoded(|encoder| encoder.end(&ended));
        let part = &bytes[..cut.index(bytes.len())];
        prop_assert_eq!(decoded(part, Decoder::end), Err(InvalidEncoding));
    }

    #[test]
    fn any_bytes_at_all_are_accepted(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decoded(&bytes, |decoder| decoder.start(VERSION));
        let _ = decoded(&bytes, Decoder::end);
    }
}
