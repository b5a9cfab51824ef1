//! Decides which requests are answered.
//!
//! 1. *Host.* A page of the web may have a name that leads to this machine (DNS rebinding): its
//!    scripts could then read our answers. So the host of a request is an address, `localhost`, or
//!    a name that the program has allowed.
//! 2. *Site.* A page of another site may send requests, though it cannot read the answers. A
//!    browser says so by `Sec-Fetch-Site` and `Origin`. Such a page may only open our page, by a
//!    link. A program that is no browser sends neither header. Browsers send `Sec-Fetch-Site` only
//!    over HTTPS and to loopback addresses: elsewhere rule 3 keeps other sites out.
//! 3. *Token.* If there is a token, a request has it in the header `Authorization`, or has a cookie
//!    that only this page has made. The address has the token only in the request that sets the
//!    cookie. A browser sends the cookie with no request of another site (`SameSite=Strict`). A
//!    link of another site may still open the page: the page and its files hold no data, so they
//!    need no token.
use crate::{ServeError, files, query};
use hyper::{
    HeaderMap, Method, Uri,
    header::{AUTHORIZATION, COOKIE, HOST, HeaderName, ORIGIN},
};
use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    hint::black_box,
    net::IpAddr,
};

/// The lengths of a token.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=128;

/// The rules for the requests of one page.
pub(crate) struct Access {
    token: Option<String>,
    hosts: Vec<String>,
    /// The name of the cookie. Browsers send a cookie to all ports of a host, so the port is in the
    /// name.
    cookie: String,
    /// The value of the cookie. Other servers of this host get the cookie too, so it is not the
    /// token, and is of no use after the end of this page.
    secret: String,
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no host, or more than one.
    NoHost,
    /// The host is not one of ours.
    ForeignHost,
    /// A page of another site sent the request.
    ForeignSite,
    /// The token is missing or wrong.
    NoToken,
}

impl Access {
    pub(crate) fn new(token: Option<String>, hosts: Vec<String>) -> Result<Self, ServeError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if let Some(token) = &token {
            if !LENGTHS.contains(&token.len()) || !token.bytes().all(is_allowed) {
                return Err(ServeError::BadToken);
            }
        }
        Ok(Self {
            token,
            hosts,
            cookie: String::new(),
            secret: secret(),
        })
    }

    pub(crate) fn set_port(&mut self, port: u16) {
        self.cookie = format!("selvedge-top-{port}");
    }

    /// Checks the rules for a request.
    pub(crate) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        let host = self.check_host(uri, headers)?;
        self.check_site(method, uri, headers, host)?;
        match &self.token {
            Some(_) if files::is_file(uri.path()) => Ok(()),
            Some(token) if !self.has_token(token, headers) => Err(Refusal::NoToken),
            _ => Ok(()),
        }
    }

    /// Returns the authority of the request, which leads to this page.
    fn check_host<'a>(&self, uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::NoHost);
        };
        let host = host.to_str().map_err(|_| Refusal::ForeignHost)?;
        let of_uri = uri.authority().map(|authority| authority.as_str());
        match self.is_own(host) && of_uri.is_none_or(|authority| self.is_own(authority)) {
            true => Ok(host),
            false => Err(Refusal::ForeignHost),
        }
    }

    fn is_own(&self, authority: &str) -> bool {
        let Some(host) = host_of(authority) else {
            return false;
        };
        host.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || self.is_named(authority)
    }

    /// Returns whether the program has allowed the host of an authority, at whichever port: the
    /// `Host` that a proxy passes on may lack the port.
    fn is_named(&self, authority: &str) -> bool {
        let mut hosts = self.hosts.iter();
        host_of(authority).is_some_and(|host| hosts.any(|name| host.eq_ignore_ascii_case(name)))
    }

    fn has_token(&self, token: &str, headers: &HeaderMap) -> bool {
        let bearer = |value: &str| {
            let (scheme, rest) = value.split_once(' ')?;
            scheme
                .eq_ignore_ascii_case("bearer")
                .then(|| rest.trim_start().to_owned())
        };
        let authorization = headers.get_all(AUTHORIZATION).iter();
        let bearers = authorization.filter_map(|value| bearer(value.to_str().ok()?));
        let cookies = headers.get_all(COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let cookies = cookies.flat_map(|value| value.split(';'));
        let cookies = cookies.filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.cookie).then(|| value.to_owned())
        });
        let is = |secret: &str| {
            let secret = secret.as_bytes().to_owned();
            move |given: String| is_equal(given.as_bytes(), &secret)
        };
        let (mut bearers, mut cookies) = (bearers, cookies);
        bearers.any(is(token)) || cookies.any(is(&self.secret))
    }

    /// Returns the answer to a request that has the token in its address, as `/?token=…`: the
    /// header that sets the cookie, or a refusal. `None` if the address has no token, or if there
    /// is none to check.
    pub(crate) fn sign_in(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<Result<String, Refusal>> {
        let token = self.token.as_deref()?;
        if uri.path() != "/" {
            return None;
        }
        let given = query::value(uri.query()?, "token")?;
        if let Err(refusal) = self.check_host(uri, headers) {
            return Some(Err(refusal));
        }
        if !is_equal(given.as_bytes(), token.as_bytes()) {
            return Some(Err(Refusal::NoToken));
        }
        let Self { cookie, secret, .. } = self;
        // A proxy with TLS says so.
        let scheme = headers.get("x-forwarded-proto");
        let secure = match scheme.is_some_and(|scheme| scheme == "https") {
            true => "; Secure",
            false => "",
        };
        Some(Ok(format!(
            "{cookie}={secret}; Path=/; HttpOnly; SameSite=Strict{secure}"
        )))
    }

    /// Checks that no page of another site has sent the request (rule 2).
    fn check_site(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        host: &str,
    ) -> Result<(), Refusal> {
        let header = |name: &'static str| headers.get(HeaderName::from_static(name));
        let is_safe = *method == Method::GET || *method == Method::HEAD;
        let is_own_site = match header("sec-fetch-site") {
            None => true,
            Some(site) => site == "same-origin" || site == "none",
        };
        let opens_page = || {
            let navigates = header("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
            is_safe && uri.path() == "/" && navigates
        };
        if !is_own_site && !opens_page() {
            return Err(Refusal::ForeignSite);
        }
        let is_own = |origin: &hyper::header::HeaderValue| {
            let authority = origin.to_str().ok().and_then(|origin| {
                let https = origin.strip_prefix("https://");
                origin.strip_prefix("http://").or(https)
            });
            authority.is_some_and(|authority| {
                authority.eq_ignore_ascii_case(host) || self.is_named(authority)
            })
        };
        // A browser sends `Origin` with each POST, and with a script's requests to other sites.
        if !headers.get_all(ORIGIN).iter().all(is_own) {
            return Err(Refusal::ForeignSite);
        }
        Ok(())
    }
}

/// Returns 128 random bits as text. The keys of the standard library's hasher are random.
fn secret() -> String {
    let hasher = RandomState::new();
    let half = |number: u8| hasher.hash_one(number);
    format!("{:016x}{:016x}", half(0), half(1))
}

/// Does not write the token.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

/// Returns the host of an authority `host[:port]`, an IPv6 address without its brackets. `None` if
/// it is malformed.
fn host_of(authority: &str) -> Option<&str> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let ends_well = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    (ends_well && !host.is_empty()).then_some(host)
}

/// Compares two secrets in a time that depends only on their lengths.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let differ = |seen: u8, (a, b): (&u8, &u8)| black_box(seen | (a ^ b));
    a.len() == b.len() && a.iter().zip(b).fold(0, differ) == 0
}

#[cfg(test)]
mod tests;
