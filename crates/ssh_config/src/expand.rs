//! Tokens (`%h`), environment variables (`${NAME}`) and `~` in values.

use aws_lc_rs::digest;

use crate::environment::Environment;

/// What the percent tokens stand for (TOKENS in ssh_config(5)).
#[derive(Clone, Copy)]
pub(crate) struct Tokens<'a> {
    pub(crate) environment: &'a Environment,
    /// `%n`: the host as it was given.
    pub(crate) original_host: Option<&'a str>,
    /// What else is known by now.
    pub(crate) target: Option<TargetTokens<'a>>,
}

/// Tokens that are known once a host is resolved.
#[derive(Clone, Copy)]
pub(crate) struct TargetTokens<'a> {
    /// `%h`
    pub(crate) host_name: &'a str,
    /// `%p`
    pub(crate) port: u16,
    /// `%k`: `HostKeyAlias`, or the host as it was given.
    pub(crate) key_alias: &'a str,
    /// `%j`: the last jump host.
    pub(crate) jump_host: &'a str,
    /// `%r`; not known while `User` itself is expanded.
    pub(crate) user: Option<&'a str>,
}

impl Tokens<'_> {
    fn value(&self, token: char) -> Option<String> {
        let environment = self.environment;
        let local = match token {
            '%' => Some("%".into()),
            'd' => Some(environment.home.clone()),
            'i' => Some(environment.uid.to_string()),
            'l' => Some(environment.local_host.clone()),
            'L' => Some(short_name(&environment.local_host).into()),
            'n' => self.original_host.map(String::from),
            'u' => Some(environment.local_user.clone()),
            _ => None,
        };
        let target = self.target.as_ref();
        local.or_else(|| match token {
            'h' => Some(target?.host_name.into()),
            'p' => Some(target?.port.to_string()),
            'k' => Some(target?.key_alias.into()),
            'j' => Some(target?.jump_host.into()),
            'r' => Some(target?.user?.into()),
            'C' => connection_hash(&environment.local_host, target?),
            _ => None,
        })
    }
}

/// `%C` (`ssh_connection_hash`, readconf.c): SHA-1 of `%l%h%p%r%j` in hexadecimal.
fn connection_hash(local_host: &str, target: &TargetTokens<'_>) -> Option<String> {
    let mut hash = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    let port = target.port.to_string();
    for part in [
        local_host,
        target.host_name,
        &port,
        target.user?,
        target.jump_host,
    ] {
        hash.update(part.as_bytes());
    }
    Some(
        hash.finish()
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    )
}

fn short_name(host: &str) -> &str {
    host.split('.').next().unwrap_or(host)
}

/// Puts values for tokens and `${NAME}` (`percent_dollar_expand`, misc.c).
pub(crate) fn percent_and_variables(text: &str, tokens: &Tokens<'_>) -> Result<String, String> {
    expand(text, Some(tokens), Some(tokens.environment))
}

/// A piece of a value of which some tokens are known only later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text with everything in place.
    Text(String),
    /// A token without its `%`.
    Token(char),
}

/// As [`percent_and_variables`], but leaves the tokens in `later` to be filled in.
pub(crate) fn pieces(text: &str, tokens: &Tokens<'_>, later: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c != '%' {
            continue;
        }
        if let Some((_, token)) = chars.next().filter(|(_, token)| later.contains(*token)) {
            pieces.push(Piece::Text(percent_and_variables(
                &text[start..at],
                tokens,
            )?));
            pieces.push(Piece::Token(token));
            start = at + 1 + token.len_utf8();
        }
    }
    pieces.push(Piece::Text(percent_and_variables(&text[start..], tokens)?));
    Ok(pieces)
}

/// Puts the host for the `%h` of `HostName`, where no other token is allowed.
pub(crate) fn host_name(text: &str, host: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        out.push_str(match after.chars().next() {
            Some('h') => host,
            Some('%') => "%",
            _ => {
                return Err(format!(
                    "HostName {text}: only %h and %% have a meaning here"
                ));
            }
        });
        rest = &after[1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Puts values for tokens (`percent_expand`, misc.c).
pub(crate) fn percent(text: &str, tokens: &Tokens<'_>) -> Result<String, String> {
    expand(text, Some(tokens), None)
}

/// Puts values for `${NAME}` (`dollar_expand`, misc.c).
pub(crate) fn variables(text: &str, environment: &Environment) -> Result<String, String> {
    expand(text, None, Some(environment))
}

fn expand(
    text: &str,
    tokens: Option<&Tokens<'_>>,
    environment: Option<&Environment>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['%', '$']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match (rest.as_bytes()[0], tokens, environment) {
            (b'%', Some(tokens), _) => {
                let token = rest[1..]
                    .chars()
                    .next()
                    .ok_or("\"%\" at the end of a value")?;
                let value = tokens.value(token);
                out.push_str(&value.ok_or_else(|| format!("\"%{token}\" has no meaning here"))?);
                rest = &rest[1 + token.len_utf8()..];
            }
            (b'$', _, Some(environment)) if rest.starts_with("${") => {
                let (name, after) = rest[2..]
                    .split_once('}')
                    .ok_or("a variable lacks its closing \"}\"")?;
                let value = environment.variables.get(name);
                out.push_str(
                    value
                        .ok_or_else(|| format!("the environment variable \"{name}\" is not set"))?,
                );
                rest = after;
            }
            (c, ..) => {
                out.push(char::from(c));
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// A variable of a text that is not set.
pub(crate) fn unset_variable<'t>(text: &'t str, environment: &Environment) -> Option<&'t str> {
    let variables = text.split("${").skip(1);
    let mut names = variables.filter_map(|rest| rest.split_once('}').map(|(name, _)| name));
    names.find(|&name| !environment.variables.contains_key(name))
}

/// Whether a text has tokens that are known only for a host.
pub(crate) fn depends_on_host(text: &str) -> bool {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '%' && chars.next().is_some_and(|token| "Chjknpr".contains(token)) {
            return true;
        }
    }
    false
}

/// The other user in whose home directory a path begins.
pub(crate) fn tilde_user(path: &str) -> Option<&str> {
    let user = path.strip_prefix('~')?.split('/').next()?;
    (!user.is_empty()).then_some(user)
}

/// Puts a home directory for a leading `~` and the user behind it (`tilde_expand`, misc.c).
pub(crate) fn tilde(path: &str, home: &str) -> String {
    let Some(rest) = path.strip_prefix('~') else {
        return path.into();
    };
    let below = rest.split_once('/').map_or("", |(_, below)| below);
    let home = home.strip_suffix('/').unwrap_or(home);
    format!("{home}/{}", below.trim_start_matches('/'))
}

#[cfg(test)]
mod tests;
