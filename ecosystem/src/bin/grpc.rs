//! tonic over selvedge: `selvedge_hyper::serve` serves tonic's routes, and tonic's client connects
//! by `selvedge_hyper::Connector`.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin grpc -- serve 127.0.0.1:50051
//! cargo run --manifest-path ecosystem/Cargo.toml --bin grpc -- call http://127.0.0.1:50051 you
//! curl --http2-prior-knowledge http://127.0.0.1:50051/
//! ```
//!
//! prost derives the messages, and the service is written by hand. `protoc` and `tonic-prost-build`
//! would generate both from a `.proto` file.
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;
#[path = "../sources.rs"]
mod sources;

use axum::routing::get;
use futures_util::{Stream, StreamExt, stream};
use hyper_util::service::TowerToHyperService;
use selvedge::{Runtime, net::TcpListener, time};
use selvedge_hyper::{Connector, SelvedgeExecutor, serve};
use sources::with_sources;
use std::{
    convert::Infallible,
    error::Error,
    pin::Pin,
    process::ExitCode,
    task::{Context, Poll},
    time::Duration,
};
use tonic::{
    Request, Response, Status, body::Body, client, codegen::http, server::NamedService,
    service::Routes, transport::Endpoint,
};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

const HELLO: &str = "/selvedge.Greeter/Hello";
const COUNT: &str = "/selvedge.Greeter/Count";

#[derive(Clone, PartialEq, prost::Message)]
struct Name {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Greeting {
    #[prost(string, tag = "1")]
    text: String,
}

const HELP: &str = "\
Greets over gRPC: a server, which Ctrl-C ends, or a call of one.

Usage: grpc serve ADDRESS
       grpc call http://ADDRESS NAME";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 3)?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let runtime = Runtime::new()?;
        match arguments[..] {
            ["serve", address] => runtime.block_on(run(address)),
            ["call", server, name] => {
                let called = runtime.block_on(call(server, name));
                Ok(called.map_err(|error| with_sources(&*error))?)
            }
            _ => Err(cli::Usage("serve or call?".into()).into()),
        }
    })
}

async fn run(address: &str) -> Result<(), Box<dyn Error>> {
    let routes = Routes::new(Greeter).prepare().into_axum_router();
    let routes = routes.route("/", get(async || "selvedge.Greeter\n"));
    let listener = TcpListener::bind(address).await?;
    println!("listens on {}", listener.local_addr()?);
    serve(listener, TowerToHyperService::new(routes))
        .http2_only(|http2| http2.max_concurrent_streams(100))
        .shutdown_on_ctrl_c()
        .await?;
    Ok(())
}

async fn call(server: &str, name: &str) -> Result<(), Box<dyn Error>> {
    // The endpoint's own time limits need tokio's timer, so none of them is set. Selvedge's timer
    // limits the time of the connector and of the unary call. The streaming call has no limit.
    let channel = Endpoint::from_shared(server.to_owned())?
        .executor(SelvedgeExecutor)
        .connect_with_connector(Connector::new().connect_timeout(Duration::from_secs(5)))
        .await?;
    let mut client = client::Grpc::new(channel);
    let name = Name { name: name.into() };

    client.ready().await?;
    let codec = ProstCodec::<Name, Greeting>::default();
    let hello = client.unary(Request::new(name.clone()), HELLO.parse()?, codec);
    let hello = time::timeout(Duration::from_secs(60), hello).await??;
    println!("{}", hello.into_inner().text);

    client.ready().await?;
    let codec = ProstCodec::<Name, Greeting>::default();
    let counted = client.server_streaming(Request::new(name), COUNT.parse()?, codec);
    let mut counted = counted.await?.into_inner();
    while let Some(greeting) = counted.message().await? {
        println!("{}", greeting.text);
    }
    Ok(())
}

#[derive(Clone)]
struct Greeter;

impl NamedService for Greeter {
    const NAME: &'static str = "selvedge.Greeter";
}

impl Service<http::Request<Body>> for Greeter {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Greeting, Name>::default());
            Ok(match request.uri().path() {
                HELLO => grpc.unary(service_fn(hello), request).await,
                COUNT => grpc.server_streaming(service_fn(count), request).await,
                _ => Status::unimplemented("there is no such method").into_http(),
            })
        })
    }
}

async fn hello(request: Request<Name>) -> Result<Response<Greeting>, Status> {
    let text = format!("hello, {}", request.into_inner().name);
    Ok(Response::new(Greeting { text }))
}

type Greetings = Pin<Box<dyn Stream<Item = Result<Greeting, Status>> + Send>>;

async fn count(request: Request<Name>) -> Result<Response<Greetings>, Status> {
    let name = request.into_inner().name;
    let greetings = stream::iter(1..=3).then(move |n| {
        let text = format!("hello {n}, {name}");
        async move {
            time::sleep(Duration::from_millis(1)).await;
            Ok(Greeting { text })
        }
    });
    Ok(Response::new(greetings.boxed()))
}
