//! A gRPC service of tonic with its own server, time limits and streams in both directions.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/facade/Cargo.toml --bin greeter -- serve 127.0.0.1:50051
//! cargo run --manifest-path ecosystem/facade/Cargo.toml --bin greeter -- call http://127.0.0.1:50051
//! ```
//!
//! prost derives the messages, and the service is written by hand. `protoc` and `tonic-prost-build`
//! would generate both from a `.proto` file.
use futures_util::{StreamExt, stream, stream::BoxStream};
use std::{
    convert::Infallible,
    env,
    error::Error,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{signal, time};
use tonic::{
    Code, Request, Response, Status, Streaming,
    body::Body,
    client::Grpc,
    codegen::http,
    server::NamedService,
    transport::{Channel, Endpoint, Server},
};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

const HELLO: &str = "/greeter.Greeter/Hello";
const CHAT: &str = "/greeter.Greeter/Chat";

#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", address] => serve(address).await,
        ["call", server] => call(server).await,
        _ => Err("greeter serve ADDRESS, or greeter call http://ADDRESS".into()),
    }
}

async fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    println!("listens on {address}");
    Server::builder()
        .timeout(Duration::from_secs(1))
        .add_service(Greeter)
        .serve_with_shutdown(address.parse()?, async {
            signal::ctrl_c().await.expect("the signal is listened to");
        })
        .await?;
    Ok(())
}

async fn call(server: &str) -> Result<(), Box<dyn Error>> {
    let channel = Endpoint::from_shared(server.to_owned())?
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(5))
        .connect()
        .await?;
    let mut client = Grpc::new(channel);
    println!(
        "{}",
        hello(&mut client, Request::new("you".into())).await?.text
    );

    // The deadline is earlier than the answer, on the client's side and on the server's.
    let mut hasty = Request::new("sleeper".into());
    hasty.set_timeout(Duration::from_millis(50));
    let late = hello(&mut client, hasty)
        .await
        .expect_err("the answer takes longer");
    println!("with a deadline: {:?}", late.code());
    let late = hello(&mut client, Request::new("sleeper".into())).await;
    println!(
        "the server's limit: {:?}",
        late.map_err(|late| late.code()).err()
    );

    client.ready().await?;
    let words = stream::iter(["one", "two", "three"]).then(async |word| {
        time::sleep(Duration::from_millis(1)).await;
        Text::from(word)
    });
    let codec = ProstCodec::<Text, Text>::default();
    let chat = client.streaming(Request::new(words), CHAT.parse()?, codec);
    let mut answers = chat.await?.into_inner();
    while let Some(answer) = answers.message().await? {
        println!("{}", answer.text);
    }
    Ok(())
}

async fn hello(client: &mut Grpc<Channel>, name: Request<Text>) -> Result<Text, Status> {
    let ready = client.ready().await;
    ready.map_err(|error| Status::new(Code::Unavailable, error.to_string()))?;
    let codec = ProstCodec::<Text, Text>::default();
    let answer = client.unary(name, http::uri::PathAndQuery::from_static(HELLO), codec);
    Ok(answer.await?.into_inner())
}

#[derive(Clone)]
struct Greeter;

impl NamedService for Greeter {
    const NAME: &'static str = "greeter.Greeter";
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
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Text, Text>::default());
            Ok(match request.uri().path() {
                HELLO => grpc.unary(service_fn(greet), request).await,
                CHAT => grpc.streaming(service_fn(chat), request).await,
                _ => Status::unimplemented("there is no such method").into_http(),
            })
        })
    }
}

async fn greet(request: Request<Text>) -> Result<Response<Text>, Status> {
    let name = request.into_inner().text;
    if name == "sleeper" {
        time::sleep(Duration::from_secs(60)).await;
    }
    Ok(Response::new(Text {
        text: format!("hello, {name}"),
    }))
}

/// Answers each word as it comes.
async fn chat(
    request: Request<Streaming<Text>>,
) -> Result<Response<BoxStream<'static, Result<Text, Status>>>, Status> {
    let answers = request.into_inner().map(|word| {
        let text = word?.text;
        Ok(Text {
            text: format!("{text}, {text}"),
        })
    });
    Ok(Response::new(answers.boxed()))
}
