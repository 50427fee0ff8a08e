//! %h, %p, %u and %n in commands and paths.

use sshoal_net::Place;

/// Octets with places to fill in for each host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Octets(Vec<u8>),
    Host,
    Port,
    User,
    Name,
}

impl Template {
    /// Finds %h, %p, %u and %n; %%h stands for a plain %h, and so on. Any other % stays as it is: `date +%s` and
    /// `${path%%/*}` mean the same as ever.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let mut parts = Vec::new();
        let mut octets = Vec::new();
        let mut rest = text;
        while let Some((&octet, behind)) = rest.split_first() {
            rest = behind;
            let part = match behind {
                _ if octet != b'%' => None,
                [b'h', ..] => Some(Part::Host),
                [b'p', ..] => Some(Part::Port),
                [b'u', ..] => Some(Part::User),
                [b'n', ..] => Some(Part::Name),
                [b'%', b'h' | b'p' | b'u' | b'n', ..] => {
                    octets.extend_from_slice(&behind[..2]);
                    rest = &behind[2..];
                    continue;
                }
                _ => None,
            };
            match part {
                None => octets.push(octet),
                Some(part) => {
                    rest = &behind[1..];
                    parts.push(Part::Octets(std::mem::take(&mut octets)));
                    parts.push(part);
                }
            }
        }
        parts.push(Part::Octets(octets));
        Template(parts)
    }

    /// Octets without places to fill in.
    pub(crate) fn literal(text: &[u8]) -> Self {
        Template(vec![Part::Octets(text.to_vec())])
    }

    /// The octets for one host.
    pub(crate) fn fill(&self, place: &Place<'_>) -> Vec<u8> {
        let mut filled = Vec::new();
        for part in &self.0 {
            match part {
                Part::Octets(octets) => filled.extend_from_slice(octets),
                Part::Host => filled.extend_from_slice(place.host.as_bytes()),
                Part::Port => filled.extend_from_slice(place.port.to_string().as_bytes()),
                Part::User => filled.extend_from_slice(place.user.as_bytes()),
                Part::Name => filled.extend_from_slice(place.name.as_bytes()),
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'static> = Place {
        host: "10.0.0.1",
        port: 2222,
        user: "root",
        name: "web1",
        remote_command: None,
    };

    fn filled(text: &str) -> String {
        String::from_utf8(Template::parse(text.as_bytes()).fill(&PLACE)).expect("text stays text")
    }

    #[test]
    fn fills_in_the_four_places() {
        assert_eq!(filled("%n=%u@%h:%p"), "web1=root@10.0.0.1:2222");
    }

    #[test]
    fn leaves_other_percent_signs_alone() {
        assert_eq!(
            filled("date +%s; echo ${x%%:*} 5% %"),
            "date +%s; echo ${x%%:*} 5% %"
        );
    }

    #[test]
    fn a_doubled_sign_keeps_a_place_from_being_filled() {
        assert_eq!(filled("date +%%u %%h %h"), "date +%u %h 10.0.0.1");
    }

    #[test]
    fn a_literal_is_not_looked_into() {
        assert_eq!(Template::literal(b"%h %%").fill(&PLACE), b"%h %%");
    }
}
