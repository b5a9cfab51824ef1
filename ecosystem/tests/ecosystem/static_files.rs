//! `static_files`: what it serves, and what it does not.
use crate::{
    http::{get, request},
    program::{Server, expect_curl},
};
use std::{env, fs, os::unix::fs::symlink, path::PathBuf, process};

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = env::temp_dir().join(format!("selvedge-static-{}", process::id()));
        fs::create_dir_all(path.join("public/sub")).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// Fails if a path or a link leads out of the directory.
#[test]
fn files_of_the_directory_alone_are_served() {
    let directory = Directory::new();
    let public = directory.0.join("public");
    let large = "0123456789abcdef".repeat(20_000);
    fs::write(directory.0.join("secret.txt"), "secret").unwrap();
    fs::write(public.join("index.html"), "index").unwrap();
    fs::write(public.join("a b.txt"), "blank").unwrap();
    fs::write(public.join("empty"), "").unwrap();
    fs::write(public.join("sub/large.txt"), &large).unwrap();
    symlink("../secret.txt", public.join("link.txt")).unwrap();

    let root = public.to_str().unwrap();
    let server = Server::start(env!("CARGO_BIN_EXE_static_files"), &[root, "127.0.0.1:0"]);
    let page = |path: &str| get(&server.url(path)).1;
    assert_eq!(page("/"), "index");
    assert_eq!(page("/a%20b.txt"), "blank");
    assert_eq!(page("/empty"), "");
    assert!(page("/sub/large.txt") == large);
    let status = |path: &str| get(&server.url(path)).0;
    assert_eq!(status("/none"), 404);
    assert_eq!(status("/sub/"), 404);
    assert_eq!(status("/../secret.txt"), 404);
    assert_eq!(status("/%2e%2e/secret.txt"), 404);
    assert_eq!(status("/link.txt"), 404);
    assert_eq!(status("/%zz"), 400);
    assert_eq!(
        request("HEAD", &server.url("/")),
        (hyper::StatusCode::OK, String::new())
    );
    assert_eq!(request("POST", &server.url("/")).0, 405);

    expect_curl(&[&server.url("/sub/large.txt")], &large);
    let head = [
        "-o",
        "/dev/null",
        "-w",
        "%{http_code} %{content_type}",
        "-I",
    ];
    let url = server.url("/");
    expect_curl(
        &[&head[..], &[url.as_str()]].concat(),
        "200 text/html; charset=utf-8",
    );
    let escape = ["-o", "/dev/null", "-w", "%{http_code}", "--path-as-is"];
    let url = server.url("/sub/../../secret.txt");
    expect_curl(&[&escape[..], &[url.as_str()]].concat(), "404");
    server.stop();
}
