//! A secret in the address: where others reach the server, only who was told the address may ask.

use axum::http::HeaderMap;
use axum::http::header;
use regard_tasks::{Error, Result};

/// A secret that who asks must know.
#[derive(Clone)]
pub(crate) struct Token {
    text: String,
    /// The cookie that keeps it; two servers of one machine have different ones.
    cookie: String,
}

impl Token {
    /// The given secret, or one by chance.
    pub(crate) fn new(chosen: Option<&str>, port: u16) -> Result<Self> {
        let text = match chosen {
            Some(text) if is_plain(text) => text.to_string(),
            Some(_) => {
                return Err(Error::invalid(
                    "the token is empty or has other characters than letters, digits, - and _",
                ));
            }
            None => by_chance()?,
        };
        Ok(Self { text, cookie: format!("regard-{port}") })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the query of an address names it.
    pub(crate) fn is_in_query(&self, query: &str) -> bool {
        let named = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token");
        named.is_some_and(|(_, value)| self.is(&value))
    }

    /// Whether a request's headers name it: as a bearer's, or by the cookie.
    pub(crate) fn is_in_headers(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let cookies = text(header::COOKIE).unwrap_or_default().split(';');
        let mut cookies = cookies.filter_map(|one| one.trim().split_once('='));
        bearer.is_some_and(|value| self.is(value.trim()))
            || cookies.any(|(name, value)| name == self.cookie && self.is(value))
    }

    /// What tells a browser to keep it, and to show it to no page and no other site.
    pub(crate) fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.text)
    }

    /// Compares every byte, so that time tells nothing of where they differ.
    fn is(&self, other: &str) -> bool {
        let pairs = self.text.bytes().zip(other.bytes());
        self.text.len() == other.len() && pairs.fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_".contains(&c))
}

fn by_chance() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::invalid(format!("no random numbers for a token: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_token_is_found_in_query_header_and_cookie_and_no_other_is() {
        let token = Token::new(Some("abc-1"), 7317).unwrap();
        assert!(token.is_in_query("x=1&token=abc-1") && !token.is_in_query("token=abc-2"));
        let with = |name: header::HeaderName, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            token.is_in_headers(&headers)
        };
        assert!(with(header::AUTHORIZATION, "Bearer abc-1"));
        assert!(with(header::COOKIE, "other=2; regard-7317=abc-1"));
        for wrong in ["regard-7317=abc", "regard-7318=abc-1", "abc-1", "regard-7317="] {
            assert!(!with(header::COOKIE, wrong), "{wrong}");
        }
        assert!(Token::new(Some(""), 1).is_err() && Token::new(Some("a b"), 1).is_err());
        let (one, two) = (Token::new(None, 1).unwrap(), Token::new(None, 1).unwrap());
        assert!(one.text().len() == 32 && one.text() != two.text());
    }
}
