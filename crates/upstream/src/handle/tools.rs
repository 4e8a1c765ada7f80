//! The tools as one client sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::ToolDefinition;
use mcp::client::{Era, RequestOptions};

use super::choice::Chosen;
use super::{CallError, Upstream, Variants};
use crate::client::OnBehalf;
use crate::failure::{ListingError, chain};
use crate::listing::list_tools;

/// Listings that unknown names ask for are at least this far apart.
const LOOKING_PACE: Duration = Duration::from_secs(1);

/// How long the actor may take to list the tools again for a call that waits.
const LOOKING: Duration = Duration::from_secs(10);

impl Upstream {
    /// Definitions that were listed on other connections than the main one, and that it does not have.
    pub fn variants(&self) -> Variants {
        self.seen.get()
    }

    /// Whether a session has a process of its own, which tells it of changes itself.
    pub fn has_process(&self, session: &str) -> bool {
        self.pool.has_process(session)
    }

    /// The tools as the server lists them to this client, or none where it gets those of the main
    /// connection. What is new among them is in [`Upstream::variants`] when this returns.
    pub async fn tools_for(
        &self,
        client: &OnBehalf,
    ) -> Result<Option<Vec<Arc<ToolDefinition>>>, CallError> {
        let began = Instant::now();
        let sent_by = began + self.server.timeout * 3 / 4;
        let chosen = self.choose(Some(client), began, sent_by).await?;
        let connection = chosen.connection();
        if matches!(chosen, Chosen::Shared(_)) && connection.client.era() == Era::Legacy {
            return Ok(None);
        }
        let options = RequestOptions {
            timeout: Some(self.server.timeout),
            capabilities: Some(client.capabilities.clone()),
            ..RequestOptions::default()
        };
        let listing = list_tools(&connection.client, self.name(), options, &self.limits);
        let tools = match listing.await {
            Ok(tools) => tools,
            Err(ListingError::Request(error)) => {
                return Err(self.failed(error, Some(&connection)).await);
            }
            Err(error) => {
                return Err(CallError::Listing {
                    server: self.name().clone(),
                    reason: chain(&error),
                });
            }
        };
        self.observe(&tools);
        Ok(Some(tools))
    }

    /// Lists the tools again because of a name that is not known, at most once a second.
    pub async fn look_again(&self, client: Option<&OnBehalf>) {
        let mut looked = self.looked.lock().await;
        if looked.is_some_and(|looked| looked.elapsed() < LOOKING_PACE) {
            return;
        }
        let listed = match client {
            Some(client) => self.tools_for(client).await,
            None => Ok(None),
        };
        match listed {
            Ok(None) => self.relist().await,
            Ok(Some(_)) => {}
            Err(error) => {
                tracing::debug!(server = %self.name(), %error, "the tools were not listed again");
            }
        }
        *looked = Some(Instant::now());
    }

    /// Has the actor list the tools of the main connection again, and waits for it.
    async fn relist(&self) {
        let mut status = self.status.clone();
        let before = status.borrow_and_update().listings;
        if !self.status().state.is_connected() {
            return;
        }
        self.orders.relist.notify_one();
        let done = status.wait_for(|status| status.listings > before);
        let _ = tokio::time::timeout(LOOKING, done).await;
    }

    fn observe(&self, tools: &[Arc<ToolDefinition>]) {
        let main = self.status().tools.clone();
        let most = self.limits.tools_per_server;
        if self.seen.add(tools, main.all(), most) {
            self.changed.send_modify(|count| *count += 1);
        }
    }
}
