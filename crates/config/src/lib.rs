//! The config file: model, load, watch, save, secret references.
//!
//! Nothing here reads the environment or starts anything: flags, variables and the home directory
//! are handed in, and a [`Config`] comes out.

mod credentials;
mod diff;
mod duration;
mod error;
mod fault;
mod json;
mod limits;
mod load;
mod model;
mod overrides;
mod resolve;
mod save;
mod schema;
mod secret;
mod secret_option;
mod server;
mod settings;
mod show;
mod single_process;
mod starter;
mod template;
mod url;
mod warning;
mod watch;
mod what_if;

pub use diff::{ConfigChange, RestartOnly, ServerChange};
pub use duration::DurationError;
pub use error::LoadError;
pub use fault::{Fault, Problem};
pub use json::{JsonPath, Kind, Position};
pub use limits::{Limits, Time};
pub use load::{Loaded, ParsedServer, load, parse, parse_server};
pub use model::{
    ActivityConfig, Config, EndpointsConfig, Payloads, RetrieveToolsConfig, SHORTEST_API_KEY,
};
pub use overrides::ToolOverrides;
pub use resolve::{Place, ResolveError, ResolvedTransport};
pub use save::{Document, SaveError, write_new};
pub use schema::json_schema;
pub use secret::Secret;
pub use secret_option::{is_secret_name, is_secret_option};
pub use server::{HttpProtocol, ServerConfig, Sharing, Transport};
pub use settings::{CommandLine, LocateError, Settings};
pub use starter::starter;
pub use template::{MissingVariable, SecretTemplate, Template, TemplateError};
pub use url::UrlError;
pub use warning::{Warning, WarningKind};
pub use watch::{ConfigWatcher, ReloadReport};
pub use what_if::WhatIfError;
