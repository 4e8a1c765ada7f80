//! The fixture as a program that is spoken to over stdin and stdout.

use std::sync::Arc;

use mcp::server::{LineOptions, serve_lines};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::eras::Eras;
use super::fixture::ConformanceServer;

/// What may wait in each direction.
const BUFFER: usize = 1 << 20;

/// Serves whoever is at the other end of stdin and stdout until it hangs up.
pub async fn serve(eras: Eras) -> anyhow::Result<()> {
    let input = BufReader::new(tokio::io::stdin());
    serve_pipes(eras, Arc::default(), input, tokio::io::stdout()).await
}

/// What is of another era is answered before it reaches the server.
pub(super) async fn serve_pipes<R, W>(
    eras: Eras,
    service: Arc<ConformanceServer>,
    input: R,
    output: W,
) -> anyhow::Result<()>
where
    R: AsyncBufRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (mut to_server, reading) = tokio::io::duplex(BUFFER);
    let (writing, from_server) = tokio::io::duplex(BUFFER);
    let output = Arc::new(Mutex::new(output));
    let answers = Arc::clone(&output);
    let copying = tokio::spawn(async move {
        let mut lines = BufReader::new(from_server).lines();
        while let Some(line) = lines.next_line().await? {
            write(&answers, &line).await?;
        }
        anyhow::Ok(())
    });
    let serving = tokio::spawn(serve_lines(
        service,
        reading,
        writing,
        LineOptions::default(),
    ));
    let mut lines = input.lines();
    while let Some(line) = lines.next_line().await? {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(error) = eras.refusal(&message, None) {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            write(&output, &answer.to_string()).await?;
        } else {
            to_server.write_all(format!("{line}\n").as_bytes()).await?;
        }
    }
    drop(to_server);
    serving.await??;
    copying.await?
}

async fn write<W: AsyncWrite + Unpin>(output: &Mutex<W>, line: &str) -> anyhow::Result<()> {
    let mut output = output.lock().await;
    output.write_all(format!("{line}\n").as_bytes()).await?;
    output.flush().await?;
    Ok(())
}
