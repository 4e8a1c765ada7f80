//! What a caller reports becomes what a store keeps: redacted, cut, fingerprinted and owned.

use std::borrow::Cow;
use std::sync::Arc;

use crate::chain::Hash;
use crate::id::ActivityId;
use crate::log::{Payloads, Settings};
use crate::payload::{Payload, SealedPayload};
use crate::record::{End, Ended, Metadata, Start, Started};
use crate::redact::Glance;

/// Takes over the texts of one half of a record.
struct Sealer<'a> {
    settings: &'a Settings,
    /// Whether a quick look at all of them found nothing to redact.
    clean: bool,
}

impl Settings {
    pub(crate) fn started(&self, id: ActivityId, start: Start<'_>) -> Started {
        let sealer = self.look_at(|glance| look_at_start(glance, &start));
        let own = |text: Option<&str>| text.map(|text| sealer.own(text));
        Started {
            id,
            record_type: start.record_type,
            source: start.source,
            server_name: own(start.server_name),
            tool_name: own(start.tool_name),
            session_id: own(start.session_id),
            client_name: own(start.client_name),
            request_id: own(start.request_id),
            request_bytes: start.request_bytes,
            metadata: sealer.metadata(start.metadata),
            arguments: start.arguments.map(|text| sealer.payload(text, usize::MAX)),
        }
    }

    pub(crate) fn ended(&self, end: End<'_>) -> Ended {
        let limit = self.max_response_bytes;
        let sealer = self.look_at(|glance| {
            end.outcome
                .message()
                .into_iter()
                .for_each(|text| glance.text(text));
            if let Some(response) = end.response {
                glance.json(self.redactor.window(response, limit));
            }
        });
        Ended {
            status: end.outcome.status(),
            error_code: end.outcome.code().map(Arc::from),
            error_message: end.outcome.message().map(|text| sealer.own(text)),
            duration_ms: u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX),
            response_bytes: end.response_bytes,
            response: end.response.map(|text| sealer.payload(text, limit)),
        }
    }

    fn look_at(&self, look: impl FnOnce(&mut Glance<'_>)) -> Sealer<'_> {
        let mut glance = self.redactor.glance();
        look(&mut glance);
        Sealer {
            settings: self,
            clean: glance.finds_nothing(),
        }
    }
}

/// Everything of a start that whoever called could have put a secret into.
fn look_at_start(glance: &mut Glance<'_>, start: &Start<'_>) {
    let names = [
        start.server_name,
        start.tool_name,
        start.session_id,
        start.client_name,
        start.request_id,
    ];
    names
        .into_iter()
        .flatten()
        .for_each(|name| glance.text(name));
    let Metadata {
        intent, warnings, ..
    } = &start.metadata;
    let reason = intent.as_ref().and_then(|intent| intent.reason.as_ref());
    reason
        .into_iter()
        .chain(warnings)
        .for_each(|text| glance.text(text));
    if let Some(arguments) = start.arguments {
        glance.json(arguments);
    }
}

impl Sealer<'_> {
    fn own(&self, text: &str) -> Arc<str> {
        if self.clean {
            return text.into();
        }
        self.settings.redactor.text(text).into()
    }

    fn payload(&self, text: &str, limit: usize) -> SealedPayload {
        let redactor = &self.settings.redactor;
        let redacted = if self.clean {
            redactor.clean_json_up_to(text, limit)
        } else {
            redactor.json_up_to(text, limit)
        };
        let kept = self.settings.payloads == Payloads::Full;
        SealedPayload {
            digest: Hash::of(redacted.text.as_bytes()),
            truncated: redacted.truncated,
            text: kept.then(|| Payload::new(redacted.text)),
            kept,
        }
    }

    fn metadata(&self, mut metadata: Metadata) -> Metadata {
        if self.clean {
            return metadata;
        }
        let intent = metadata.intent.as_mut();
        let reason = intent.and_then(|intent| intent.reason.as_mut());
        for text in reason.into_iter().chain(&mut metadata.warnings) {
            if let Cow::Owned(redacted) = self.settings.redactor.text(text) {
                *text = redacted;
            }
        }
        metadata
    }
}
