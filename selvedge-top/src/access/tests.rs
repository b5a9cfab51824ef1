use super::*;

const TOKEN: &str = "0123456789abcdef";

fn access(token: Option<&str>) -> Access {
    let hosts = vec!["metrics.example".to_owned()];
    let mut access = Access::new(token.map(str::to_owned), hosts).unwrap();
    access.set_port(80);
    access
}

/// Checks a request with these headers.
fn check(
    access: &Access,
    method: &Method,
    uri: &str,
    headers: &[(&'static str, &str)],
) -> Result<(), Refusal> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    access.check(method, &uri.parse().unwrap(), &map)
}

#[test]
fn host_is_an_address_localhost_or_a_named_one() {
    let access = access(None);
    let host = |host: &str| check(&access, &Method::GET, "/", &[("host", host)]);
    let own = [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1:6060",
        "[::1]:6060",
        "[::1]",
        "10.0.0.1",
        "metrics.example:80",
        "localhost:",
    ];
    for name in own {
        assert_eq!(host(name), Ok(()), "{name}");
    }
    let foreign = [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:6060",
        "localhost@evil.example",
        "localhost:80:80",
        "localhost:x",
        "[evil.example]",
        "[127.0.0.1]",
        "[::1]x",
        "[::1",
        "::1",
        ":80",
        "",
        " localhost",
    ];
    for name in foreign {
        assert_eq!(host(name), Err(Refusal::ForeignHost), "{name:?}");
    }
}

#[test]
fn request_without_one_host_is_refused() {
    let access = access(None);
    assert_eq!(check(&access, &Method::GET, "/", &[]), Err(Refusal::NoHost));
    let two = [("host", "localhost"), ("host", "localhost")];
    assert_eq!(
        check(&access, &Method::GET, "/", &two),
        Err(Refusal::NoHost)
    );
    // The authority of the address counts, too.
    let own = [("host", "localhost")];
    let foreign = check(&access, &Method::GET, "http://evil.example/", &own);
    assert_eq!(foreign, Err(Refusal::ForeignHost));
    assert_eq!(
        check(&access, &Method::GET, "http://localhost/", &own),
        Ok(())
    );
}

#[test]
fn request_of_another_site_may_only_open_the_page() {
    let access = access(None);
    let of = |method: &Method, path: &str, headers: &[(&'static str, &'static str)]| {
        let own = [("host", "localhost:1")];
        check(&access, method, path, &[&own, headers].concat())
    };
    for site in ["cross-site", "same-site", "new-kind"] {
        let foreign = [("sec-fetch-site", site)];
        let opens = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
        assert_eq!(
            of(&Method::GET, "/dump", &foreign),
            Err(Refusal::ForeignSite)
        );
        assert_eq!(of(&Method::GET, "/dump", &opens), Err(Refusal::ForeignSite));
        assert_eq!(of(&Method::GET, "/", &foreign), Err(Refusal::ForeignSite));
        assert_eq!(of(&Method::GET, "/", &opens), Ok(()));
        assert_eq!(of(&Method::POST, "/", &opens), Err(Refusal::ForeignSite));
    }
    for site in ["same-origin", "none"] {
        assert_eq!(
            of(&Method::GET, "/dump", &[("sec-fetch-site", site)]),
            Ok(())
        );
    }
}

#[test]
fn post_has_no_origin_or_the_own_one() {
    let access = access(None);
    let of = |origin: &[(&'static str, &'static str)]| {
        let own = [("host", "localhost:1")];
        check(&access, &Method::POST, "/waits", &[&own, origin].concat())
    };
    assert_eq!(of(&[]), Ok(()));
    assert_eq!(of(&[("origin", "http://localhost:1")]), Ok(()));
    assert_eq!(of(&[("origin", "https://LOCALHOST:1")]), Ok(()));
    for foreign in [
        "http://localhost:2",
        "http://evil.example",
        "null",
        "localhost:1",
        "",
    ] {
        assert_eq!(
            of(&[("origin", foreign)]),
            Err(Refusal::ForeignSite),
            "{foreign}"
        );
    }
    let both = [
        ("origin", "http://localhost:1"),
        ("origin", "http://evil.example"),
    ];
    assert_eq!(of(&both), Err(Refusal::ForeignSite));
    let get = |origin| {
        let headers = [("host", "localhost:1"), ("origin", origin)];
        check(&access, &Method::GET, "/dump", &headers)
    };
    assert_eq!(get("http://localhost:1"), Ok(()));
    assert_eq!(get("http://evil.example"), Err(Refusal::ForeignSite));
    // A proxy with an allowed name, whose `Host` lacks the port.
    assert_eq!(of(&[("origin", "https://metrics.example:8443")]), Ok(()));
    assert_eq!(
        of(&[("origin", "https://metrics.example.evil.example")]),
        Err(Refusal::ForeignSite)
    );
}

#[test]
fn token_is_in_the_authorization_or_in_the_cookie() {
    let access = access(Some(TOKEN));
    let of = |headers: &[(&'static str, &'static str)]| {
        let own = [("host", "localhost")];
        check(&access, &Method::GET, "/tasks", &[&own, headers].concat())
    };
    let cookie = |value: &str| format!("selvedge-top-80={value}");
    let (secret, others) = (cookie(&access.secret), cookie(&secret()));
    let with = |cookie: &str| {
        let headers = [("host", "localhost"), ("cookie", cookie)];
        check(&access, &Method::GET, "/tasks", &headers)
    };
    assert_eq!(with(&secret), Ok(()));
    assert_eq!(with(&format!("a=b; {secret}; c")), Ok(()));
    assert_eq!(with(&others), Err(Refusal::NoToken));
    assert_eq!(with(&secret.replace("80=", "81=")), Err(Refusal::NoToken));
    for right in [
        ("authorization", "Bearer 0123456789abcdef"),
        ("authorization", "bearer  0123456789abcdef"),
    ] {
        assert_eq!(of(&[right]), Ok(()), "{right:?}");
    }
    for wrong in [
        ("authorization", "Bearer 0123456789abcdeF"),
        ("authorization", "Bearer 0123456789abcde"),
        ("authorization", "Bearer 0123456789abcdef0"),
        ("authorization", "Bearer"),
        ("authorization", "0123456789abcdef"),
        ("authorization", "Basic 0123456789abcdef"),
        ("cookie", "selvedge-top-80=0123456789abcdef"),
        ("cookie", "selvedge-top-80="),
        ("cookie", "selvedge-top-80"),
    ] {
        assert_eq!(of(&[wrong]), Err(Refusal::NoToken), "{wrong:?}");
    }
    assert_eq!(of(&[]), Err(Refusal::NoToken));
    // The page and its files have no data.
    for (path, checked) in [
        ("/", Ok(())),
        ("/top.js", Ok(())),
        ("/top.js/", Err(Refusal::NoToken)),
    ] {
        assert_eq!(
            check(&access, &Method::GET, path, &[("host", "localhost")]),
            checked,
            "{path}"
        );
    }
}

#[test]
fn right_token_in_the_address_sets_the_cookie() {
    let access = access(Some(TOKEN));
    let sign_in = |uri: &str, host: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        access.sign_in(&uri.parse().unwrap(), &headers)
    };
    let cookie = sign_in("/?token=0123456789abcdef", "localhost")
        .unwrap()
        .unwrap();
    let secret = &access.secret;
    assert!(secret.len() == 32 && !secret.contains(TOKEN), "{secret}");
    let options = "Path=/; HttpOnly; SameSite=Strict";
    assert_eq!(cookie, format!("selvedge-top-80={secret}; {options}"));
    let mut headers = HeaderMap::new();
    headers.insert(HOST, "localhost".parse().unwrap());
    headers.insert("x-forwarded-proto", "https".parse().unwrap());
    let uri = "/?token=0123456789abcdef".parse().unwrap();
    let cookie = access.sign_in(&uri, &headers).unwrap().unwrap();
    assert!(cookie.ends_with("SameSite=Strict; Secure"), "{cookie}");
    let wrong = sign_in("/?token=0", "localhost");
    assert_eq!(wrong, Some(Err(Refusal::NoToken)));
    let foreign = sign_in("/?token=0123456789abcdef", "evil.example");
    assert_eq!(foreign, Some(Err(Refusal::ForeignHost)));
    assert_eq!(sign_in("/tasks?token=0123456789abcdef", "localhost"), None);
    assert_eq!(sign_in("/", "localhost"), None);
}

#[test]
fn token_that_is_short_or_needs_escapes_is_refused() {
    for token in [
        "",
        "0123456789abcde",
        "0123456789abcdef;",
        "0123456789abcdeü",
        "a b c d e f g h i j",
    ] {
        let made = Access::new(Some(token.to_owned()), Vec::new());
        assert!(matches!(made, Err(ServeError::BadToken)), "{token}");
    }
    assert!(Access::new(Some("a".repeat(129)), Vec::new()).is_err());
    assert!(Access::new(Some("a".repeat(128)), Vec::new()).is_ok());
    let access = Access::new(Some(TOKEN.to_owned()), Vec::new()).unwrap();
    assert!(!format!("{access:?}").contains(TOKEN));
}

#[test]
fn secrets_are_equal_only_byte_for_byte() {
    assert!(is_equal(b"", b""));
    assert!(is_equal(b"abc", b"abc"));
    for (a, b) in [
        ("abc", "abd"),
        ("abc", "bbc"),
        ("abc", "ab"),
        ("", "a"),
        ("abc", "abC"),
    ] {
        assert!(!is_equal(a.as_bytes(), b.as_bytes()), "{a} {b}");
    }
}
