//! Serves the files of a directory, until Ctrl-C.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin static_files -- DIR 127.0.0.1:8080
//! curl http://127.0.0.1:8080/
//! ```
//!
//! A file is read by [`selvedge::fs`], in pieces of 64 KiB, and only while hyper's write buffer
//! (about 400 KiB) has room. So a slow client of a large file costs about 512 KiB of memory:
//! hyper's write buffer, which the last piece may exceed, and the buffer of the file.
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;

use bytes::Bytes;
use futures_util::{AsyncReadExt, TryStreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Frame, Incoming},
    header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue},
    service::service_fn,
};
use selvedge::{
    Runtime,
    fs::{self, File},
    net::TcpListener,
};
use std::{
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

/// The most bytes of one read of a file.
const PIECE: usize = 64 * 1024;

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

const HELP: &str = "\
Serves the files of a directory. Ctrl-C ends it.

Usage: static_files DIR [ADDRESS]

DIR      the directory; no link leads out of it
ADDRESS  where it listens [127.0.0.1:8080]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 2)?;
        let mut arguments = arguments.into_iter();
        let directory = arguments.next();
        let directory = directory.ok_or_else(|| cli::Usage("which directory?".into()))?;
        let root = Path::new(&directory).canonicalize();
        let root = root.map_err(|error| format!("{directory}: {error}"))?;
        let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".into());
        Ok(run(root.into(), address)?)
    })
}

fn run(root: Arc<Path>, address: String) -> io::Result<()> {
    Runtime::new()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listens on {}", listener.local_addr()?);
        let service = service_fn(move |request| answer(root.clone(), request));
        selvedge_hyper::serve(listener, service)
            .connection_limit(1_000)
            .shutdown_on_ctrl_c()
            .await
    })
}

async fn answer(root: Arc<Path>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut refusal = status(StatusCode::METHOD_NOT_ALLOWED);
        let allowed = HeaderValue::from_static("GET, HEAD");
        refusal.headers_mut().insert(ALLOW, allowed);
        return Ok(refusal);
    }
    Ok(match open(&root, request.uri().path()).await {
        Ok((file, path, length)) => contents(file, &path, length),
        Err(error) => status(match error.kind() {
            io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
            io::ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
            io::ErrorKind::InvalidInput => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }),
    })
}

fn status(status: StatusCode) -> Answer {
    let text = Bytes::from(format!("{status}\n"));
    let body = Full::new(text).map_err(|never| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = status;
    answer
}

/// Opens the file that a URI's path names. Returns the file, its path and its length. No `..` and
/// no symbolic link leads out of the directory `root`.
async fn open(root: &Path, path: &str) -> io::Result<(File, PathBuf, u64)> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = decoded(path).filter(|name| !name.contains('\0'));
    let name = name.ok_or_else(wrong)?;
    let mut path = fs::canonicalize(root.join(name.trim_start_matches('/'))).await?;
    if !path.starts_with(root) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut metadata = fs::metadata(&path).await?;
    if metadata.is_dir() {
        path = fs::canonicalize(path.join("index.html")).await?;
        metadata = fs::metadata(&path).await?;
    }
    // `is_file` refuses a named pipe, whose opening would wait for a writer.
    if !path.starts_with(root) || !metadata.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut file = File::open(&path).await?;
    file.set_max_buf_size(PIECE);
    let length = file.metadata().await?.len();
    Ok((file, path, length))
}

/// Replaces each `%XX` by its byte. Returns `None` if the digits are wrong or the result is not
/// UTF-8.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || (rest.next()? as char).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn contents(file: File, path: &Path, length: u64) -> Answer {
    let pieces = stream::try_unfold((file, length), |(mut file, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; left.min(PIECE as u64) as usize];
        // This fails if the file has become shorter: the response's head has promised `length`.
        file.read_exact(&mut piece).await?;
        let left = left - piece.len() as u64;
        Ok(Some((Bytes::from(piece), (file, left))))
    });
    let body = StreamBody::new(pieces.map_ok(Frame::data));
    let mut answer = Response::new(body.boxed_unsync());
    let kind = match path.extension().and_then(|extension| extension.to_str()) {
        Some("css") => "text/css",
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt" | "md" | "rs" | "toml") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, length.into());
    answer
}
