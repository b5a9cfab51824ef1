//! Serves a page by a service behind tower's middlewares, until Ctrl-C. None of the middlewares
//! needs tokio's runtime.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin tower -- 127.0.0.1:8080
//! curl http://127.0.0.1:8080/slow
//! ```
//!
//! - `tower::buffer`: `Buffer::new` spawns its worker on tokio. `Buffer::pair` returns the worker,
//!   which the program spawns on Selvedge.
//! - `tower::timeout` sleeps by tokio. `map_future` with our `timeout` does the same in one line.
//! - `tower::limit::ConcurrencyLimit` and `tower::load_shed` work as they are.
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::service::TowerToHyperService;
use selvedge::{
    Runtime,
    net::TcpListener,
    time::{Elapsed, timeout},
};
use std::{future::pending, io, process::ExitCode, time::Duration};
use tower::{BoxError, ServiceBuilder, buffer::Buffer, load_shed::error::Overloaded};

/// How long a request may take behind the buffer.
const LIMIT: Duration = Duration::from_millis(200);

type Answer = Response<Full<Bytes>>;

const HELP: &str = "\
Says hello, behind middlewares of tower. Ctrl-C ends it.

Usage: tower [ADDRESS]

ADDRESS  where it listens [127.0.0.1:8080]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let address = arguments.into_iter().next();
        Ok(run(address.unwrap_or_else(|| "127.0.0.1:8080".into()))?)
    })
}

fn run(address: String) -> io::Result<()> {
    Runtime::new()?.block_on(async {
        let service = ServiceBuilder::new()
            .map_future(|future| async { timeout(LIMIT, future).await? })
            .load_shed()
            .concurrency_limit(8)
            .service_fn(page);
        let (buffer, worker) = Buffer::pair(service, 64);
        selvedge::spawn_detached(worker);
        let service = ServiceBuilder::new().then(explain).service(buffer);

        let listener = TcpListener::bind(address).await?;
        println!("listens on {}", listener.local_addr()?);
        selvedge_hyper::serve(listener, TowerToHyperService::new(service))
            .shutdown_on_ctrl_c()
            .await
    })
}

async fn page(request: Request<Incoming>) -> Result<Answer, BoxError> {
    if request.uri().path() == "/slow" {
        pending::<()>().await;
    }
    Ok(Response::new(Full::new(Bytes::from_static(b"hello\n"))))
}

/// Turns the middlewares' errors into answers.
async fn explain(result: Result<Answer, BoxError>) -> Result<Answer, BoxError> {
    let error = match result {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    let mut answer = Response::new(Full::new(Bytes::from(format!("{error}\n"))));
    *answer.status_mut() = if error.is::<Elapsed>() {
        StatusCode::GATEWAY_TIMEOUT
    } else if error.is::<Overloaded>() {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    Ok(answer)
}
