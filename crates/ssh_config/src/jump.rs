//! The hosts of `ProxyJump`.

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
    let (host, port) = split_port(place, is_uri)?;
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

/// `hpdelim` (misc.c): a name, or an address in brackets, and what follows the colon.
fn split_port(place: &str, is_uri: bool) -> Option<(&str, Option<u16>)> {
    let (host, rest) = match place.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        None => place.split_at(place.find([':', '/']).unwrap_or(place.len())),
    };
    let port = match rest.strip_prefix([':', '/']) {
        None if rest.is_empty() => return Some((host, None)),
        None => return None,
        Some(port) => port,
    };
    if is_uri && (rest.starts_with('/') || port.contains('/')) {
        let (port, path) = if rest.starts_with('/') {
            ("", port)
        } else {
            port.split_once('/')?
        };
        return if path.is_empty() {
            Some((host, parse_port(port)?))
        } else {
            None
        };
    }
    Some((host, parse_port(port)?))
}

/// An empty port is none; otherwise 1 to 65535.
fn parse_port(text: &str) -> Option<Option<u16>> {
    if text.is_empty() {
        return Some(None);
    }
    text.parse().ok().filter(|&port| port > 0).map(Some)
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
