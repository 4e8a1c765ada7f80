//! Measurements, one file per subcommand.

mod activity;
mod daemon;
mod echo;
mod floor;
mod http;
mod overhead;
mod process;
mod retrieval;
mod search_speed;
mod session;
mod tokens;

use std::path::Path;

use anyhow::{Result, bail};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "usage: bench retrieval DIR\n       bench search-speed DIR\n       bench tokens [DIR]\n       bench overhead [--help]\n       bench activity [--records N]";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["retrieval", directory] => retrieval::run(Path::new(directory)),
        ["search-speed", directory] => search_speed::run(Path::new(directory)),
        ["tokens", options @ ..] => tokens::run(options),
        ["overhead", options @ ..] => overhead::run(options),
        ["activity", options @ ..] => activity::run(options),
        // The parts of `overhead` that are processes of their own.
        ["echo-stdio"] => echo::run_stdio(),
        ["echo-http"] => echo::run_http(),
        ["floor", web_url] => floor::run(web_url),
        _ => bail!(USAGE),
    }
}
