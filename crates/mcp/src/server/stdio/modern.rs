//! The modern era over a pipe: responses share it, so `notifications/cancelled` names the request
//! that is no longer wanted.

use std::sync::Arc;

use super::lines::{Lines, response};
use crate::modern::methods;
use crate::server::exchange::Call;
use crate::server::modern::{Answer, Opened};
use crate::server::service::Service;
use crate::{ErrorObject, Request};

impl<S: Service> Lines<S> {
    pub(super) async fn modern_request(&mut self, request: Request) {
        let id = request.id.clone();
        let admitted = match Opened::read(request, self.session_bytes) {
            Ok(opened) => self.admit(opened),
            Err((_, error)) => Err(error),
        };
        match admitted {
            Ok((opened, call)) if opened.request.method == methods::LISTEN => {
                self.listen(opened, call);
            }
            Ok((opened, call)) => self.serve(opened, call).await,
            Err(error) => self.send(response(Some(id), Err(error)).encode()).await,
        }
    }

    fn admit(&self, opened: Opened) -> Result<(Opened, Call), ErrorObject> {
        opened.facts.check_version()?;
        let begun = self.exchange.begin(&opened.request.id);
        let call = begun.map_err(|refused| refused.to_error())?;
        Ok((opened, call))
    }

    async fn serve(&mut self, opened: Opened, call: Call) {
        let Some(permit) = self.permit() else {
            let id = opened.request.id.clone();
            drop(call);
            return self.refuse(id).await;
        };
        let (pipe, cancelled) = (self.pipe.clone(), call.cancelled.clone());
        let modern = Arc::clone(&self.modern);
        let serving = modern.serve(opened, self.extensions.clone(), self.route(), cancelled);
        self.calls.spawn(async move {
            let answer = serving.await;
            // The id is free before the client can know that it was answered.
            drop(call);
            if let Some(answer) = answer {
                // A client that is gone needs no answer.
                let _ = pipe.send(answer.message).await;
            }
            drop(permit);
        });
    }

    /// Takes no place among the calls, or enough of these would keep the client from being heard.
    fn listen(&mut self, opened: Opened, call: Call) {
        let id = opened.request.id.clone();
        let (pipe, route) = (self.pipe.clone(), self.route());
        let (modern, extensions) = (Arc::clone(&self.modern), self.extensions.clone());
        self.calls.spawn(async move {
            match modern.listen(opened, extensions, route).await {
                Ok(subscription) => tokio::select! {
                    () = call.cancelled.cancelled() => {}
                    () = subscription.ended().cancelled() => {}
                },
                Err(error) => {
                    let _ = pipe.send(Answer::refusal(id, error).message).await;
                }
            }
        });
    }
}
