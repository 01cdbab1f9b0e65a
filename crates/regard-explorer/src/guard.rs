//! Who may ask. A page of somebody else, open in the same browser, must not reach the server: not
//! under another name (DNS rebinding), not by sending what it cannot read the answer of.

use crate::form;
use crate::refusal::Refusal;
use crate::token::Token;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use regard_tasks::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The names under which the server answers.
pub(crate) struct Guard {
    address: SocketAddr,
    /// The name that was given to listen at.
    host: Option<String>,
    /// Further names, each with a port where that one alone is meant.
    allowed: Vec<(String, Option<u16>)>,
    /// What who asks must know.
    token: Option<Token>,
}

/// Nothing but what the server itself holds, and pictures and sound made of what was fetched.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; \
                      style-src 'self'; script-src 'self'; object-src 'none'; base-uri 'none'; \
                      frame-ancestors 'none'; form-action 'none'";

/// Headers of every response.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

impl Guard {
    pub(crate) fn new(address: SocketAddr, host: Option<&str>, token: Option<Token>) -> Self {
        Self { address, host: host.map(str::to_ascii_lowercase), allowed: Vec::new(), token }
    }

    /// Answers under further names too, `box.lan` or `box.lan:8080`: without a port under any. Refuses
    /// what is no name.
    pub(crate) fn allow(mut self, names: &[String]) -> Result<Self, Error> {
        for written in names {
            let (name, port) = match written.rsplit_once(':') {
                Some((name, port)) if !port.contains(']') => (name, port.parse().ok().map(Some)),
                _ => (&written[..], Some(None)),
            };
            let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_.[]:".contains(c);
            match port {
                Some(port) if !name.is_empty() && name.chars().all(is_letter) => {
                    self.allowed.push((name.to_ascii_lowercase(), port));
                }
                _ => {
                    return Err(Error::invalid(format!(
                        "`{written}` is no name of a host; box.lan and box.lan:8080 are"
                    )));
                }
            }
        }
        Ok(self)
    }

    /// Refuses who does not know the token; whether a browser should keep it. Whether the server
    /// lives is told to anyone.
    fn knows(&self, path: &str, query: &str, headers: &HeaderMap) -> Result<bool, Refusal> {
        let Some(token) = &self.token else { return Ok(false) };
        let named = token.is_in_query(query);
        if named || path == "/health" || token.is_in_headers(headers) {
            return Ok(named);
        }
        let what = "the token is missing: open the whole address that the program printed, or send \
                    `Authorization: Bearer TOKEN`";
        Err(Refusal::new(StatusCode::UNAUTHORIZED, what))
    }

    /// Refuses a request that this server's own page, or a program that means it, would not send.
    fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.ok_or_else(|| Refusal::bad("the request has no `Host`"))?;
        if headers.get_all(header::HOST).iter().count() != 1 || !self.is_own(host) {
            let name: String = host.chars().take(100).collect();
            let what = format!(
                "this server does not answer under the name `{name}`; `--allow-host {}` adds it",
                name.split(':').next().unwrap_or_default()
            );
            return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, what));
        }
        let api = path.starts_with("/api/") || *method == Method::POST;
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        if api && !matches!(site, None | Some(b"same-origin" | b"none")) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "another site's page asks"));
        }
        let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        // A proxy may speak TLS under a name that was allowed.
        let schemes =
            if self.is_allowed(host) { &["http://", "https://"][..] } else { &["http://"] };
        let own = |origin: &str| {
            schemes
                .iter()
                .any(|scheme| origin.strip_prefix(scheme).is_some_and(|name| name == host))
        };
        if api && !origin.is_none_or(own) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "another site's page asks"));
        }
        let is_form = path == "/predict" && form::boundary(headers).is_some();
        if *method == Method::POST && !is_json(headers) && !is_form {
            let what = match path {
                "/predict" => {
                    "a question is sent as `Content-Type: application/json` or `multipart/form-data`"
                }
                _ => "a question is sent as `Content-Type: application/json`",
            };
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
        }
        Ok(())
    }

    /// Whether a `Host` is a name that was allowed, at a port that was.
    fn is_allowed(&self, host: &str) -> bool {
        let (name, port) = split_port(host);
        let name = name.to_ascii_lowercase();
        let fits = |only: &Option<u16>| port.is_some() && (only.is_none() || *only == port);
        self.allowed.iter().any(|(allowed, only)| *allowed == name && fits(only))
    }

    /// Whether a `Host` is one of the server's own names. An address in numbers cannot be rebound.
    fn is_own(&self, host: &str) -> bool {
        if self.is_allowed(host) {
            return true;
        }
        let (name, port) = split_port(host);
        if port != Some(self.address.port()) {
            return false;
        }
        let name = name.to_ascii_lowercase();
        let number = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match number {
            Ok(number) => number.is_loopback() || !self.address.ip().is_loopback(),
            Err(_) => name == "localhost" || self.host.as_ref() == Some(&name),
        }
    }
}

/// The name and the port of a `Host`; no port where what stands there is none.
fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port.parse::<u16>().ok()),
        _ => (host, Some(80)),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// Checks every request, and adds to every response what keeps a page to itself.
pub(crate) async fn guard(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let checked = guard
        .check(request.method(), path, request.headers())
        .and_then(|()| guard.knows(path, query, request.headers()));
    let keep = checked == Ok(true);
    let mut response = match checked {
        Ok(_) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    let cookie = guard.token.as_ref().filter(|_| keep).map(Token::cookie);
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str, host: Option<&str>) -> Guard {
        let address = address.parse().unwrap_or_else(|_| SocketAddr::from(([127, 0, 0, 1], 0)));
        Guard::new(address, host, None)
    }

    #[test]
    fn only_the_servers_own_names_are_answered() {
        let own = guard("127.0.0.1:7317", None);
        for host in ["127.0.0.1:7317", "localhost:7317", "LocalHost:7317", "[::1]:7317"] {
            assert!(own.is_own(host), "{host}");
        }
        let foreign = [
            "evil.example:7317",
            "localhost",
            "localhost:80",
            "127.0.0.1",
            "192.168.0.3:7317",
            "localhost.evil.example:7317",
            "127.0.0.1.evil.example:7317",
            "",
            ":7317",
            "[::1]",
            "localhost:7317:7317",
            "127.0.0.1:7317@evil.example",
        ];
        for host in foreign {
            assert!(!own.is_own(host), "{host}");
        }
        let open = guard("0.0.0.0:7317", Some("box.lan"));
        assert!(open.is_own("192.168.0.3:7317") && open.is_own("box.lan:7317"));
        assert!(!open.is_own("evil.example:7317"));
    }

    #[test]
    fn further_names_are_answered_at_any_port_or_at_the_one_that_is_named() {
        let names = ["box.lan", "Proxy.Example:443"].map(str::to_string);
        let own = guard("127.0.0.1:7317", None).allow(&names).unwrap_or_else(|_| panic!());
        for host in ["box.lan", "BOX.lan:8080", "proxy.example:443", "localhost:7317"] {
            assert!(own.is_own(host), "{host}");
        }
        for host in ["proxy.example", "proxy.example:80", "box.lan:x", "a.box.lan", "evil.example"]
        {
            assert!(!own.is_own(host), "{host}");
        }
        for wrong in ["", "http://box.lan", "box lan", "box.lan:99999", ":80"] {
            let names = [wrong.to_string()];
            assert!(guard("127.0.0.1:7317", None).allow(&names).is_err(), "{wrong}");
        }
        let headers = |origin: &str| {
            let json = "application/json";
            let all = [("host", "box.lan"), ("origin", origin), ("content-type", json)];
            let header = |(name, value): (&'static str, &str)| {
                let value = HeaderValue::from_str(value).unwrap_or_else(|_| panic!());
                (HeaderName::from_static(name), value)
            };
            all.map(header).into_iter().collect::<HeaderMap>()
        };
        let asks = |origin| own.check(&Method::POST, "/predict", &headers(origin));
        assert_eq!((asks("http://box.lan"), asks("https://box.lan")), (Ok(()), Ok(())));
        assert!(asks("https://evil.example").is_err());
    }
}
