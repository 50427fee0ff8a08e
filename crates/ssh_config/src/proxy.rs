//! The command line of `ProxyCommand`.

use crate::error::{Problem, ResolveError};
use crate::origin::Setting;
use crate::resolve::{is_host_name, is_user_name};
use crate::resolved::{Proxy, Resolved};

/// For messages.
const WHERE: &str = "ProxyCommand";

impl Resolved {
    /// The command of `ProxyCommand` with `%%`, `%h`, `%k`, `%n`, `%p` and `%r` expanded (`expand_proxy_command`,
    /// sshconnect.c); `None` if the host is reached otherwise. It is for a shell, as it stands.
    ///
    /// # Errors
    /// The line, if it has other tokens, or if a name or user that it has a token for is not harmless in a shell: they
    /// may come from an inventory.
    pub fn proxy_command(&self) -> Result<Option<Setting<String>>, ResolveError> {
        let proxy = &self.connection.proxy;
        let Proxy::Command(command) = &proxy.value else {
            return Ok(None);
        };
        let origin = proxy.origin.clone();
        match self.with_proxy_tokens(command) {
            Ok(command) => Ok(Some(Setting::new(command, origin))),
            Err(why) => Err(ResolveError::Line(Problem { origin, why })),
        }
    }

    fn with_proxy_tokens(&self, command: &str) -> Result<String, String> {
        let connection = &self.connection;
        let alias = self.host_keys.host_key_alias.as_ref();
        let mut out = String::with_capacity(command.len());
        let mut rest = command;
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(before);
            let mut chars = after.chars();
            match chars.next() {
                Some('%') => out.push('%'),
                Some('h') => {
                    out.push_str(harmless(&connection.host_name.value, WHERE, is_host_name)?)
                }
                Some('k') => {
                    let name = alias.map_or(&self.host, |alias| &alias.value);
                    out.push_str(harmless(name, WHERE, is_host_name)?);
                }
                Some('n') => out.push_str(harmless(&self.host, WHERE, is_host_name)?),
                Some('p') => out.push_str(&connection.port.value.to_string()),
                Some('r') => out.push_str(harmless(&connection.user.value, WHERE, is_user_name)?),
                Some(token) => return Err(format!("\"%{token}\" has no meaning in ProxyCommand")),
                None => return Err("\"%\" at the end of ProxyCommand".to_owned()),
            }
            rest = chars.as_str();
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// The value, unless a shell that reads it would make something else of it.
pub(crate) fn harmless<'v>(
    value: &'v str,
    place: &str,
    is_harmless: impl Fn(&str) -> bool,
) -> Result<&'v str, String> {
    match is_harmless(value) {
        true => Ok(value),
        false => Err(format!(
            "\"{value}\" is not put into {place}: a shell would make something else of it"
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::{Answers, Environment, Loader, Query};

    fn command(options: &[&str]) -> Result<Option<String>, String> {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let loader = Loader::new(&options, Some("none"), Environment::default());
        let query = Query {
            host: "web1",
            user: Some("me"),
            ..Query::default()
        };
        let config = loader.finish().unwrap();
        let resolved = config.resolve(&query, &Answers::default()).unwrap();
        let command = resolved
            .proxy_command()
            .map_err(|error| error.to_string())?;
        Ok(command.map(|set| set.value))
    }

    #[test]
    fn tokens_are_those_of_expand_proxy_command_and_nothing_else_is_touched() {
        let line = "ProxyCommand=a %h:%p %r@%n %k 100%% ${HOME} ~ $(b)";
        let expected = "a 10.0.0.1:2022 me@web1 web1 100% ${HOME} ~ $(b)";
        let options = ["HostName=10.0.0.1", "Port=2022", line];
        assert_eq!(command(&options), Ok(Some(expected.to_owned())));
        let alias = ["HostKeyAlias=Pool", "ProxyCommand=a %k"];
        assert_eq!(command(&alias), Ok(Some("a pool".to_owned())));
        assert_eq!(command(&["ProxyCommand=none"]), Ok(None));
        assert_eq!(command(&["ProxyJump=gate"]), Ok(None));
        for (options, words) in [
            (["ProxyCommand=a %d", "Port=1"], "\"%d\""),
            (["ProxyCommand=a %", "Port=1"], "end"),
            (["ProxyCommand=a %h", "HostName=$(b)"], "\"$(b)\""),
        ] {
            let error = command(&options).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
