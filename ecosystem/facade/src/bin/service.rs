//! A service as it is written for tokio: axum with a WebSocket, a pool of sqlx, and reqwest.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/facade/Cargo.toml --bin service -- 127.0.0.1:8080 squares.db
//! curl -X POST http://127.0.0.1:8080/squares/12
//! curl 'http://127.0.0.1:8080/fetch?url=http://127.0.0.1:8080/squares'
//! curl http://127.0.0.1:8080/threads
//! ```
use axum::{
    Router,
    extract::{
        Path, Query, State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};
use std::{collections::HashMap, env, error::Error, time::Duration};
use tokio::{fs, net::TcpListener, signal, time};

/// An error of a handler: its text is the body of the response.
type Failed = (StatusCode, String);

#[derive(Clone)]
struct App {
    pool: SqlitePool,
    client: reqwest::Client,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".into());
    let file = arguments.next().unwrap_or_else(|| "squares.db".into());

    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_secs(60));
    let pool = SqlitePoolOptions::new()
        .max_connections(4)
        .connect_with(options)
        .await?;
    sqlx::query("create table if not exists squares (n integer primary key, square integer)")
        .execute(&pool)
        .await?;
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(10))
        .build()?;

    let app = Router::new()
        .route("/squares/{n}", post(insert))
        .route("/squares", get(sum))
        .route("/fetch", get(fetch))
        .route("/slow", get(slow))
        .route(
            "/echo",
            get(async |upgrade: WebSocketUpgrade| upgrade.on_upgrade(echo)),
        )
        .route("/threads", get(threads))
        .with_state(App {
            pool: pool.clone(),
            client,
        });
    let listener = TcpListener::bind(address).await?;
    println!("listens on {}", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(async {
            signal::ctrl_c().await.expect("the signal is listened to")
        })
        .await?;
    pool.close().await;
    println!("closed");
    Ok(())
}

fn failed(error: impl Error) -> Failed {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
}

async fn insert(State(app): State<App>, Path(n): Path<i64>) -> Result<String, Failed> {
    sqlx::query("insert or replace into squares values (?, ?)")
        .bind(n)
        .bind(n * n)
        .execute(&app.pool)
        .await
        .map_err(failed)?;
    Ok(format!("{}\n", n * n))
}

async fn sum(State(app): State<App>) -> Result<String, Failed> {
    let sum: (i64,) = sqlx::query_as("select coalesce(sum(square), 0) from squares")
        .fetch_one(&app.pool)
        .await
        .map_err(failed)?;
    Ok(format!("{}\n", sum.0))
}

/// GETs the URL in the query, and returns the body.
async fn fetch(
    State(app): State<App>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<String, Failed> {
    let url = query
        .get("url")
        .ok_or((StatusCode::BAD_REQUEST, "which url?\n".to_owned()))?;
    let response = app.client.get(url).send().await.map_err(failed)?;
    response.text().await.map_err(failed)
}

/// Answers after a while.
async fn slow() -> &'static str {
    time::sleep(Duration::from_millis(500)).await;
    "slow\n"
}

/// Sends each text or binary message back.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if let Message::Text(_) | Message::Binary(_) = message
            && socket.send(message).await.is_err()
        {
            return;
        }
    }
}

/// Lists the names of the process's threads: they show which runtime runs.
async fn threads() -> Result<Response<String>, Failed> {
    let mut names = String::new();
    let mut threads = fs::read_dir("/proc/self/task").await.map_err(failed)?;
    while let Some(thread) = threads.next_entry().await.map_err(failed)? {
        // A thread may have ended meanwhile.
        names += &fs::read_to_string(thread.path().join("comm"))
            .await
            .unwrap_or_default();
    }
    Ok(Response::new(names))
}
