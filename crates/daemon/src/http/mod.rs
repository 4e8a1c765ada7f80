//! Everything that arrives by HTTP: who may come in, where it goes, and on what it listens.

mod auth;
mod connections;
mod dispatch;
mod guard;
mod guesses;
mod holder;
mod listen;
mod router;
mod seldom;
mod serve;
mod wire;

pub use auth::ApiKeyError;
pub(crate) use auth::{ApiKey, Principal, api_key_file};
pub use holder::{Holder, held_by};
pub use listen::ListenError;
pub(crate) use listen::{Listeners, Server};
pub use router::local_router;
pub(crate) use router::{AppState, Routes, router};
