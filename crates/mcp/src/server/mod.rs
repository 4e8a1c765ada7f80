//! The side that answers. A [`Service`] says what requests mean; the transports in here carry them
//! to it and keep sessions, streams and cancellation right.

mod call;
mod exchange;
mod handshake;
mod http;
mod legacy_form;
mod modern;
mod outbound;
mod route;
mod service;
mod session_id;
mod stdio;

pub use http::{HttpOptions, HttpServer, UnreadBudget, discard};
pub use modern::{Parking, may_be_asked};
pub use outbound::{Gone, OfferError, Outbound, OutboundError};
pub use service::{ClientIdentity, Connection, InitializeResult, RequestContext, Service};
pub use session_id::{NoRandomness, SessionId};
pub use stdio::{LineOptions, LinesError, serve_lines};
