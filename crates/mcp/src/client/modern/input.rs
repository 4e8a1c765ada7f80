//! Results that ask for input first: what the server wants to know is asked of the owner, as if a
//! legacy server had sent the question.

use std::sync::Arc;

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::Retry;
use crate::client::events::Origin;
use crate::client::incoming::Incoming;
use crate::client::{ProtocolError, RequestError};
use crate::modern::result_type::INPUT_REQUIRED;
use crate::{Members, Request, RequestId};

/// What the server wants to know before it goes on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InputRequired {
    input_requests: Option<Box<RawValue>>,
    request_state: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Question<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Whether a server may answer this with a question.
pub(super) fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

impl InputRequired {
    /// Reads a result; `None` if it is complete.
    pub(super) fn parse(result: &RawValue) -> Result<Option<Self>, RequestError> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(borrow, rename = "resultType")]
            result_type: Option<&'a RawValue>,
        }

        // Most results are complete, and some are long: they are not read for this.
        if memchr::memmem::find(result.get().as_bytes(), INPUT_REQUIRED.as_bytes()).is_none() {
            return Ok(None);
        }
        let kind = serde_json::from_str(result.get()).ok();
        let kind = kind.and_then(|kind: Kind<'_>| kind.result_type);
        let kind = kind.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        if kind.as_deref() != Some(INPUT_REQUIRED) {
            return Ok(None);
        }
        serde_json::from_str(result.get())
            .map(Some)
            .map_err(unintelligible)
    }

    /// Whether there is anything to answer. A server may just want to be asked again.
    pub(super) fn has_questions(&self) -> bool {
        self.input_requests.is_some()
    }

    /// Asks the owner everything at once. Each question has the key that the server gave it for
    /// its id.
    pub(super) async fn answer(
        self,
        incoming: &Arc<Incoming>,
        origin: Origin,
    ) -> Result<Retry, RequestError> {
        let responses = match &self.input_requests {
            None => None,
            Some(questions) => Some(ask(questions, incoming, origin).await?),
        };
        Ok(Retry {
            responses,
            state: self.request_state,
        })
    }
}

async fn ask(
    questions: &RawValue,
    incoming: &Arc<Incoming>,
    origin: Origin,
) -> Result<Box<RawValue>, RequestError> {
    let questions = Members::parse(questions).map_err(unintelligible)?;
    let asking = questions.iter().map(|(key, question)| async move {
        let question: Question<'_> =
            serde_json::from_str(question.get()).map_err(unintelligible)?;
        let request = Request {
            id: RequestId::from(key),
            method: question.method.clone(),
            params: question.params.map(ToOwned::to_owned),
        };
        match incoming.ask(request, origin).await {
            Ok(answer) => Ok((key, answer)),
            Err(source) => Err(RequestError::InputRefused {
                method: question.method,
                source,
            }),
        }
    });
    let mut responses = Members::default();
    for (name, answer) in try_join_all(asking).await? {
        responses.set(name, answer);
    }
    responses.to_raw().map_err(unintelligible)
}

fn unintelligible(source: serde_json::Error) -> RequestError {
    RequestError::Protocol(ProtocolError::InputRequired(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<InputRequired>, RequestError> {
        InputRequired::parse(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn only_the_type_of_the_result_itself_counts() {
        for complete in [
            "{}",
            "7",
            r#"{"resultType":"complete","text":"input_required"}"#,
            r#"{"content":[{"resultType":"input_required"}]}"#,
            r#"{"resultType":["input_required"]}"#,
        ] {
            assert!(parse(complete).unwrap().is_none(), "{complete}");
        }
        let state = r#"{"resultType":"input_required","requestState":"s\u00e9"}"#;
        let state = parse(state).unwrap().unwrap();
        assert!(!state.has_questions());
        assert_eq!(state.request_state.unwrap().get(), r#""s\u00e9""#);
    }
}
