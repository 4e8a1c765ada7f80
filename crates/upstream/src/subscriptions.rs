//! The resources that clients want to hear of. The server is asked once, however many they are,
//! and asked again when the connection is a new one.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp::RawValue;
use mcp::client::{RequestError, RequestOptions};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::Mutex;

use crate::connection::Connection;

/// By resource, how many clients want to hear of it. Held while the server is asked, so that what
/// it was told last is what is written here.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<BTreeMap<String, usize>>);

impl Subscriptions {
    pub(crate) async fn add(
        &self,
        uri: &str,
        connection: &Connection,
        timeout: Duration,
    ) -> Result<(), RequestError> {
        let mut wanted = self.0.lock().await;
        if !wanted.contains_key(uri) {
            tell(connection, "resources/subscribe", uri, timeout).await?;
        }
        *wanted.entry(uri.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Without a connection there is no server to tell, and nothing to take back later.
    pub(crate) async fn remove(
        &self,
        uri: &str,
        connection: Option<&Connection>,
        timeout: Duration,
    ) -> Result<(), RequestError> {
        let mut wanted = self.0.lock().await;
        let Some(count) = wanted.get_mut(uri) else {
            return Ok(());
        };
        *count -= 1;
        if *count > 0 {
            return Ok(());
        }
        wanted.remove(uri);
        match connection {
            Some(connection) => tell(connection, "resources/unsubscribe", uri, timeout).await,
            None => Ok(()),
        }
    }

    /// Tells a server that knows of none. All of them together have as long as one.
    pub(crate) async fn renew(&self, connection: &Connection) {
        const PATIENCE: Duration = Duration::from_secs(10);

        let telling = async {
            for uri in self.0.lock().await.keys() {
                let telling = tell(connection, "resources/subscribe", uri, PATIENCE);
                if let Err(error) = telling.await {
                    tracing::warn!(uri, ?error, "a subscription is lost");
                }
            }
        };
        if tokio::time::timeout(PATIENCE, telling).await.is_err() {
            tracing::warn!("subscriptions are lost: the server did not answer in time");
        }
    }
}

pub(crate) async fn tell(
    connection: &Connection,
    method: &str,
    uri: &str,
    timeout: Duration,
) -> Result<(), RequestError> {
    let params: Box<RawValue> =
        to_raw_value(&json!({ "uri": uri })).map_err(RequestError::Params)?;
    let options = RequestOptions {
        timeout: Some(timeout),
        ..RequestOptions::default()
    };
    connection
        .client
        .request(method, Some(params), options)
        .await
        .map(drop)
}
