//! The hosts of `ProxyJump`.

use crate::value::{lists, number};

/// One host to jump through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The host as written: it is resolved like any other host.
    pub host: String,
    /// The user, if the hop names one.
    pub user: Option<String>,
    /// The port, if the hop names one.
    pub port: Option<u16>,
}

/// Reads `[user@]host[:port],...`, also in the form `ssh://[user@]host[:port]`, in the order in
/// which they are travelled; an empty list for `none` (`parse_jump`, readconf.c).
pub(crate) fn parse(text: &str) -> Result<Vec<Hop>, String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(Vec::new());
    }
    let text = text.split('#').next().unwrap_or_default().trim_end();
    text.split(',')
        .map(|hop| parse_hop(hop).ok_or_else(|| format!("invalid ProxyJump \"{text}\"")))
        .collect()
}

fn parse_hop(text: &str) -> Option<Hop> {
    let (text, is_uri) = match text.strip_prefix("ssh://") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let at = if is_uri {
        text.find('@')
    } else {
        text.rfind('@')
    };
    let (user, place) = match at {
        Some(0) => return None,
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    };
    let (host, port) = match is_uri {
        true => uri_host_and_port(place)?,
        false => host_and_port(place)?,
    };
    let user = match user {
        Some(user) if is_uri => Some(url_decode(user.split(';').next()?)?),
        user => user.map(String::from),
    };
    (!host.is_empty() && user.as_deref() != Some("")).then(|| Hop {
        host: host.into(),
        user,
        port,
    })
}

/// `hpdelim` (misc.c): a name, or an address with its brackets, and what follows the colon.
pub(crate) fn split_host(place: &str) -> Option<(&str, Option<&str>)> {
    let end = match place.strip_prefix('[') {
        Some(_) => place.find(']')? + 1,
        None => place.find([':', '/']).unwrap_or(place.len()),
    };
    let (host, rest) = place.split_at(end);
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some((host, None)),
        port => Some((host, Some(port?))),
    }
}

/// A name, or an address without its brackets, and the port.
fn host_and_port(place: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = split_host(place)?;
    Some((without_brackets(host), parse_port(port.unwrap_or(""))?))
}

/// `cleanhostname` (misc.c)
fn without_brackets(host: &str) -> &str {
    let inside = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inside.unwrap_or(host)
}

/// The place of a URI (`parse_uri`, misc.c): a domain name, a port, and no path.
fn uri_host_and_port(place: &str) -> Option<(&str, Option<u16>)> {
    let (place, path) = place.split_once('/').unwrap_or((place, ""));
    let (host, port) = host_and_port(place)?;
    let host = host.strip_suffix('.').unwrap_or(host);
    (path.is_empty() && lists::is_domain(host)).then_some((host, port))
}

/// An empty port is none; otherwise 1 to 65535.
fn parse_port(text: &str) -> Option<Option<u16>> {
    if text.is_empty() {
        return Some(None);
    }
    number::port(text).ok().map(Some)
}

/// `%XX` and `+` in a URI's user (`urldecode`, misc.c).
fn url_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&c, after)) = rest.split_first() {
        rest = after;
        bytes.push(match c {
            b'%' => {
                let (&[high, low], after) = rest.split_first_chunk()?;
                rest = after;
                let digit = |c| char::from(c).to_digit(16);
                u8::try_from(digit(high)? << 4 | digit(low)?)
                    .ok()
                    .filter(|&byte| byte != 0)?
            }
            b'+' => b' ',
            c => c,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
