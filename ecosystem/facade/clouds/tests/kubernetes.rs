//! kube's client, over plain HTTP, against a stub of an API server that keeps config maps.
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, patch},
};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, Error,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{net::TcpListener, sync::broadcast, time::timeout};

const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone)]
struct Stub {
    maps: Arc<Mutex<BTreeMap<String, Value>>>,
    events: broadcast::Sender<Value>,
}

impl Stub {
    /// Starts a server that has the maps `one` and `two`, and returns a client of it.
    async fn start() -> (Self, Api<ConfigMap>) {
        let maps = ["one", "two"].map(|name| (name.to_owned(), map(name)));
        let stub = Self {
            maps: Arc::new(Mutex::new(maps.into())),
            events: broadcast::Sender::new(16),
        };
        let maps = "/api/v1/namespaces/default/configmaps";
        let app = Router::new()
            .route(maps, get(list))
            .route(&format!("{maps}/{{name}}"), patch(change))
            .with_state(stub.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async { axum::serve(listener, app).await.unwrap() });
        let client = Client::try_from(Config::new(url.parse().unwrap())).unwrap();
        (stub, Api::namespaced(client, "default"))
    }
}

fn map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "resourceVersion": "1" },
        "data": { "color": "red" },
    })
}

/// Lists the maps; or, with `watch`, streams the changes, one JSON object a line.
async fn list(State(stub): State<Stub>, Query(query): Query<HashMap<String, String>>) -> Response {
    if query.get("watch").is_some_and(|watch| watch == "true") {
        let events = stream::unfold(stub.events.subscribe(), async |mut events| {
            let event = events.recv().await.ok()?;
            Some((Ok::<_, Infallible>(format!("{event}\n")), events))
        });
        return Body::from_stream(events).into_response();
    }
    let maps = stub.maps.lock().unwrap();
    Json(json!({
        "apiVersion": "v1",
        "kind": "ConfigMapList",
        "metadata": { "resourceVersion": "1" },
        "items": maps.values().collect::<Vec<_>>(),
    }))
    .into_response()
}

/// Merges the patch's data into the map, and sends the new map to the watchers.
async fn change(
    State(stub): State<Stub>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    assert_eq!(headers[CONTENT_TYPE], "application/merge-patch+json");
    let patch: Value = serde_json::from_slice(&body).unwrap();
    let mut maps = stub.maps.lock().unwrap();
    let Some(map) = maps.get_mut(&name) else {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "reason": "NotFound", "message": format!("there is no {name}"), "code": 404,
        });
        return (StatusCode::NOT_FOUND, Json(status)).into_response();
    };
    for (key, value) in patch["data"].as_object().unwrap() {
        map["data"][key] = value.clone();
    }
    map["metadata"]["resourceVersion"] = json!("2");
    // Nobody may watch.
    let _ = stub
        .events
        .send(json!({ "type": "MODIFIED", "object": map }));
    Json(map.clone()).into_response()
}

fn color(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["color"]
}

#[tokio::test]
async fn list_returns_the_servers_maps() {
    let (_, api) = Stub::start().await;
    let maps = api.list(&ListParams::default()).await.unwrap();
    let names = maps.items.iter().map(|map| map.metadata.name.as_deref());
    assert_eq!(names.collect::<Vec<_>>(), [Some("one"), Some("two")]);
    assert!(maps.items.iter().all(|map| color(map) == "red"));
}

#[tokio::test]
async fn watch_sees_each_patch_in_order() {
    let (stub, api) = Stub::start().await;
    let watch = api.watch(&WatchParams::default(), "1").await.unwrap();
    let mut events = watch.boxed();
    let colors = ["blue", "green", "white"];
    let patches = tokio::spawn(async move {
        // The server's handler subscribes when the first poll of the stream sends its request.
        while stub.events.receiver_count() == 0 {
            tokio::task::yield_now().await;
        }
        for color in colors {
            let patch = Patch::Merge(json!({ "data": { "color": color } }));
            let new = api.patch("two", &PatchParams::default(), &patch).await;
            assert_eq!(self::color(&new.unwrap()), color);
        }
        stub
    });
    for expected in colors {
        let event = timeout(LIMIT, events.try_next()).await.expect("an event");
        match event.unwrap() {
            Some(WatchEvent::Modified(map)) => {
                assert_eq!(map.metadata.name.as_deref(), Some("two"));
                assert_eq!(color(&map), expected);
            }
            event => panic!("{event:?}"),
        }
    }
    // The stream is dropped before its end: the server notices it, and drops its own half.
    drop(events);
    let stub = patches.await.unwrap();
    let gone = async {
        while stub.events.receiver_count() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, gone)
        .await
        .expect("the server's end is dropped");
}

#[tokio::test]
async fn patch_of_an_unknown_map_is_not_found() {
    let (_, api) = Stub::start().await;
    let patch = Patch::Merge(json!({ "data": {} }));
    let missing = api.patch("three", &PatchParams::default(), &patch).await;
    match missing.unwrap_err() {
        Error::Api(error) => assert_eq!(error.code, 404),
        error => panic!("{error}"),
    }
}
