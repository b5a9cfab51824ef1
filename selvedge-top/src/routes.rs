//! Answers the requests.
use crate::{
    access::Refusal, body::Answered, cycles, events, files, prometheus, site::Site, tasks,
};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION},
    header::{RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE},
};
use selvedge::{
    TaskDump,
    sync::{OwnedSemaphorePermit, mpsc},
};
use std::{convert::Infallible, fmt::Write, sync::Arc};

type Answer = Response<Answered>;

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// The bytes of a dump that are sent at a time, or a few more.
const PIECE: usize = 16 << 10;

/// The rights of our page: its own files and requests, and nothing else.
const OWN_FILES: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; \
                         connect-src 'self'; base-uri 'none'; form-action 'none'; \
                         frame-ancestors 'none'";

/// The rights of the page of a recording: its own scripts, in an origin that is not ours.
#[cfg(feature = "recorder")]
const SANDBOX: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
                       style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

/// The headers of each answer.
const HEADERS: [(&str, &str); 6] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

const SECURITY_POLICY: HeaderName = HeaderName::from_static("content-security-policy");

/// Answers a request.
pub(crate) async fn answer(
    site: Arc<Site>,
    request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    let mut answer = match refused(&site, &request) {
        Some(answer) => answer,
        None => route(&site, &request).await,
    };
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    let policy = headers.entry(SECURITY_POLICY);
    policy.or_insert(HeaderValue::from_static(OWN_FILES));
    Ok(answer)
}

/// Returns the answer to a request that is refused, or that only signs in.
fn refused(site: &Site, request: &Request<Incoming>) -> Option<Answer> {
    let (uri, headers) = (request.uri(), request.headers());
    match site.access().sign_in(uri, headers) {
        Some(Ok(cookie)) => {
            let mut answer = status(StatusCode::SEE_OTHER, "the token is in a cookie now\n");
            set(&mut answer, LOCATION, "/");
            set(&mut answer, SET_COOKIE, &cookie);
            return Some(answer);
        }
        Some(Err(refusal)) => return Some(refuse(refusal)),
        None => {}
    }
    let checked = site.access().check(request.method(), uri, headers);
    checked.err().map(refuse)
}

fn refuse(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::NoHost => status(StatusCode::BAD_REQUEST, "the request has not one host\n"),
        Refusal::ForeignHost => {
            let text = "this page is not served under that name: see `Builder::host`\n";
            status(StatusCode::MISDIRECTED_REQUEST, text)
        }
        Refusal::ForeignSite => status(StatusCode::FORBIDDEN, "a request of another site\n"),
        Refusal::NoToken => {
            let text = "the token is missing or wrong: open /?token=…, or send the header\n\
                        `Authorization: Bearer …`\n";
            let mut answer = status(StatusCode::UNAUTHORIZED, text);
            set(&mut answer, WWW_AUTHENTICATE, "Bearer");
            answer
        }
    }
}

/// A route for `GET`, or for `POST`.
async fn route(site: &Arc<Site>, request: &Request<Incoming>) -> Answer {
    let path = request.uri().path();
    let posts = ["/waits", "/recording/start", "/recording/stop"];
    let allowed = if posts.contains(&path) {
        "POST"
    } else {
        "GET, HEAD"
    };
    let method = request.method();
    if *method == Method::POST && allowed == "POST" {
        return post(site, path).await;
    }
    let is_get = *method == Method::GET || *method == Method::HEAD;
    if !is_get || allowed == "POST" {
        let mut answer = status(StatusCode::METHOD_NOT_ALLOWED, "not with this method\n");
        set(&mut answer, ALLOW, allowed);
        return answer;
    }
    // The answer to HEAD has no length where the length is known only with the body.
    let is_head = *method == Method::HEAD;
    let query = request.uri().query().unwrap_or_default();
    match path {
        "/" => whole(HTML, files::PAGE),
        "/top.css" => whole("text/css", files::STYLE),
        "/top.js" => whole("text/javascript", files::SCRIPT),
        "/events" => events_of(site, is_head),
        "/tasks" if is_head => whole(JSON, ""),
        "/tasks" => tasks_of(site, query),
        "/metrics" if is_head => whole(prometheus::TYPE, ""),
        "/metrics" => whole(prometheus::TYPE, prometheus::text(site)),
        "/dump" if is_head => whole(TEXT, ""),
        "/dump" => dump(site).await,
        #[cfg(feature = "recorder")]
        "/recording" | "/recording/page" if is_head => whole(TEXT, ""),
        #[cfg(feature = "recorder")]
        "/recording" => recording(site, false).await,
        #[cfg(feature = "recorder")]
        "/recording/page" => recording(site, true).await,
        _ => match (path.strip_prefix("/task/"), path.strip_prefix("/stall/")) {
            (Some(_), _) | (_, Some(_)) if is_head => whole(TEXT, ""),
            (Some(id), _) => stack_of_task(site, id).await,
            (_, Some(number)) => stack_of_stall(site, number).await,
            _ => status(StatusCode::NOT_FOUND, "no such page\n"),
        },
    }
}

async fn post(site: &Arc<Site>, path: &str) -> Answer {
    match path {
        "/waits" => {
            let read = |dump: Vec<TaskDump>| (tasks::Waits::of(&dump), cycles::json(&dump));
            match of_dump(site, read).await {
                Ok(((waits, cycles), _permit)) => {
                    let known = waits.count();
                    site.keep_waits(waits);
                    whole(JSON, format!("{{\"known\":{known},\"cycles\":{cycles}}}"))
                }
                Err(answer) => answer,
            }
        }
        #[cfg(feature = "recorder")]
        "/recording/start" | "/recording/stop" => {
            let tracer = site.handle().trace();
            match path {
                "/recording/start" => tracer.start(),
                _ => tracer.stop(),
            }
            site.forget_tick();
            whole(JSON, format!("{{\"recording\":{}}}", tracer.is_on()))
        }
        _ => status(
            StatusCode::NOT_FOUND,
            "built without the feature `recorder`\n",
        ),
    }
}

fn events_of(site: &Arc<Site>, is_head: bool) -> Answer {
    let events = "text/event-stream";
    if is_head {
        return whole(events, "");
    }
    match site.page() {
        Some(permit) => {
            let body = Answered::Pieces(events::start(site.clone(), permit));
            of_type(events, body)
        }
        None => status(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open\n"),
    }
}

fn tasks_of(site: &Arc<Site>, query: &str) -> Answer {
    match site.table() {
        Some((table, waits)) => {
            let wanted = tasks::Wanted::parse(query);
            whole(JSON, tasks::rows(&table, wanted, waits.as_deref()))
        }
        None => lists_no_tasks(),
    }
}

fn lists_no_tasks() -> Answer {
    let text = "the runtime does not list its tasks: build it with `list_tasks(true)`\n";
    status(StatusCode::NOT_FOUND, text)
}

/// Dumps all tasks, and reads the dump on another thread: it may be large. Both end also if the
/// client goes away; the permit is free after that.
async fn of_dump<T: Send + 'static>(
    site: &Arc<Site>,
    read: impl FnOnce(Vec<TaskDump>) -> T + Send + 'static,
) -> Result<(T, OwnedSemaphorePermit), Answer> {
    let Some(permit) = site.large() else {
        return Err(busy());
    };
    let site = site.clone();
    let dumped = selvedge::spawn(async move {
        let dump = site.handle().dump().await?;
        Some(selvedge::spawn_blocking(move || (read(dump), permit)).await)
    });
    match dumped.await {
        Ok(Some(Ok(read))) => Ok(read),
        Ok(None) => Err(lists_no_tasks()),
        Ok(Some(Err(_))) | Err(_) => Err(failed()),
    }
}

/// Answers with the dump of all tasks. Its text is made while it is sent, so that it is never in
/// memory as a whole.
async fn dump(site: &Arc<Site>) -> Answer {
    let (dump, permit) = match of_dump(site, |dump| dump).await {
        Ok(dumped) => dumped,
        Err(answer) => return answer,
    };
    let (to, pieces) = mpsc::channel(1);
    let write = move || {
        let mut text = String::new();
        for task in dump {
            let _ = writeln!(text, "{task}");
            // An error: the client is gone.
            if text.len() >= PIECE && to.blocking_send(std::mem::take(&mut text).into()).is_err() {
                break;
            }
        }
        let _ = to.blocking_send(text.into());
        drop(permit);
    };
    drop(selvedge::spawn_blocking(write));
    of_type(TEXT, Answered::Pieces(pieces))
}

/// Answers with the dump of a task, one line after another.
async fn stack_of_task(site: &Arc<Site>, id: &str) -> Answer {
    let Some(permit) = site.stack() else {
        return busy();
    };
    let gone = || {
        status(
            StatusCode::NOT_FOUND,
            "there is no such task: it has ended\n",
        )
    };
    let Some(id) = site.find(id) else {
        return gone();
    };
    let site = site.clone();
    let dump = selvedge::spawn(async move {
        let dumped = site.handle().dump_task(id).await;
        drop(permit);
        dumped
    });
    match dump.await {
        Ok(Some(dump)) => whole(TEXT, dump.to_string()),
        Ok(None) => gone(),
        Err(_) => failed(),
    }
}

/// Answers with the report of a stall, one line after another.
async fn stack_of_stall(site: &Arc<Site>, number: &str) -> Answer {
    let Some(permit) = site.stack() else {
        return busy();
    };
    let stalls = site.stalls().cloned().zip(number.parse().ok());
    let text = selvedge::spawn_blocking(move || {
        let text = stalls.and_then(|(stalls, number)| stalls.text(number));
        drop(permit);
        text
    });
    match text.await {
        Ok(Some(text)) => whole(TEXT, text),
        Ok(None) => status(StatusCode::NOT_FOUND, "that stall is not kept any more\n"),
        Err(_) => failed(),
    }
}

/// Answers with the recording: JSON to download, or a page that shows it.
#[cfg(feature = "recorder")]
async fn recording(site: &Arc<Site>, as_page: bool) -> Answer {
    let Some(permit) = site.large() else {
        return busy();
    };
    let tracer = site.handle().trace();
    let written = selvedge::spawn_blocking(move || {
        let (capture, mut bytes) = (tracer.capture(), Vec::new());
        let written = match as_page {
            true => capture.write_html(&mut bytes),
            false => capture.write_chrome(&mut bytes),
        };
        written.map(|()| (bytes, permit))
    });
    let Ok(Ok((bytes, permit))) = written.await else {
        return failed();
    };
    let body = large(bytes, permit);
    if as_page {
        let mut answer = of_type(HTML, body);
        set(&mut answer, SECURITY_POLICY, SANDBOX);
        return answer;
    }
    let mut answer = of_type(JSON, body);
    let name = "attachment; filename=\"selvedge-trace.json\"";
    set(&mut answer, hyper::header::CONTENT_DISPOSITION, name);
    answer
}

fn busy() -> Answer {
    let text = "other requests of this kind are under way\n";
    let mut answer = status(StatusCode::SERVICE_UNAVAILABLE, text);
    set(&mut answer, RETRY_AFTER, "1");
    answer
}

fn failed() -> Answer {
    status(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the page is being shut down\n",
    )
}

fn status(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = whole(TEXT, text);
    *answer.status_mut() = status;
    answer
}

fn whole(kind: &'static str, bytes: impl Into<Bytes>) -> Answer {
    let body = Answered::Whole {
        bytes: bytes.into(),
        _permit: None,
    };
    of_type(kind, body)
}

/// A body that keeps its permit until its last bytes wait for the client.
#[cfg(feature = "recorder")]
fn large(bytes: impl Into<Bytes>, permit: OwnedSemaphorePermit) -> Answered {
    Answered::Whole {
        bytes: bytes.into(),
        _permit: Some(permit),
    }
}

fn of_type(kind: &'static str, body: Answered) -> Answer {
    let mut answer = Response::new(body);
    set(&mut answer, CONTENT_TYPE, kind);
    answer
}

/// Sets a header. `value` is visible ASCII.
fn set(answer: &mut Answer, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("visible ASCII");
    answer.headers_mut().insert(name, value);
}
