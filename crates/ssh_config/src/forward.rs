//! `LocalForward`, `RemoteForward` and `DynamicForward` (`parse_forward`, readconf.c).

use crate::value::number::port_or_zero;

/// Longest host of a forward (`NI_MAXHOST`) and longest socket path (`PATH_MAX_SUN`, misc.h).
const MAX_HOST: usize = 1025;
const MAX_PATH: usize = 108;

/// One forward, its variables expanded and its tokens not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forward {
    listen: Place,
    /// Where connections go; `None` for where the client says (SOCKS).
    connect: Option<Place>,
}

/// One end of a forward.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Port { host: Option<String>, port: u16 },
    Path(String),
}

/// Which keyword a forward stands behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Local,
    Remote,
    Dynamic,
}

/// A part of a specification, and whether it is a path.
type Field = (String, bool);

impl Forward {
    /// Reads a specification; the two arguments of a line are joined by a colon.
    pub(crate) fn parse(text: &str, direction: Direction) -> Result<Forward, String> {
        let bad = || format!("bad forwarding specification \"{text}\"");
        let forward = split(text.trim_start())
            .and_then(|fields| Forward::of_fields(&fields))
            .filter(|forward| forward.connect.is_none() == (direction == Direction::Dynamic))
            .ok_or_else(bad)?;
        let may_choose = direction == Direction::Remote;
        let is_usable = forward.listen.is_usable(may_choose)
            && forward.connect.iter().all(|place| place.is_usable(false));
        if is_usable { Ok(forward) } else { Err(bad()) }
    }

    /// Reads a `RemoteForward` without a target: the server's clients say where to (SOCKS).
    pub(crate) fn parse_remote_dynamic(text: &str) -> Result<Forward, String> {
        let forward = split(text.trim_start())
            .and_then(|fields| Forward::of_fields(&fields))
            .filter(|forward| forward.connect.is_none() && forward.listen.is_usable(true));
        forward.ok_or_else(|| format!("bad forwarding specification \"{text}\""))
    }

    fn of_fields(fields: &[Field]) -> Option<Forward> {
        let port = |field: &Field, host: Option<&Field>| {
            Some(Place::Port {
                host: host.map(|host| host.0.clone()),
                port: port_or_zero(&field.0)?,
            })
        };
        let path = |field: &Field| Some(Place::Path(field.0.clone()));
        let (listen, connect) = match fields {
            [a] if a.1 => (path(a)?, None),
            [a] => (port(a, None)?, None),
            [a, b] if a.1 && b.1 => (path(a)?, path(b)),
            [a, b] if b.1 => (port(a, None)?, path(b)),
            [a, b] => (port(b, Some(a))?, None),
            [a, b, c] if a.1 => (path(a)?, Some(port(c, Some(b))?)),
            [a, b, c] if c.1 => (port(b, Some(a))?, path(c)),
            [a, b, c] => (port(a, None)?, Some(port(c, Some(b))?)),
            [a, b, c, d] => (port(b, Some(a))?, Some(port(d, Some(c))?)),
            _ => return None,
        };
        Some(Forward { listen, connect })
    }

    /// The forward with its paths expanded.
    pub(crate) fn expanded(
        &self,
        expand: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Forward, String> {
        let place = |place: &Place| match place {
            Place::Path(path) => expand(path).map(Place::Path),
            other => Ok(other.clone()),
        };
        Ok(Forward {
            listen: place(&self.listen)?,
            connect: self.connect.as_ref().map(place).transpose()?,
        })
    }

    /// Both ends as `ssh -G` prints them (`dump_cfg_forwards`, readconf.c).
    pub(crate) fn arguments(&self, direction: Direction) -> Vec<String> {
        let connect = self.connect.as_ref().map(Place::text);
        let mut arguments = vec![self.listen.text()];
        match direction {
            Direction::Dynamic => {}
            _ => arguments.push(connect.unwrap_or_else(|| "[socks]:0".into())),
        }
        arguments
    }
}

impl Place {
    fn is_usable(&self, port_zero: bool) -> bool {
        match self {
            Place::Path(path) => path.len() < MAX_PATH,
            Place::Port { host, port } => {
                (port_zero || *port > 0) && host.iter().all(|host| host.len() < MAX_HOST)
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Place::Path(path) => path.clone(),
            Place::Port {
                host: Some(host),
                port,
            } => format!("[{host}]:{port}"),
            Place::Port { host: None, port } => port.to_string(),
        }
    }
}

/// Splits at colons; brackets hold a field together and `\` escapes a character
/// (`parse_fwd_field`, readconf.c).
fn split(text: &str) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && fields.len() < 4 {
        if let Some(inside) = rest.strip_prefix('[') {
            let (field, after) = inside.split_once(']')?;
            rest = match after.strip_prefix(':') {
                Some(after) => after,
                None if after.is_empty() => after,
                None => return None,
            };
            fields.push((field.to_string(), field.contains('/')));
            continue;
        }
        let mut field = (String::new(), false);
        let mut chars = rest.chars();
        loop {
            match chars.next() {
                None | Some(':') => break,
                Some('\\') => field.0.push(chars.next()?),
                Some(c) => {
                    field.1 |= c == '/';
                    field.0.push(c);
                }
            }
        }
        rest = chars.as_str();
        fields.push(field);
    }
    rest.is_empty().then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, direction: Direction) -> Option<String> {
        let forward = Forward::parse(text, direction).ok()?;
        Some(forward.arguments(direction).join(" "))
    }

    #[test]
    fn ends_are_ports_hosts_or_paths() {
        use Direction::{Dynamic, Local, Remote};
        for (text, direction, expected) in [
            ("80:h:81", Local, "80 [h]:81"),
            ("[::1]:80:[::2]:81", Local, "[::1]:80 [::2]:81"),
            ("*:80:h:81", Local, "[*]:80 [h]:81"),
            (":80:h:81", Local, "[]:80 [h]:81"),
            ("/a:/b", Local, "/a /b"),
            ("80:/b", Local, "80 /b"),
            ("/a:h:81", Local, "/a [h]:81"),
            ("a:80:/b", Local, "[a]:80 /b"),
            (r"/a\:b:/c", Local, "/a:b /c"),
            ("0:h:81", Remote, "0 [h]:81"),
            ("80", Dynamic, "80"),
            ("h:80", Dynamic, "[h]:80"),
            ("/a", Dynamic, "/a"),
        ] {
            assert_eq!(shown(text, direction).as_deref(), Some(expected), "{text}");
        }
        for (text, direction) in [
            ("", Local),
            ("80", Local),
            ("h:80", Local),
            ("0:h:81", Local),
            ("80:h:0", Local),
            ("80:h:x", Local),
            ("65536:h:81", Local),
            ("[a:80", Local),
            ("[a]b:80:h:81", Local),
            ("a:b:c:d:e", Local),
            ("0", Dynamic),
            ("80:h:81", Dynamic),
            (r"80:/a\", Local),
        ] {
            assert_eq!(shown(text, direction), None, "{text}");
        }
        let long = "h".repeat(MAX_HOST);
        assert_eq!(shown(&format!("80:{long}:81"), Local), None);
        let long = format!("/{}", "h".repeat(MAX_PATH));
        assert_eq!(shown(&format!("80:{long}"), Local), None);
    }

    #[test]
    fn a_remote_forward_may_leave_the_target_open() {
        let forward = Forward::parse_remote_dynamic("8080").expect("a port");
        assert_eq!(forward.arguments(Direction::Remote), ["8080", "[socks]:0"]);
        assert!(Forward::parse_remote_dynamic("8080:h:80").is_err());
    }
}
