//! The connections below HTTP: where redirects lead, and what becomes of a request whose connection
//! ends.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp::client::{
    Client, ConnectError, Era, HttpEndpoint, RedirectError, RequestError, TransportError,
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::support::{
    Server, basics, deadline, discover_result, discovered, eventually, hello, hello_in,
    json_answer, options, response,
};

fn redirect(status: u16, location: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("location", location)]).into_response()
}

async fn refusal(endpoint: HttpEndpoint) -> RedirectError {
    let refused = Client::connect_http(endpoint, hello(), ()).await;
    match refused.unwrap_err() {
        ConnectError::Initialize(RequestError::Redirect(error))
        | ConnectError::Discover(RequestError::Redirect(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_keeps_method_body_and_headers() {
    for status in [307, 308] {
        deadline(async {
            let server = Server::start(move |seen| match seen.path.as_str() {
                "/mcp" => redirect(status, "/moved/?a=1"),
                _ => basics(seen, None)
                    .unwrap_or_else(|| json_answer(&response(seen.id(), &seen.message["params"]))),
            })
            .await;
            let mut endpoint = server.endpoint();
            let secret = "Bearer token".parse().unwrap();
            endpoint.headers.insert("authorization", secret);
            let client = Client::connect_http(endpoint, hello(), ()).await.unwrap();
            let params = Some(crate::support::raw(r#"{"kept":true}"#));
            let result = client.request("echo", params, options()).await.unwrap();
            assert_eq!(result.get(), r#"{"kept":true}"#);

            let calls = server.seen();
            let calls: Vec<_> = calls.iter().filter(|seen| seen.is("echo")).collect();
            assert_eq!(calls[0].path, "/mcp");
            assert_eq!(calls[1].path, "/moved/");
            assert_eq!(calls.len(), 2);
            assert_eq!(calls[1].http_method, Method::POST);
            assert_eq!(calls[1].header("authorization"), Some("Bearer token"));
        })
        .await;
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_refused_and_names_both() {
    for status in [301, 302, 303, 307, 308] {
        deadline(async {
            let elsewhere = Server::start(|seen| basics(seen, None).unwrap()).await;
            let target = elsewhere.url.to_string();
            let server = Server::start(move |_| redirect(status, &target)).await;
            let error = refusal(server.endpoint()).await.to_string();
            for url in [&server.url, &elsewhere.url] {
                let origin = url.origin().ascii_serialization();
                assert!(error.contains(&origin), "{error}");
            }
            assert_eq!(elsewhere.seen().len(), 0);
        })
        .await;
    }
}

#[tokio::test]
async fn a_redirect_that_would_change_the_method_is_the_status_it_is() {
    deadline(async {
        let server = Server::start(|_| redirect(302, "/login")).await;
        let refused = Client::connect_http(server.endpoint(), hello(), ()).await;
        let status = refused.unwrap_err().http_status();
        assert_eq!(status, Some(StatusCode::FOUND));
        assert_eq!(server.count(|seen| seen.path == "/login"), 0);
    })
    .await;
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    deadline(async {
        let server = Server::start(|_| redirect(307, "/mcp")).await;
        let error = refusal(server.endpoint()).await;
        let RedirectError::TooMany { limit } = error else {
            panic!("{error:?}");
        };
        let first = server.seen()[0].message["method"].clone();
        assert_eq!(
            server.count(|seen| seen.message["method"] == first),
            limit + 1
        );
    })
    .await;
}

#[tokio::test]
async fn credentials_in_the_url_become_a_header_unless_there_is_one() {
    deadline(async {
        let server = Server::start(|seen| discovered(seen).unwrap()).await;
        let mut endpoint = server.endpoint();
        endpoint.url.set_username("me").unwrap();
        endpoint.url.set_password(Some("a:b@c")).unwrap();
        let modern = || hello_in(Some(Era::Modern));
        let connecting = Client::connect_http(endpoint.clone(), modern(), ());
        connecting.await.unwrap();
        let own = "Bearer token".parse().unwrap();
        endpoint.headers.insert("authorization", own);
        let connecting = Client::connect_http(endpoint, modern(), ());
        connecting.await.unwrap();

        let seen = server.seen();
        // The text "me:a:b@c" in base64.
        assert_eq!(seen[0].header("authorization"), Some("Basic bWU6YTpiQGM="));
        assert_eq!(seen[1].header("authorization"), Some("Bearer token"));
        let host = server.url.socket_addrs(|| None).unwrap()[0].to_string();
        assert_eq!(seen[0].header("host"), Some(host.as_str()));
    })
    .await;
}

// === connections that end ===

/// A modern server that ends connections: the idle ones when told to, and the one on which it is
/// sent `vanish` before it answers.
#[derive(Default)]
struct Unreliable {
    hang_up: Notify,
    hung_up: AtomicUsize,
    /// The connection that each request came on, and its method.
    seen: Mutex<Vec<(usize, String)>>,
}

impl Unreliable {
    async fn start() -> (Arc<Self>, Client) {
        let server = Arc::<Self>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let accepting = Arc::clone(&server);
        tokio::spawn(async move {
            let mut accepted = 0;
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&accepting).serve(stream, accepted));
                accepted += 1;
            }
        });
        let endpoint = HttpEndpoint::new(url.parse().unwrap());
        let connecting = Client::connect_http(endpoint, hello_in(Some(Era::Modern)), ());
        (server, connecting.await.unwrap())
    }

    async fn serve(self: Arc<Self>, stream: TcpStream, connection: usize) {
        let service = service_fn(|request| self.answer(request, connection));
        let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            _ = serving => {}
            () = self.hang_up.notified() => {}
        }
        self.hung_up.fetch_add(1, Ordering::Relaxed);
    }

    async fn answer(
        &self,
        request: Request<hyper::body::Incoming>,
        connection: usize,
    ) -> io::Result<Response> {
        let body: Bytes = request.into_body().collect().await.unwrap().to_bytes();
        let message: Value = serde_json::from_slice(&body).unwrap();
        let method = message["method"].as_str().unwrap().to_owned();
        self.seen.lock().unwrap().push((connection, method.clone()));
        match method.as_str() {
            "vanish" => Err(io::Error::other("the server is gone")),
            "server/discover" => Ok(json_answer(&response(&message["id"], &discover_result()))),
            _ => Ok(json_answer(&response(&message["id"], &json!({})))),
        }
    }

    fn seen(&self) -> Vec<(usize, String)> {
        self.seen.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn a_request_on_an_idle_connection_that_has_ended_goes_out_on_a_new_one() {
    deadline(async {
        let (server, client) = Unreliable::start().await;
        client.request("first", None, options()).await.unwrap();
        server.hang_up.notify_one();
        eventually("the server hung up", || {
            server.hung_up.load(Ordering::Relaxed) == 1
        })
        .await;
        client.request("second", None, options()).await.unwrap();
        let seen = [(0, "server/discover"), (0, "first"), (1, "second")];
        assert_eq!(
            server.seen(),
            seen.map(|(at, method)| (at, method.to_owned()))
        );
    })
    .await;
}

#[tokio::test]
async fn a_request_that_reached_the_server_is_not_sent_twice() {
    deadline(async {
        let (server, client) = Unreliable::start().await;
        let error = client.request("vanish", None, options()).await.unwrap_err();
        assert!(
            matches!(error, RequestError::Transport(TransportError::Broken(_))),
            "{error:?}"
        );
        client.request("next", None, options()).await.unwrap();
        let seen = [(0, "server/discover"), (0, "vanish"), (1, "next")];
        assert_eq!(
            server.seen(),
            seen.map(|(at, method)| (at, method.to_owned()))
        );
    })
    .await;
}
