//! Cases written for one rule each.

use crate::Case;

fn case(host: &str, config: &str) -> Case {
    Case {
        files: vec![("config".into(), config.into())],
        host: host.into(),
        ..Case::default()
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = CONFIGS
        .iter()
        .map(|(host, config)| case(host, config))
        .collect();
    cases.extend(with_options());
    cases.extend(with_includes());
    cases.extend(with_commands());
    cases.extend([0, 1].map(deep));
    cases
}

/// A host and the file read for it.
const CONFIGS: &[(&str, &str)] = &[
    ("h", ""),
    // The form of lines.
    ("h", "Port=2222\n"),
    ("h", "Port = 2222\n"),
    ("h", "  \tPort\t2222  \r\n"),
    ("h", "port \"2222\"\n"),
    ("h", "\"port\" 2222\n"),
    ("h", "Port 2222 # comment\n"),
    ("h", "Port 2222#comment\n"),
    ("h", "Port==2222\n"),
    ("h", "=Port 2222\n"),
    ("h", "Port\n"),
    ("h", "Port 2222 3333\n"),
    ("h", "Port \"2222\n"),
    ("h", "Port 2222\x0c\n"),
    ("h", "# only\n\n   # comments\n#"),
    ("h", "User \"a b\"\n"),
    ("h", "User a\\ b\n"),
    ("h", "User 'a\"b'\n"),
    ("h", "User a\\\"b\n"),
    ("h", "User \"\"\n"),
    ("h", "Frobnicate yes\n"),
    ("h", "Host nobody\nFrobnicate yes\n"),
    (
        "h",
        "Protocol 2\nUsePrivilegedPort yes\nRhostsRSAAuthentication no\nCompressionLevel 6\n",
    ),
    // The first value wins.
    ("h", "Port 1\nPort 2\nHost h\nPort 3\nUser u\n"),
    (
        "h",
        "Host x\nPort 1\nHost h\nPort 2\nHost *\nPort 3\nUser u\n",
    ),
    // Host patterns.
    (
        "web1",
        "Host web?\nUser a\nHost web*\nPort 2\nHost *1\nHostName one\n",
    ),
    (
        "web1",
        "Host * !web1\nUser a\nHost !web1 *\nPort 2\nHost !db*\nUser b\n",
    ),
    ("web1", "Host a,web1\nUser a\nHost web1 # other\nUser b\n"),
    ("WEB1", "Host web1\nUser a\nHost WEB*\nUser b\n"),
    ("h", "Host\nUser a\n"),
    ("h", "Host \"\"\nUser a\n"),
    ("a b", "User a\n"),
    // HostName.
    ("h", "HostName %h.Example.COM\n"),
    ("h", "HostName 100%%.%h\n"),
    ("h", "HostName %p.example.com\n"),
    ("H", "User a\n"),
    ("127.1", "HostName %h\n"),
    ("2001:DB8::1", ""),
    ("h", "HostName 0x7F.1\nMatch final host 127.0.0.1\nUser a\n"),
    ("h", "HostName FE80:0::1%lo\n"),
    ("DB", "HostName %h%%\n"),
    // Match.
    ("h", "Match all\nUser a\n"),
    ("h", "Match !all\nUser a\nMatch all\nUser b\n"),
    ("h", "Match host h\nUser a\n"),
    ("h", "Match host=h\nUser a\n"),
    (
        "h",
        "Match host x,h user a\nPort 2\nMatch host h\nUser a\nMatch user a\nPort 3\n",
    ),
    (
        "h",
        "HostName real\nMatch host h\nUser a\nMatch originalhost h\nPort 2\nMatch host real\nUser b\n",
    ),
    ("H", "Match host h\nUser a\nMatch originalhost h\nPort 2\n"),
    (
        "h",
        "Match !host x\nUser a\nMatch host *,!h\nUser b\nPort 4\n",
    ),
    (
        "h",
        "Match localuser *\nUser a\nMatch localuser nobody-here\nPort 2\n",
    ),
    ("h", "Match final\nUser a\nMatch canonical\nPort 2\n"),
    (
        "h",
        "HostName REAL\nHost h\nUser a\nMatch final host real\nPort 2\nHost real\nUser b\nPort 3\n",
    ),
    ("h", "Match final all\nUser a\nMatch !final\nPort 2\n"),
    ("h", "Match\nUser a\n"),
    ("h", "Match host\nUser a\n"),
    ("h", "Match all host h\nUser a\n"),
    ("h", "Match host h all\nUser a\n"),
    ("h", "Match host h user * all\nUser a\n"),
    ("h", "Match weather fine\nUser a\n"),
    ("h", "Match host h # comment\nUser a\n"),
    // Values.
    ("h", "Port 0\n"),
    ("h", "Port 65535\n"),
    ("h", "Port 65536\n"),
    ("h", "Port -1\n"),
    ("h", "Port ssh\n"),
    ("h", "ConnectTimeout 1m30s\n"),
    ("h", "ConnectTimeout 1h5\n"),
    ("h", "ConnectTimeout 2D1W\n"),
    ("h", "ConnectTimeout none\nConnectTimeout 5\n"),
    ("h", "ConnectTimeout soon\n"),
    ("h", "ConnectTimeout 99999999999\n"),
    ("h", "ServerAliveInterval 2m\nServerAliveCountMax 0\n"),
    ("h", "ConnectionAttempts 0\n"),
    ("h", "ConnectionAttempts +4\n"),
    ("h", "ConnectionAttempts 4x\n"),
    ("h", "ConnectionAttempts 2147483647\n"),
    ("h", "ConnectionAttempts 2147483648\n"),
    ("h", "BatchMode YES\n"),
    ("h", "BatchMode true\n"),
    ("h", "BatchMode maybe\n"),
    ("h", "Compression true\n"),
    ("h", "StrictHostKeyChecking off\n"),
    ("h", "StrictHostKeyChecking accept-new\n"),
    ("h", "StrictHostKeyChecking sometimes\n"),
    ("h", "AddressFamily inet6\n"),
    ("h", "LogLevel debug1\n"),
    ("h", "LogLevel loud\n"),
    ("h", "RekeyLimit 1G 1h\n"),
    ("h", "RekeyLimit 1.5M\n"),
    ("h", "RekeyLimit 100\nRekeyLimit 1G 5m\n"),
    ("h", "RekeyLimit default none\nRekeyLimit 1G 5m\n"),
    ("h", "RekeyLimit 15\n"),
    ("h", "RekeyLimit 1X\n"),
    ("h", "RekeyLimit 1Gx\n"),
    ("h", "RekeyLimit 1.2.3M\n"),
    ("h", "RekeyLimit 16 17 18\n"),
    ("h", "RequiredRSASize 2048\n"),
    // Lists.
    ("h", "UserKnownHostsFile ~/a /b/%h/%p \"/c d\"\n"),
    ("h", "UserKnownHostsFile none\nGlobalKnownHostsFile NONE\n"),
    ("h", "UserKnownHostsFile /a none\n"),
    ("h", "UserKnownHostsFile /a \"\"\n"),
    ("h", "GlobalKnownHostsFile ~/a %h\n"),
    (
        "h",
        "User u\nPort 7\nHostName real\nHostKeyAlias Alias\nUserKnownHostsFile /%n/%h/%p/%r/%k/%%\n",
    ),
    ("h", "UserKnownHostsFile /%u/%d/%i/%l/%L\n"),
    ("h", "UserKnownHostsFile /${SSHOAL_TEST}/x\n"),
    ("h", "UserKnownHostsFile /${SSHOAL_UNSET}/x\n"),
    ("h", "UserKnownHostsFile /%q\n"),
    ("h", "UserKnownHostsFile /%\n"),
    ("h", "UserKnownHostsFile /${SSHOAL_TEST\n"),
    ("h", "User u\nPort 7\nUserKnownHostsFile /%C\n"),
    (
        "h",
        "IdentityFile ~/a\nIdentityFile /b\nIdentityFile ~/a\nHost h\nIdentityFile /c\n",
    ),
    ("h", "IdentityFile none\n"),
    ("h", "IdentityFile /a /b\n"),
    ("h", "CertificateFile ~/a\nCertificateFile /b\n"),
    ("h", "IdentityAgent none\n"),
    ("h", "IdentityAgent SSH_AUTH_SOCK\n"),
    ("h", "IdentityAgent $SSHOAL_TEST\n"),
    ("h", "IdentityAgent ~/agent\n"),
    ("h", "IdentityAgent ${SSHOAL_TEST}/x\n"),
    ("h", "IdentityAgent ${SSHOAL_UNSET}/x\n"),
    ("h", "IdentityAgent $SSHOAL-TEST\n"),
    ("h", "ForwardAgent yes\nForwardAgent /path\n"),
    ("h", "ForwardAgent /path\nForwardAgent no\n"),
    ("h", "ForwardAgent $SSHOAL_TEST\n"),
    (
        "h",
        "SendEnv LANG LC_*\nSendEnv -LC_A* X\nHost h\nSendEnv Y\n",
    ),
    ("h", "SendEnv LC_ALL LC_CTYPE LANG\nSendEnv -LC_*\n"),
    ("h", "SendEnv A=B\n"),
    ("h", "SetEnv A=1 B=\"2 3\" A=4\nSetEnv C=5\n"),
    ("h", "SetEnv A\n"),
    ("h", "PreferredAuthentications publickey,password\n"),
    ("h", "PubkeyAuthentication unbound\n"),
    (
        "h",
        "ChallengeResponseAuthentication no\nKeepAlive no\nIdentityFile2 /x\n",
    ),
    ("h", "RemoteCommand echo %h %n # not a comment\n"),
    ("h", "RemoteCommand none\n"),
    ("h", "RemoteCommand =  uptime\n"),
    ("h", "RemoteCommand echo \"open\n"),
    ("h", "RequestTTY force\n"),
    // Algorithms.
    (
        "h",
        "Ciphers aes128-ctr,aes256-ctr\nMACs +hmac-md5\nKexAlgorithms -ecdh*,diffie*\n",
    ),
    (
        "h",
        "Ciphers ^aes256-gcm@openssh.com\nHostKeyAlgorithms ^rsa-sha2-512\n",
    ),
    (
        "h",
        "HostKeyAlgorithms +ssh-rsa\nPubkeyAcceptedAlgorithms -sk-*\n",
    ),
    ("h", "CASignatureAlgorithms ssh-ed25519\n"),
    ("h", "Ciphers -chacha*\nCiphers aes128-ctr\n"),
    ("h", "Ciphers \"\"\n"),
    // Proxies.
    ("h", "ProxyJump a\n"),
    ("h", "ProxyJump u@a:2222,b,[::1]:22,10.0.0.1\n"),
    ("h", "ProxyJump ssh://u@a:2222\n"),
    ("h", "ProxyJump none\n"),
    ("h", "ProxyJump a:0\n"),
    ("h", "ProxyJump a:b\n"),
    ("h", "ProxyJump @a\n"),
    ("h", "ProxyJump a,,b\n"),
    ("h", "ProxyJump [a\n"),
    ("h", "ProxyJump h\n"),
    ("h", "ProxyJump h:23\n"),
    ("h", "ProxyJump ssh://[::1]\n"),
    ("h", "ProxyJump ssh://a.:22/\n"),
    ("h", "ProxyJump a/22\n"),
    ("h", "ProxyJump a # note\n"),
    ("h", "Host x\nProxyJump [a\n"),
    ("h", "ProxyCommand nc %h %p # x\nProxyJump a\n"),
    ("h", "ProxyJump a\nProxyCommand nc %h %p\n"),
    ("h", "ProxyCommand none\nProxyJump a\n"),
    ("h", "ProxyCommand none\n"),
    // Forwards.
    (
        "h",
        "LocalForward 80 a:81\nLocalForward 80 a:81\nDynamicForward 80\n",
    ),
    ("h", "LocalForward /%h/%r/${SSHOAL_DEV} /b\nUser u\n"),
    (
        "h",
        "LocalForward 80 [::1]:81\nLocalForward a\\:b:80 c:81\n",
    ),
    ("h", "LocalForward 80\n"),
    ("h", "LocalForward 80 \"\"\n"),
    ("h", "LocalForward 80 a:81 x\n"),
    ("h", "LocalForward 0 a:81\n"),
    ("h", "LocalForward ${SSHOAL_UNSET}/a /b\n"),
    (
        "h",
        "RemoteForward 0 a:81\nRemoteForward /a\nRemoteForward a:80\n",
    ),
    ("h", "RemoteForward 80 \"\"\n"),
    ("h", "DynamicForward a:0\n"),
    (
        "h",
        "Tunnel yes\nLocalForward 80 a:81\nClearAllForwardings yes\n",
    ),
    // Forms of their own.
    ("h", "EscapeChar \" \"\n"),
    ("h", "EscapeChar ^?\n"),
    (
        "h",
        "StreamLocalBindMask 0111\nHost x\nStreamLocalBindMask 0\n",
    ),
    (
        "h",
        "Host x\nSyslogFacility auth\nHost *\nSyslogFacility daemon\n",
    ),
    ("h", "TunnelDevice 2147483645:any\n"),
    ("h", "TunnelDevice 2147483646\n"),
    ("h", "IPQoS\taf11 0x28\n"),
    ("h", "LogVerbose a b\nLogVerbose c\n"),
    ("h", "LogVerbose # nothing\n"),
    ("h", "UserKnownHostsFile # nothing\nUserKnownHostsFile /a\n"),
    ("h", "AddKeysToAgent confirm 0\n"),
    ("h", "AddKeysToAgent no 5\n"),
    ("h", "ControlPersist 0\n"),
    ("h", "ControlPath none\nControlPath /a\n"),
    ("h", "ControlPath /%j%q\n"),
    ("h", "CanonicalDomains a.b. c\n"),
    ("h", "CanonicalDomains none a\n"),
    ("h", "CanonicalizePermittedCNAMEs none\n"),
    ("h", "PermitRemoteOpen a\n"),
    ("h", "PermitRemoteOpen a:* [b]:22\n"),
    (
        "h",
        "SecurityKeyProvider none\nPKCS11Provider none\nKnownHostsCommand none\n",
    ),
    ("h", "GSSAPIKexAlgorithms gss-gex-sha1-x,gss-group1-sha1-\n"),
    ("h", "GSSAPIKexAlgorithms gss-gex-sha1\n"),
    ("h", "UpdateHostKeys ask\nRequestTTY no\n"),
    ("h", "UpdateHostKeys ask\nLogLevel quiet\n"),
    (
        "h",
        "UpdateHostKeys ask\nControlPersist yes\nControlPath /a\n",
    ),
    ("h", "VerifyHostKeyDNS yes\n"),
    ("h", "ProxyUseFdpass yes\nProxyJump a\n"),
    ("h", "ProxyUseFdpass yes\nProxyCommand -\n"),
    ("h", "ForkAfterAuthentication yes\n"),
    ("h", "ForkAfterAuthentication yes\nSessionType none\n"),
    ("h", "SessionType subsystem\n"),
    ("h", "ExitOnForwardFailure yes\nForwardAgent /dev/null\n"),
    // Commands that decide.
    ("h", "Match exec true\nUser a\nMatch !exec false\nPort 2\n"),
    (
        "h",
        "Match exec \"test %h%n%r%p%k = realhu22real\"\nCompression yes\n",
    ),
    (
        "h",
        "User u\nHostName real\nMatch exec \"test %h%n%r%p%k = realhu22real\"\nCompression yes\n",
    ),
    (
        "h",
        "HostKeyAlias k\nMatch exec \"test %k%%%u = k%%%u\"\nPort 2\n",
    ),
    ("h", "Match exec %q\n"),
    ("h", "Match exec \"exit 3\"\nUser a\n"),
    ("h", "Match exec \"kill -9 $$\"\nUser a\n"),
    ("h", "Match host x exec \"kill -9 $$\"\nUser a\n"),
    // Names.
    (
        "H",
        "CanonicalizeHostname yes\nHost h\nUser a\nHost H\nPort 2\n",
    ),
    (
        "h",
        "CanonicalizeHostname yes\nSendEnv A\nMatch canonical\nUser a\n",
    ),
    (
        "h",
        "CanonicalizeHostname yes\nCanonicalizeFallbackLocal no\n",
    ),
    (
        "a.b.c",
        "CanonicalizeHostname yes\nCanonicalizeFallbackLocal no\nCanonicalDomains x\n",
    ),
    (
        "h",
        "CanonicalizeHostname yes\nCanonicalDomains x\nProxyCommand y\n",
    ),
    (
        "h",
        "CanonicalizeHostname yes\nCanonicalDomains x\nProxyJump y\n",
    ),
    (
        "127.1",
        "CanonicalizeHostname yes\nCanonicalDomains x\nHost 127.0.0.1\nUser a\n",
    ),
    ("127.1", "AddressFamily inet6\n"),
    ("0X7F.1", "AddressFamily inet6\n"),
    (
        "1.2.3.256",
        "CanonicalizeHostname yes\nCanonicalizeFallbackLocal no\n",
    ),
    ("localhost", "CanonicalizePermittedCNAMEs *:*\n"),
    (
        "LocalHost",
        "CanonicalizeHostname yes\nCanonicalizePermittedCNAMEs *:*\n",
    ),
    ("h", "CanonicalizePermittedCNAMEs *:*\nProxyCommand x\n"),
    // What ssh only warns of.
    (
        "h",
        "AFSTokenPassing yes\nCompressionLevel 6\nHost x\nKerberosAuthentication no\n",
    ),
    ("h", "CompressionLevel\n"),
    ("h", "UseRoaming \"open\n"),
    // Algorithms that OpenSSH does not know.
    ("h", "Ciphers aes128-crt\n"),
    ("h", "Ciphers +aes*\n"),
    ("h", "Ciphers -aes*,nothing\n"),
    ("h", "Ciphers -*\n"),
    ("h", "MACs x\n"),
    ("h", "KexAlgorithms ^x\n"),
    ("h", "HostKeyAlgorithms *ed25519*\n"),
    ("h", "HostKeyAlgorithms x*\n"),
    ("h", "Host x\nHostbasedAcceptedAlgorithms x\n"),
    // Unknown keywords.
    ("h", "IgnoreUnknown Frob*,x\nFrobnicate yes\nX y z\n"),
    ("h", "Frobnicate yes\nIgnoreUnknown Frobnicate\n"),
    ("h", "IgnoreUnknown frob*\nIgnoreUnknown x\nX yes\n"),
    ("h", "Host h\nIgnoreUnknown frob\nHost other\nFrob yes\n"),
    (
        "other",
        "Host h\nIgnoreUnknown frob\nHost other\nFrob yes\n",
    ),
    ("h", "IgnoreUnknown frob\nFrob\n"),
    ("h", "IgnoreUnknown frob\nFrob \"open\n"),
];

fn with_options() -> Vec<Case> {
    let file =
        "Port 1\nUser file\nHostName real\nIdentityFile /file\nMatch user query\nCompression yes\n";
    let lists: &[&[&str]] = &[
        &["Port=2", "User=option"],
        &["Port 2", "port 3"],
        &["IdentityFile=/option", "IdentityFile /file"],
        &["HostName=other%h"],
        &["Host=h"],
        &["Match all"],
        &["Include x"],
        &["Frob=1"],
        &["IgnoreUnknown=frob", "Frob=1"],
        &["ProxyJump=a", "ProxyCommand=b"],
        &["SendEnv=A", "SendEnv=-A B"],
        &["Port"],
        &["Port=x"],
        &[
            "ConnectTimeout=3",
            "BatchMode=yes",
            "StrictHostKeyChecking=no",
        ],
    ];
    let mut cases = Vec::new();
    for options in lists {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        cases.push(Case {
            options: options.clone(),
            ..case("h", file)
        });
        let user = Some("query".to_string());
        // With ssh an option beats what is given with the host; here it is the other way round.
        if !options
            .iter()
            .any(|option| option.starts_with("User") || option.starts_with("Port"))
        {
            cases.push(Case {
                options,
                user,
                port: Some(77),
                ..case("h", file)
            });
        }
    }
    cases
}

fn with_includes() -> Vec<Case> {
    let include = |main: &str, others: &[&str]| {
        let mut case = case("h", main);
        for (index, content) in others.iter().enumerate() {
            case.files
                .push((format!("inc{index}"), content.to_string()));
        }
        case
    };
    vec![
        include("Include @DIR@/inc0\nPort 2\n", &["Port 1\nUser a\n"]),
        include(
            "Include @DIR@/inc0 @DIR@/inc1\n",
            &["User a\n", "User b\nPort 2\n"],
        ),
        include("Include @DIR@/absent\nPort 2\n", &[]),
        include(
            "Host x\nInclude @DIR@/inc0\nHost h\nPort 2\n",
            &["User a\nHost h\nPort 1\n"],
        ),
        include(
            "Host h\nInclude @DIR@/inc0\nPort 2\n",
            &["Host x\nUser a\nHost *\nUser b\n"],
        ),
        include(
            "Host h\nInclude @DIR@/inc0\nUser c\n",
            &["Match host x\nUser a\n"],
        ),
        include("Match user a\nInclude @DIR@/inc0\n", &["Port 9\n"]),
        include(
            "User a\nMatch user a\nInclude @DIR@/inc0\n",
            &["Port 9\nMatch host h\nCompression yes\n"],
        ),
        include(
            "Include @DIR@/inc0\n",
            &["Include @DIR@/inc1\nUser a\n", "Port 3\nUser b\n"],
        ),
        include("Host x\nInclude @DIR@/inc0\n", &["Frob yes\n"]),
        include("Include @DIR@/config\n", &[]),
        include("Include \"\"\n", &[]),
        include(
            "Include @DIR@/inc*\nPort 3\n",
            &["User a\n", "User b\nPort 2\n"],
        ),
        include(
            "Include @DIR@/none* @DIR@/inc0\n",
            &["Host x\nUser a\nMatch all\nUser b\n"],
        ),
        include("Include @DIR@/${SSHOAL_UNSET}/x\nPort 2\n", &[]),
        include("Host x\nInclude @DIR@/inc0\n", &["Match final\nUser a\n"]),
        include(
            "Match exec false\nInclude @DIR@/inc0\n",
            &["Match exec true\nUser a\n"],
        ),
        include("Include \"@DIR@/inc0\" # twice\n", &["SendEnv A\n"]),
    ]
}

fn with_commands() -> Vec<Case> {
    let files = [
        "RemoteCommand true\n",
        "RemoteCommand none\n",
        "ForkAfterAuthentication yes\n",
        "UpdateHostKeys ask\n",
        "SessionType subsystem\n",
    ];
    let with_command = |file: &&str| Case {
        command: vec!["echo".into(), "a b".into()],
        ..case("h", file)
    };
    let mut cases: Vec<Case> = files.iter().map(with_command).collect();
    for command in [vec![], vec!["sftp".to_string()]] {
        cases.push(Case {
            options: vec!["SessionType=subsystem".into()],
            command,
            ..case("h", "")
        });
    }
    cases
}

/// Files included sixteen deep, which is allowed, and `more`.
fn deep(more: usize) -> Case {
    let mut case = case("h", "Include @DIR@/inc0\nPort 2\n");
    let last = 15 + more;
    for index in 0..last {
        let content = format!("Include @DIR@/inc{}\n", index + 1);
        case.files.push((format!("inc{index}"), content));
    }
    case.files
        .push((format!("inc{last}"), "User deep\n".into()));
    case
}
