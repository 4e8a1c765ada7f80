//! What a caller reports becomes what a store keeps: redacted, cut, fingerprinted and owned.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::chain::Hash;
use crate::id::ActivityId;
use crate::log::{Payloads, Settings};
use crate::payload::{Payload, SealedPayload};
use crate::record::{End, Ended, Metadata, Start, Started};
use crate::words::RecordType;
use redact::{Prefilter, Redacted};

/// Characters of a name, an identifier of a client or an error code that are kept.
const NAME_LENGTH: usize = 256;

/// Characters of a message, a reason or a warning that are kept.
const MESSAGE_LENGTH: usize = 2_000;

/// Warnings of one record that are kept.
const WARNINGS: usize = 8;

/// Responses of this many bytes are sealed by the writer: to search and to hash 64 kB takes longer than
/// to pass them on.
const LATE_RESPONSE: usize = 8 * 1024;

/// Stands at the end of a text that was cut.
const ELLIPSIS: char = '…';

/// Takes over the texts of one half of a record.
struct Sealer<'a> {
    settings: &'a Settings,
    /// Whether a quick look at all of them found nothing to redact.
    clean: bool,
}

/// A response that is not redacted yet. It must not reach a disk.
#[derive(Clone)]
pub struct LateResponse {
    /// What of the response is looked at.
    window: Box<str>,
    /// Whether the response is longer.
    goes_on: bool,
    /// Those that applied when it came.
    settings: Arc<Settings>,
}

impl LateResponse {
    pub(crate) fn seal(&self) -> SealedPayload {
        let (settings, limit) = (&self.settings, self.settings.max_response_bytes);
        let redacted = settings
            .redactor
            .json_window(&self.window, self.goes_on, limit);
        sealed(&redacted, settings.payloads == Payloads::Full)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.window.len()
    }
}

impl fmt::Debug for LateResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LateResponse({} bytes)", self.bytes())
    }
}

impl Settings {
    pub(crate) fn started(&self, id: ActivityId, start: Start<'_>) -> Started {
        let sealer = self.look_at(|prefilter| self.look_at_start(prefilter, &start));
        let kept = self.keeps_arguments(start.record_type);
        let own = |text: Option<&str>| text.map(|text| sealer.own(text, NAME_LENGTH));
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
            arguments: start
                .arguments
                .map(|text| sealer.payload(text, self.max_argument_bytes, kept)),
        }
    }

    /// Like [`ended`](Self::ended), but leaves a large response to be sealed later, by a thread that
    /// no call waits for.
    pub(crate) fn ended_with_late_response(
        self: &Arc<Self>,
        mut end: End<'_>,
    ) -> (Ended, Option<LateResponse>) {
        let response = end.response.take_if(|text| text.len() >= LATE_RESPONSE);
        let late = response.map(|text| {
            let window = self.redactor.window(text, self.max_response_bytes);
            LateResponse {
                window: window.into(),
                goes_on: window.len() < text.len(),
                settings: Arc::clone(self),
            }
        });
        (self.ended(end), late)
    }

    pub(crate) fn ended(&self, end: End<'_>) -> Ended {
        let limit = self.max_response_bytes;
        let sealer = self.look_at(|prefilter| {
            if let Some(message) = end.outcome.message() {
                prefilter.text(self.window(message, MESSAGE_LENGTH));
            }
            if let Some(response) = end.response {
                self.look_at_payload(prefilter, response, limit);
            }
        });
        Ended {
            status: end.outcome.status(),
            error_code: end
                .outcome
                .code()
                .map(|code| shortened(code, NAME_LENGTH).into()),
            error_message: end
                .outcome
                .message()
                .map(|text| sealer.own(text, MESSAGE_LENGTH)),
            duration_ms: u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX),
            response_bytes: end.response_bytes,
            response: end
                .response
                .map(|text| sealer.payload(text, limit, self.payloads == Payloads::Full)),
        }
    }

    /// What changed is told by the arguments of a change; without them it would say nothing.
    fn keeps_arguments(&self, record_type: RecordType) -> bool {
        match record_type {
            RecordType::ToolCall | RecordType::PolicyDecision => self.payloads == Payloads::Full,
            RecordType::QuarantineChange
            | RecordType::ServerChange
            | RecordType::ConfigChange
            | RecordType::System => true,
        }
    }

    fn look_at(&self, look: impl FnOnce(&mut Prefilter<'_>)) -> Sealer<'_> {
        let mut prefilter = self.redactor.prefilter();
        look(&mut prefilter);
        Sealer {
            settings: self,
            clean: prefilter.finds_nothing(),
        }
    }

    /// Everything of a start that a secret could be in. What is not looked at here would be stored
    /// as it is; therefore every field is named, so that a new one is not forgotten.
    fn look_at_start(&self, prefilter: &mut Prefilter<'_>, start: &Start<'_>) {
        let Start {
            record_type: _,
            source: _,
            server_name,
            tool_name,
            arguments,
            request_bytes: _,
            session_id,
            client_name,
            request_id,
            metadata,
        } = start;
        let names = [server_name, tool_name, session_id, client_name, request_id];
        for name in names.into_iter().flatten() {
            prefilter.text(self.window(name, NAME_LENGTH));
        }
        for text in texts(metadata) {
            prefilter.text(self.window(text, MESSAGE_LENGTH));
        }
        if let Some(arguments) = arguments {
            self.look_at_payload(prefilter, arguments, self.max_argument_bytes);
        }
    }

    /// Arguments and responses are JSON, unless only their beginning is looked at.
    fn look_at_payload(&self, prefilter: &mut Prefilter<'_>, text: &str, limit: usize) {
        let window = self.redactor.window(text, limit);
        if window.len() == text.len() {
            prefilter.whole_json(window);
        } else {
            prefilter.json(window);
        }
    }

    /// As much of a text as is looked at if this many of its characters are kept.
    fn window<'a>(&self, text: &'a str, characters: usize) -> &'a str {
        self.redactor.window(text, bytes_of(characters))
    }
}

fn texts(metadata: &Metadata) -> impl Iterator<Item = &String> {
    let Metadata {
        intent,
        tool_variant: _,
        effective_tier: _,
        provenance: _,
        warnings,
        facts: _,
    } = metadata;
    let reason = intent.as_ref().and_then(|intent| intent.reason.as_ref());
    reason.into_iter().chain(warnings)
}

impl Sealer<'_> {
    /// Redacts a short text and keeps at most this many characters of it.
    fn own(&self, text: &str, characters: usize) -> Arc<str> {
        let window = self.settings.window(text, characters);
        if self.clean {
            return shortened(window, characters).into();
        }
        let redacted = self.settings.redactor.text(window);
        if window.len() == text.len() {
            return shortened(&redacted, characters).into();
        }
        // The end of what was looked at may hold half a secret, so it is never kept.
        let uncertain = window.len() - bytes_of(characters) + char::MAX_LEN_UTF8;
        let certain = redact::cut(&redacted, redacted.len().saturating_sub(uncertain));
        match shortened(certain, characters) {
            Cow::Borrowed(whole) => format!("{whole}{ELLIPSIS}").into(),
            Cow::Owned(cut) => cut.into(),
        }
    }

    fn payload(&self, text: &str, limit: usize, kept: bool) -> SealedPayload {
        let redactor = &self.settings.redactor;
        let redacted = if self.clean {
            redactor.clean_json_up_to(text, limit)
        } else {
            redactor.json_up_to(text, limit)
        };
        sealed(&redacted, kept)
    }

    fn metadata(&self, mut metadata: Metadata) -> Metadata {
        metadata.warnings.truncate(WARNINGS);
        let intent = metadata.intent.as_mut();
        let reason = intent.and_then(|intent| intent.reason.as_mut());
        for text in reason.into_iter().chain(&mut metadata.warnings) {
            if !self.clean || text.len() > MESSAGE_LENGTH {
                *text = String::from(&*self.own(text, MESSAGE_LENGTH));
            }
        }
        metadata
    }
}

fn sealed(redacted: &Redacted<'_>, kept: bool) -> SealedPayload {
    SealedPayload {
        digest: Hash::of(redacted.text.as_bytes()),
        truncated: redacted.truncated,
        text: kept.then(|| Payload::new(&*redacted.text)),
        kept,
    }
}

/// The most bytes that this many characters can have.
fn bytes_of(characters: usize) -> usize {
    characters * char::MAX_LEN_UTF8
}

/// At most this many characters of a text; the mark that it was cut is the last of them.
fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    // Most texts have fewer bytes than that, and need not be counted.
    if text.len() <= characters || text.chars().nth(characters).is_none() {
        return Cow::Borrowed(text);
    }
    let end = text.char_indices().nth(characters - 1);
    let end = end.map_or(text.len(), |(end, _)| end);
    Cow::Owned(format!("{}{ELLIPSIS}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::{Outcome, RecordedIntent};
    use crate::words::Source;
    use redact::Redactor;

    const SECRET: &str = "hunter2!";
    const PLAIN: &str = "\"plain\"";

    fn settings() -> Settings {
        Settings {
            redactor: Redactor::new([SECRET]).unwrap(),
            max_response_bytes: 1_000,
            max_argument_bytes: 1_000,
            payloads: Payloads::Full,
        }
    }

    /// The texts of a start that was sealed, the one at that place being a secret.
    fn sealed_start(secret_at: usize) -> Vec<String> {
        let text = |place: usize| if place == secret_at { SECRET } else { PLAIN };
        let start = Start {
            server_name: Some(text(0)),
            tool_name: Some(text(1)),
            session_id: Some(text(2)),
            client_name: Some(text(3)),
            request_id: Some(text(4)),
            arguments: Some(text(5)),
            metadata: Metadata {
                intent: Some(RecordedIntent {
                    reason: Some(text(6).to_owned()),
                    ..RecordedIntent::default()
                }),
                warnings: vec![text(7).to_owned(), text(8).to_owned()],
                ..Metadata::default()
            },
            ..Start::new(RecordType::ToolCall, Source::Mcp)
        };
        let started = settings().started(ActivityId::from_halves(1, 1), start);
        let names = [
            started.server_name,
            started.tool_name,
            started.session_id,
            started.client_name,
            started.request_id,
        ];
        let arguments = started.arguments.and_then(|sealed| sealed.text).unwrap();
        let names = names.into_iter().flatten().map(|name| name.to_string());
        names
            .chain([arguments.as_str().to_owned()])
            .chain(texts(&started.metadata).cloned())
            .collect()
    }

    #[test]
    fn a_secret_is_found_wherever_a_start_has_text() {
        for place in 0..9 {
            let mut expected = vec![PLAIN.to_owned(); 9];
            expected[place] = redact::MASK.to_owned();
            assert_eq!(sealed_start(place), expected);
        }
        assert_eq!(sealed_start(9), vec![PLAIN; 9]);
    }

    #[test]
    fn a_secret_is_found_wherever_an_end_has_text() {
        for (message, response) in [
            (SECRET, PLAIN),
            (PLAIN, SECRET),
            (PLAIN, "\"\\u0068unter2!"),
        ] {
            let outcome = Outcome::Cancelled { message };
            let ended = settings().ended(End {
                response: Some(response),
                ..End::new(outcome, Duration::ZERO)
            });
            let kept = ended.response.and_then(|sealed| sealed.text).unwrap();
            let found = [&*ended.error_message.unwrap(), kept.as_str()].concat();
            assert_eq!(found.matches(redact::MASK).count(), 1, "{found}");
            assert!(!found.contains("unter2!"), "{found}");
        }
    }

    #[test]
    fn what_is_clean_is_cut_as_what_is_not() {
        let long = format!("\"{}\"", "x ".repeat(20_000));
        let redactor = &settings().redactor;
        for limit in [0, 1, 1_000, 30_000, 40_002, usize::MAX] {
            let clean = redactor.clean_json_up_to(&long, limit);
            assert_eq!(clean, redactor.json_up_to(&long, limit));
        }
    }

    #[test]
    fn short_texts_are_cut_and_marked() {
        let long = "ä".repeat(1_000_000);
        let start = Start {
            server_name: Some(&long),
            tool_name: Some(&long),
            session_id: Some(&long),
            client_name: Some(&long),
            request_id: Some(&long),
            arguments: Some(&long),
            metadata: Metadata {
                intent: Some(RecordedIntent {
                    reason: Some(long.clone()),
                    ..RecordedIntent::default()
                }),
                warnings: vec![long.clone(); 100],
                ..Metadata::default()
            },
            ..Start::new(RecordType::ToolCall, Source::Mcp)
        };
        let started = settings().started(ActivityId::from_halves(1, 1), start);
        let names = [
            started.server_name,
            started.tool_name,
            started.session_id,
            started.client_name,
            started.request_id,
        ];
        for name in names.into_iter().flatten() {
            assert_eq!(name.chars().count(), NAME_LENGTH);
            assert!(name.ends_with("ä…"), "{name}");
        }
        assert_eq!(started.metadata.warnings.len(), WARNINGS);
        for text in texts(&started.metadata) {
            assert_eq!(text.chars().count(), MESSAGE_LENGTH);
        }
        let arguments = started.arguments.unwrap();
        assert!(arguments.truncated);
        assert!(arguments.text.unwrap().as_str().len() <= 1_000);
        let outcome = Outcome::Error {
            code: &long,
            message: &long,
        };
        let ended = settings().ended(End::new(outcome, Duration::ZERO));
        assert_eq!(ended.error_code.unwrap().chars().count(), NAME_LENGTH);
        assert_eq!(ended.error_message.unwrap().chars().count(), MESSAGE_LENGTH);
    }

    proptest::proptest! {
        #[test]
        fn a_late_response_is_sealed_as_any_other(
            before in 0_usize..12_000,
            after in 0_usize..12_000,
            limit in 1_usize..20_000,
        ) {
            let settings = Arc::new(Settings { max_response_bytes: limit, ..settings() });
            let text = format!("\"{}{SECRET}\\n{}\"", "x".repeat(before), "y".repeat(after));
            let end = || End {
                response: Some(&text),
                response_bytes: text.len() as u64,
                ..End::new(Outcome::Success, Duration::ZERO)
            };
            let expected = settings.ended(end());
            let (ended, late) = settings.ended_with_late_response(end());
            proptest::prop_assert_eq!(late.is_some(), text.len() >= LATE_RESPONSE);
            let mut entry = crate::Entry::End(ActivityId::from_halves(1, 1), ended, late);
            proptest::prop_assert_eq!(entry.seal(), text.len() >= LATE_RESPONSE);
            let crate::Entry::End(_, sealed, None) = entry else {
                panic!("not sealed: {entry:?}");
            };
            proptest::prop_assert_eq!(sealed, expected);
        }

        /// Wherever a secret is, and however much of the text goes, no part of it is kept.
        #[test]
        fn a_secret_across_the_cut_is_not_kept_in_part(
            before in 0_usize..12_000,
            after in 0_usize..12_000,
            again in 0_usize..900,
        ) {
            let text = [&SECRET.repeat(again), &*"x".repeat(before), SECRET, &*"y".repeat(after)].concat();
            let outcome = Outcome::Cancelled { message: &text };
            let ended = settings().ended(End::new(outcome, Duration::ZERO));
            let kept = ended.error_message.unwrap();
            proptest::prop_assert!(kept.chars().count() <= MESSAGE_LENGTH);
            proptest::prop_assert!(!kept.contains("hunt"), "{}", kept);
        }
    }
}
