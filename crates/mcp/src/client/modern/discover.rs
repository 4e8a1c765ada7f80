//! `server/discover`: asking a server what it is, and telling from its answer whether it is modern.

use super::channel::{Call, Channel, supported_versions};
use super::envelope::Additions;
use crate::client::era::{Refused, is_modern_error};
use crate::client::events::Origin;
use crate::client::in_flight::Deadline;
use crate::client::{ConnectError, Handshake, HttpFailure, RequestError};
use crate::modern::methods;
use crate::{ErrorObject, codes};

pub(super) async fn discover(channel: &Channel) -> Result<Handshake, Refused> {
    let call = Call {
        method: methods::DISCOVER,
        params: None,
        additions: Additions::default(),
        origin: Origin::Connection,
        deadline: Deadline::NONE,
        repeatable: true,
    };
    match channel.call(call, &[]).await {
        Ok(result) => Handshake::parse_discovery(result),
        Err(RequestError::Rpc(error)) => Err(refused(error)),
        Err(error @ (RequestError::Closed(_) | RequestError::NotSent(_))) => Err(Refused {
            error: ConnectError::Probe(error),
            legacy: false,
        }),
        Err(RequestError::Http(failure)) => Err(Refused {
            legacy: !concerns_us(&failure),
            error: ConnectError::Discover(RequestError::Http(failure)),
        }),
        Err(error) => Err(Refused {
            error: ConnectError::Discover(error),
            legacy: true,
        }),
    }
}

fn refused(error: ErrorObject) -> Refused {
    if error.code == codes::UNSUPPORTED_PROTOCOL_VERSION {
        return Refused::versions(&supported_versions(&error));
    }
    Refused {
        legacy: !is_modern_error(&error),
        error: ConnectError::Discover(RequestError::Rpc(error)),
    }
}

/// Whether the refusal is about who asks or how often, not about what was asked.
fn concerns_us(failure: &HttpFailure) -> bool {
    matches!(failure.status.as_u16(), 401 | 403 | 407 | 429)
}
