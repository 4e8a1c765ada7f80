//! Whether the headers of a request say what its body says: somebody on the way may have gone by
//! the one, and the service goes by the other.

use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::modern::{ParameterMismatch, decode_header_value, headers, name_member, name_of};
use crate::{ErrorObject, Request, codes};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Mismatch {
    #[error("the {0} header is missing")]
    Missing(HeaderName),
    #[error("the {0} header is there, but the body has no one thing to compare it with")]
    Unexpected(HeaderName),
    #[error("the {0} header is not validly encoded")]
    Encoding(HeaderName),
    #[error("the {header} header is not {expected:?} as in the body")]
    Different {
        header: HeaderName,
        expected: String,
    },
    #[error(transparent)]
    Parameter(#[from] ParameterMismatch),
}

pub(super) fn headers_match(
    given: &HeaderMap,
    request: &Request,
    version: &str,
) -> Result<(), Mismatch> {
    says(given, headers::PROTOCOL_VERSION, version)?;
    says(given, headers::METHOD, &request.method)?;
    match name_of(&request.method, request.params.as_deref()) {
        Some(name) => says(given, headers::NAME, &name),
        None if name_member(&request.method).is_some() && given.contains_key(headers::NAME) => {
            Err(Mismatch::Unexpected(headers::NAME))
        }
        None => Ok(()),
    }
}

/// The tool that a request calls, and the arguments it gives.
pub(super) fn tool_call(request: &Request) -> Option<(String, Option<&RawValue>)> {
    #[derive(Deserialize)]
    struct Call<'a> {
        name: String,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }

    if request.method != "tools/call" {
        return None;
    }
    let params = request.params.as_deref()?;
    let call: Call<'_> = serde_json::from_str(params.get()).ok()?;
    Some((call.name, call.arguments))
}

fn says(given: &HeaderMap, header: HeaderName, expected: &str) -> Result<(), Mismatch> {
    let mut values = given.get_all(&header).iter();
    let Some(value) = values.next() else {
        return Err(Mismatch::Missing(header));
    };
    let said = value.to_str().ok();
    let said = said.and_then(|said| decode_header_value(said.trim()).ok());
    match said {
        None => Err(Mismatch::Encoding(header)),
        Some(said) if said == expected && values.next().is_none() => Ok(()),
        Some(_) => Err(Mismatch::Different {
            header,
            expected: expected.to_owned(),
        }),
    }
}

// === impl Mismatch ===

impl Mismatch {
    pub(super) fn to_error(&self) -> ErrorObject {
        ErrorObject::new(codes::HEADER_MISMATCH, format!("Header mismatch: {self}"))
    }
}
