//! The AWS SDK's client of STS, over plain HTTP, against a stub that fails a few times.
use aws_sdk_sts::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region, retry::RetryConfig, timeout::TimeoutConfig},
    error::SdkError,
};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    routing::post,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{net::TcpListener, time::sleep};

/// How long an attempt may take where none is late.
const LIMIT: Duration = Duration::from_secs(600);

const ANSWER: &str = r#"<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <GetCallerIdentityResult>
    <Arn>arn:aws:iam::123456789012:user/ada</Arn>
    <UserId>AIDA</UserId>
    <Account>123456789012</Account>
  </GetCallerIdentityResult>
  <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
</GetCallerIdentityResponse>"#;

#[derive(Clone)]
struct Stub {
    requests: Arc<AtomicUsize>,
    /// How many requests fail before one gets its answer.
    failures: usize,
    delay: Duration,
}

async fn answer(
    State(stub): State<Stub>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, &'static str) {
    let earlier = stub.requests.fetch_add(1, Relaxed);
    sleep(stub.delay).await;
    let signed = headers[AUTHORIZATION].to_str().unwrap();
    if !signed.starts_with("AWS4-HMAC-SHA256 Credential=id/") {
        return (StatusCode::FORBIDDEN, "");
    }
    if !body.contains("Action=GetCallerIdentity") {
        return (StatusCode::BAD_REQUEST, "");
    }
    if earlier < stub.failures {
        return (StatusCode::INTERNAL_SERVER_ERROR, "");
    }
    (StatusCode::OK, ANSWER)
}

/// Starts a stub, and returns a client of it with up to three attempts, each no longer than
/// `limit`.
async fn start(failures: usize, delay: Duration, limit: Duration) -> (Client, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let stub = Stub {
        requests: requests.clone(),
        failures,
        delay,
    };
    let app = Router::new().route("/", post(answer)).with_state(stub);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, app).await.unwrap() });

    let retries = RetryConfig::standard()
        .with_max_attempts(3)
        .with_initial_backoff(Duration::from_millis(1));
    let timeouts = TimeoutConfig::builder();
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .endpoint_url(url)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(retries)
        .timeout_config(timeouts.operation_attempt_timeout(limit).build())
        .build();
    (Client::from_conf(config), requests)
}

#[tokio::test]
async fn client_repeats_failed_requests() {
    let (client, requests) = start(2, Duration::ZERO, LIMIT).await;
    let identity = client.get_caller_identity().send().await.unwrap();
    assert_eq!(identity.account(), Some("123456789012"));
    assert_eq!(identity.arn(), Some("arn:aws:iam::123456789012:user/ada"));
    assert_eq!(requests.load(Relaxed), 3);
}

#[tokio::test]
async fn client_returns_the_error_of_its_last_attempt() {
    let (client, requests) = start(3, Duration::ZERO, LIMIT).await;
    let error = client.get_caller_identity().send().await.unwrap_err();
    let response = error.raw_response().expect("the server answered");
    assert_eq!(response.status().as_u16(), 500);
    assert_eq!(requests.load(Relaxed), 3);
}

#[tokio::test]
async fn late_answers_end_as_a_timeout() {
    let (client, _) = start(0, LIMIT, Duration::from_millis(50)).await;
    let error = client.get_caller_identity().send().await.unwrap_err();
    assert!(matches!(error, SdkError::TimeoutError(_)), "{error:?}");
}
