//! Who may ask. A page of somebody else, open in the same browser, must not reach the server: not
//! under another name (DNS rebinding), not by sending what it cannot read the answer of.

use crate::refusal::Refusal;
use crate::token::Token;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The names under which the server answers.
pub(crate) struct Guard {
    address: SocketAddr,
    /// The name that was given to listen at.
    host: Option<String>,
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
        Self { address, host: host.map(str::to_ascii_lowercase), token }
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
            let what = "this server does not answer under that name";
            return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, what));
        }
        let api = path.starts_with("/api/") || *method == Method::POST;
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        if api && !matches!(site, None | Some(b"same-origin" | b"none")) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "another site's page asks"));
        }
        let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        let own = |origin: &str| origin.strip_prefix("http://").is_some_and(|name| name == host);
        if api && !origin.is_none_or(own) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "another site's page asks"));
        }
        if *method == Method::POST && !is_json(headers) {
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "a question is sent as `Content-Type: application/json`",
            ));
        }
        Ok(())
    }

    /// Whether a `Host` is one of the server's own names. An address in numbers cannot be rebound.
    fn is_own(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse::<u16>().ok()),
            _ => (host, Some(80)),
        };
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
}
