//! An HTTP server that says hello, until Ctrl-C.
//!
//! ```sh
//! cargo run --release -p selvedge-hyper --features signal --example http_hello -- 127.0.0.1:8080
//! curl http://127.0.0.1:8080/
//! ```
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, service::service_fn};
use selvedge::{Runtime, net::TcpListener};
use std::{convert::Infallible, env, io, time::Duration};

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello\n"))))
}

fn main() -> io::Result<()> {
    let address = env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:8080".into());
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listens on {}", listener.local_addr()?);
        selvedge_hyper::serve(listener, service_fn(hello))
            .header_read_timeout(Duration::from_secs(10))
            .shutdown_on_ctrl_c()
            .await?;
        println!("all connections have ended");
        Ok(())
    })
}
