//! The messages in one frame. Of a batch, a message that cannot be read spoils only itself.

use serde_json::value::RawValue;

use crate::salvage::answered_call;
use crate::{Message, ParseError};

/// A message that could not be read.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) error: ParseError,
    /// The call whose answer it was, where that much could be made out.
    pub(super) answered: Option<u64>,
}

/// Hands over the messages of a frame one by one.
pub(super) fn each_message(frame: &[u8], mut take: impl FnMut(Result<Message, Broken>)) {
    if !frame.trim_ascii_start().starts_with(b"[") {
        return take(read(frame));
    }
    match serde_json::from_slice::<Vec<&RawValue>>(frame) {
        Ok(batch) => {
            for message in batch {
                take(read(message.get().as_bytes()));
            }
        }
        Err(error) => take(Err(Broken {
            error: ParseError::Json(error),
            answered: None,
        })),
    }
}

fn read(text: &[u8]) -> Result<Message, Broken> {
    Message::parse(text).map_err(|error| Broken {
        error,
        answered: answered_call(text, text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broken_message_does_not_spoil_the_batch() {
        let batch = br#" [{"jsonrpc":"2.0","id":1,"result":{}},
            {"jsonrpc":"2.0","id":2,"result":{},"error":{}},
            {"jsonrpc":"2.0","method":"m"}, 7]"#;
        let mut seen = Vec::new();
        each_message(batch, |message| {
            seen.push(match message {
                Ok(Message::Response(_)) => "response".to_owned(),
                Ok(_) => "other".to_owned(),
                Err(broken) => format!("broken {:?}", broken.answered),
            });
        });
        assert_eq!(seen, ["response", "broken Some(2)", "other", "broken None"]);
    }
}
