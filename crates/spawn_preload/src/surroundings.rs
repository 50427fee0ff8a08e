//! What in the environment would change what a shell makes of a plain command line.

/// Variables that change what dash or bash does at its start or when it looks for a program: options of bash, files that
/// bash is not to find, and where dash refuses to start if the value is no number. IFS and PPID both shells set anew, for
/// what they start, too.
const CHANGES_THE_SHELL: &[&[u8]] = &[
    b"SHELLOPTS",
    b"BASHOPTS",
    b"EXECIGNORE",
    b"OPTIND",
    b"IFS",
    b"PPID",
];
/// How bash names the variables in which it hands functions on.
const EXPORTED_FUNCTION: &[u8] = b"BASH_FUNC_";
/// How bash began the value of such a variable when it had any name.
const FUNCTION_BODY: &[u8] = b"() ";

/// The variables as far as they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Surroundings<'a> {
    pub(crate) path: Option<&'a [u8]>,
}

/// Reads `NAME=value` entries. None: only a shell can say what a command line means among these.
pub(crate) fn read<'a>(variables: impl Iterator<Item = &'a [u8]>) -> Option<Surroundings<'a>> {
    let mut path = None;
    for variable in variables {
        let Some(at) = variable.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let (name, value) = (variable.get(..at)?, variable.get(at + 1..)?);
        let changes = name.starts_with(EXPORTED_FUNCTION)
            || value.starts_with(FUNCTION_BODY)
            || CHANGES_THE_SHELL.contains(&name);
        // Of two, a shell takes the last and libc the first.
        let is_second = name == b"PATH" && path.replace(value).is_some();
        if changes || is_second {
            return None;
        }
    }
    Some(Surroundings { path })
}

/// The places where a program of this name may be, in the order of PATH; None at each element of which the shells make
/// something of their own (a relative one, `%func` of dash, the tilde of bash).
pub(crate) fn places<'a>(
    path: &'a [u8],
    name: &'a [u8],
) -> impl Iterator<Item = Option<Vec<u8>>> + 'a {
    path.split(|byte| *byte == b':').map(move |folder| {
        let is_plain =
            folder.starts_with(b"/") && !folder.ends_with(b"/") && !folder.contains(&b'%');
        is_plain.then(|| [folder, b"/", name].concat())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn path_of<'a>(variables: &[&'a str]) -> Option<Option<&'a [u8]>> {
        read(variables.iter().map(|variable| variable.as_bytes())).map(|found| found.path)
    }

    #[test]
    fn the_path_is_found_among_others_or_not_at_all() {
        assert_eq!(
            path_of(&["HOME=/", "PATH=/bin:/usr/bin", "XPATH=y"]),
            Some(Some(b"/bin:/usr/bin".as_slice()))
        );
        assert_eq!(path_of(&["PATH="]), Some(Some(b"".as_slice())));
        assert_eq!(path_of(&["HOME=/", "no equals sign"]), Some(None));
    }

    #[test]
    fn functions_options_and_a_second_path_are_the_shell_s() {
        for variable in [
            "BASH_FUNC_ls%%=() { :; }",
            "BASH_FUNC_ls()=() { :; }",
            "BASH_FUNC_ls%%=whatever",
            "ls=() { :; }",
            "SHELLOPTS=xtrace",
            "BASHOPTS=extglob",
            "EXECIGNORE=*",
            "OPTIND=x",
            "IFS=x",
            "PPID=1",
            "PATH=/sbin",
        ] {
            assert_eq!(path_of(&["PATH=/bin", variable]), None, "{variable}");
        }
        assert!(path_of(&["PATH=/bin", "A=x () {", "SHELL=/bin/sh", "BASH=y"]).is_some());
    }

    #[test]
    fn odd_elements_of_the_path_are_the_shell_s() {
        let all: Vec<_> = places(b"/bin:.:/x/::/a%b:~/bin:/usr/bin", b"ls").collect();
        let wanted = [
            Some("/bin/ls"),
            None,
            None,
            None,
            None,
            None,
            Some("/usr/bin/ls"),
        ];
        let wanted: Vec<_> = wanted
            .map(|place| place.map(|place| place.as_bytes().to_vec()))
            .into();
        assert_eq!(all, wanted);
        assert_eq!(places(b"", b"ls").collect::<Vec<_>>(), [None]);
    }
}
