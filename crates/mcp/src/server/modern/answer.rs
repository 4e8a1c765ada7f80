//! Answers as modern clients expect them: what the service said, with the members that this era
//! requires spliced in and every other byte as it was.

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::id::encode_string;
use crate::message::present;
use crate::modern::{meta, result_type};
use crate::server::exchange::Outcome;
use crate::{ErrorObject, Request, RequestId, Response, codes};

/// A response, encoded, and the code of the error that it is, if it is one.
#[derive(Debug)]
pub(in crate::server) struct Answer {
    pub(in crate::server) message: Vec<u8>,
    pub(in crate::server) error: Option<i64>,
}

/// What has to be known about a request to answer it.
#[derive(Debug)]
pub(super) struct Question {
    id: RequestId,
    cacheable: bool,
    /// The resource that was asked for.
    uri: Option<String>,
}

/// The members of a result that this era gives a meaning, where they are.
#[derive(Deserialize)]
struct Known<'a> {
    #[serde(borrow, default, deserialize_with = "present", rename = "resultType")]
    result_type: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "ttlMs")]
    ttl: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "cacheScope")]
    cache_scope: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct KnownMeta<'a> {
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/serverInfo"
    )]
    server_info: Option<&'a RawValue>,
}

// === impl Question ===

impl Question {
    pub(super) fn of(request: &Request) -> Self {
        let method = request.method.as_str();
        let uri = (method == "resources/read")
            .then(|| crate::modern::name_of(method, request.params.as_deref()))
            .flatten();
        Self {
            id: request.id.clone(),
            cacheable: matches!(
                method,
                "server/discover"
                    | "tools/list"
                    | "prompts/list"
                    | "resources/list"
                    | "resources/templates/list"
                    | "resources/read"
                    | "skills/list"
                    | "skills/get"
            ),
            uri,
        }
    }

    pub(super) fn answer(self, outcome: Outcome, server_info: Option<&RawValue>) -> Answer {
        match outcome {
            Ok(result) => {
                let mut out = Vec::with_capacity(result.get().len() + 256);
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                self.id.encode_into(&mut out);
                out.extend_from_slice(b",\"result\":");
                complete_into(&result, self.cacheable, server_info, &mut out);
                out.push(b'}');
                Answer {
                    message: out,
                    error: None,
                }
            }
            Err(error) => self.refuse(error),
        }
    }

    pub(super) fn refuse(self, mut error: ErrorObject) -> Answer {
        // A code that the modern era has given up.
        if error.code == codes::RESOURCE_NOT_FOUND {
            error.code = codes::INVALID_PARAMS;
            if let Some(uri) = &self.uri {
                error.data = to_raw_value(&serde_json::json!({ "uri": uri })).ok();
            }
        }
        Answer::refusal(self.id, error)
    }
}

// === impl Answer ===

impl Answer {
    pub(in crate::server) fn refusal(id: RequestId, error: ErrorObject) -> Self {
        let code = error.code;
        let response = Response {
            id: Some(id),
            outcome: Err(error),
        };
        Self {
            message: response.encode(),
            error: Some(code),
        }
    }
}

/// Appends the result with what it lacks. One that is no object is nothing we could add to.
fn complete_into(
    result: &RawValue,
    cacheable: bool,
    server_info: Option<&RawValue>,
    out: &mut Vec<u8>,
) {
    let text = result.get();
    let known: Option<Known<'_>> = serde_json::from_str(text).ok();
    let (Some(known), Some(body)) = (known, text.strip_suffix('}')) else {
        out.extend_from_slice(text.as_bytes());
        return;
    };
    let mut members = Joined {
        empty: body.trim_end() == "{",
        out,
    };
    let meta = known.meta.filter(|meta| meta.get().starts_with('{'));
    match (server_info, meta) {
        (Some(server_info), Some(meta)) => {
            // Raw values are slices of the text they were read from.
            let start = meta.get().as_ptr() as usize - text.as_ptr() as usize;
            let end = start + meta.get().len();
            members.out.extend_from_slice(&body.as_bytes()[..start]);
            identify_into(meta, server_info, members.out);
            members.out.extend_from_slice(&body.as_bytes()[end..]);
        }
        _ => members.out.extend_from_slice(body.as_bytes()),
    }
    if known.result_type.is_none() {
        members.begin("resultType");
        encode_string(result_type::COMPLETE, members.out);
    }
    if cacheable && known.ttl.is_none() {
        // Nothing is known about how long it holds, so it may not be used again.
        members.begin("ttlMs");
        members.out.push(b'0');
    }
    if cacheable && known.cache_scope.is_none() {
        members.begin("cacheScope");
        encode_string("private", members.out);
    }
    if let (Some(server_info), None) = (server_info, known.meta) {
        members.begin("_meta");
        members.out.push(b'{');
        encode_string(meta::SERVER_INFO, members.out);
        members.out.push(b':');
        members.out.extend_from_slice(server_info.get().as_bytes());
        members.out.push(b'}');
    }
    members.out.push(b'}');
}

/// Appends a `_meta` that says which server answered, whether or not it did before.
fn identify_into(meta: &RawValue, server_info: &RawValue, out: &mut Vec<u8>) {
    let known: Option<KnownMeta<'_>> = serde_json::from_str(meta.get()).ok();
    let lacks_it = known.is_some_and(|known| known.server_info.is_none());
    let Some(body) = meta.get().strip_suffix('}').filter(|_| lacks_it) else {
        out.extend_from_slice(meta.get().as_bytes());
        return;
    };
    out.extend_from_slice(body.as_bytes());
    let mut members = Joined {
        empty: body.trim_end() == "{",
        out,
    };
    members.begin(meta::SERVER_INFO);
    members.out.extend_from_slice(server_info.get().as_bytes());
    members.out.push(b'}');
}

/// Members that are added to an object, with commas where they belong.
struct Joined<'a> {
    empty: bool,
    out: &'a mut Vec<u8>,
}

impl Joined<'_> {
    fn begin(&mut self, name: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        encode_string(name, self.out);
        self.out.push(b':');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn complete(result: &str, cacheable: bool) -> String {
        let mut out = Vec::new();
        let info = raw(r#"{"name":"s"}"#);
        complete_into(&raw(result), cacheable, Some(&info), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_is_missing_is_added() {
        let info = r#""io.modelcontextprotocol/serverInfo":{"name":"s"}"#;
        let table = [
            (
                "{}",
                false,
                format!(r#"{{"resultType":"complete","_meta":{{{info}}}}}"#),
            ),
            (
                r#"{"a": 1.0 }"#,
                true,
                format!(
                    r#"{{"a": 1.0 ,"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{{{info}}}}}"#
                ),
            ),
            (
                r#"{"_meta":{"x":1},"ttlMs":9,"cacheScope":"public","resultType":"task"}"#,
                true,
                format!(
                    r#"{{"_meta":{{"x":1,{info}}},"ttlMs":9,"cacheScope":"public","resultType":"task"}}"#
                ),
            ),
            (
                r#"{"_meta":{},"resultType":"complete"}"#,
                false,
                format!(r#"{{"_meta":{{{info}}},"resultType":"complete"}}"#),
            ),
            (
                r#"{"_meta":null,"resultType":"complete"}"#,
                false,
                r#"{"_meta":null,"resultType":"complete"}"#.to_owned(),
            ),
            ("[1]", true, "[1]".to_owned()),
        ];
        for (result, cacheable, expected) in table {
            assert_eq!(complete(result, cacheable), expected);
        }
        let known = r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"t"}},"resultType":"complete"}"#;
        assert_eq!(complete(known, false), known);
    }

    #[test]
    fn a_resource_that_is_not_there_is_an_invalid_parameter() {
        let request = Request {
            id: RequestId::from(3),
            method: "resources/read".to_owned(),
            params: Some(raw(r#"{"uri":"test://x"}"#)),
        };
        let error = ErrorObject::new(codes::RESOURCE_NOT_FOUND, "Resource not found");
        let answer = Question::of(&request).answer(Err(error), None);
        assert_eq!(answer.error, Some(-32602));
        let answer: Value = serde_json::from_slice(&answer.message).unwrap();
        assert_eq!(answer["error"]["data"]["uri"], "test://x");
        assert_eq!(answer["id"], 3);
        let call = Request {
            method: "tools/call".to_owned(),
            ..request
        };
        let error = ErrorObject::new(codes::RESOURCE_NOT_FOUND, "No such file");
        let answer = Question::of(&call).answer(Err(error), None);
        assert_eq!(answer.error, Some(-32602));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(
                    prop_oneof![".*", Just("_meta".to_owned()), Just("ttlMs".to_owned())],
                    inner,
                    0..5
                )
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whatever a service answers stays what it is, and is complete afterwards.
        #[test]
        fn completing_adds_and_never_takes(result in json(), cacheable: bool) {
            let completed: Value =
                serde_json::from_str(&complete(&result.to_string(), cacheable)).unwrap();
            let Value::Object(before) = &result else {
                prop_assert_eq!(completed, result);
                return Ok(());
            };
            for (name, value) in before {
                if name != "_meta" || !value.is_object() {
                    prop_assert_eq!(&completed[name], value);
                }
            }
            prop_assert!(completed.get("resultType").is_some());
            prop_assert!(!cacheable || completed.get("ttlMs").is_some());
            prop_assert!(!cacheable || completed.get("cacheScope").is_some());
        }
    }
}
