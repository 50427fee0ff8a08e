//! Whole messages against bytes written by hand from the RFCs: what a round trip cannot show.

use sshoal_wire::{
    AuthMethod, ChannelData, ChannelOpen, Counted, Dialect, Disconnect, ExtInfo, KexDhInit,
    KexDialect, KexGexRequest, KexInit, Message, NameList, Put, UserauthDialect, UserauthFailure,
    UserauthInfoRequest, UserauthInfoResponse, UserauthRequest, reason,
};

fn payload<'a>(message: impl Into<Message<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    message.into().encode(&mut out);
    out
}

#[test]
fn disconnect() {
    let message = Disconnect {
        reason_code: reason::DISCONNECT_BY_APPLICATION,
        description: b"bye",
        language_tag: b"",
    };
    assert_eq!(payload(message), b"\x01\0\0\0\x0b\0\0\0\x03bye\0\0\0\0");
    assert_eq!(reason::disconnect(11), "ended by the application");
}

#[test]
fn disconnect_without_its_language_tag() {
    let short = b"\x01\0\0\0\x02\0\0\0\x03why";
    let expected = Disconnect {
        reason_code: 2,
        description: b"why",
        language_tag: b"",
    };
    assert_eq!(
        Message::decode(short, Dialect::default()),
        Ok(expected.into())
    );
}

#[test]
fn kexinit() {
    let message = KexInit {
        cookie: *b"0123456789abcdef",
        kex_algorithms: NameList::new("k"),
        server_host_key_algorithms: NameList::new("h"),
        encryption_algorithms_client_to_server: NameList::new("e1"),
        encryption_algorithms_server_to_client: NameList::new("e2"),
        mac_algorithms_client_to_server: NameList::new("m1"),
        mac_algorithms_server_to_client: NameList::new("m2"),
        compression_algorithms_client_to_server: NameList::new("c1"),
        compression_algorithms_server_to_client: NameList::new("c2"),
        languages_client_to_server: NameList::new(""),
        languages_server_to_client: NameList::new(""),
        first_kex_packet_follows: true,
        reserved: 0,
    };
    let mut expected = b"\x140123456789abcdef".to_vec();
    for list in ["k", "h", "e1", "e2", "m1", "m2", "c1", "c2", "", ""] {
        expected.put_string(list.as_bytes());
    }
    expected.extend_from_slice(&[1, 0, 0, 0, 0]);
    assert_eq!(payload(message), expected);
}

#[test]
fn a_public_key_request_and_what_its_signature_covers() {
    let request = |signature| UserauthRequest {
        user_name: b"me",
        service_name: b"ssh-connection",
        method: AuthMethod::PublicKey {
            algorithm: b"ssh-ed25519",
            key: b"KEY",
            signature,
        },
    };
    let signed_part =
        b"\x32\0\0\0\x02me\0\0\0\x0essh-connection\0\0\0\x09publickey\x01\0\0\0\x0bssh-ed25519\0\0\0\x03KEY";
    let mut expected = signed_part.to_vec();
    expected.put_string(b"SIG");
    assert_eq!(payload(request(Some(b"SIG"))), expected);

    // Before the signature is made as after it.
    for signature in [None, Some(&b"SIG"[..])] {
        let mut signed = Vec::new();
        request(signature).put_signed_data(b"session", &mut signed);
        let mut expected = b"\0\0\0\x07session".to_vec();
        expected.extend_from_slice(signed_part);
        assert_eq!(signed, expected);
    }
}

#[test]
fn a_host_bound_request_ends_in_the_host_key_and_then_the_signature() {
    let request = UserauthRequest {
        user_name: b"u",
        service_name: b"s",
        method: AuthMethod::HostboundPublicKey {
            algorithm: b"a",
            key: b"k",
            signature: Some(b"sig"),
            host_key: b"host",
        },
    };
    let expected = b"\x32\0\0\0\x01u\0\0\0\x01s\0\0\0\x23publickey-hostbound-v00@openssh.com\
        \x01\0\0\0\x01a\0\0\0\x01k\0\0\0\x04host\0\0\0\x03sig";
    assert_eq!(payload(request), expected);
    let mut signed = Vec::new();
    request.put_signed_data(b"", &mut signed);
    assert_eq!(signed[4..], expected[..expected.len() - 7]);
}

#[test]
fn passwords() {
    let request = |new_password| UserauthRequest {
        user_name: b"u",
        service_name: b"s",
        method: AuthMethod::Password {
            password: b"old",
            new_password,
        },
    };
    let head = b"\x32\0\0\0\x01u\0\0\0\x01s\0\0\0\x08password";
    assert_eq!(
        payload(request(None)),
        [&head[..], b"\0\0\0\0\x03old"].concat()
    );
    assert_eq!(
        payload(request(Some(b"new"))),
        [&head[..], b"\x01\0\0\0\x03old\0\0\0\x03new"].concat()
    );
    assert_eq!(format!("{:?}", request(None).method), "password");
}

#[test]
fn an_unknown_method_is_an_error() {
    let wire = b"\x32\0\0\0\x01u\0\0\0\x01s\0\0\0\x09hostbased";
    let error = Message::decode(wire, Dialect::default()).map_err(|error| error.to_string());
    assert_eq!(
        error,
        Err(
            "the peer's USERAUTH_REQUEST is malformed: method_name is a name that this program does not know"
                .to_owned()
        )
    );
}

#[test]
fn keyboard_interactive() {
    let dialect = Dialect {
        userauth: UserauthDialect::KeyboardInteractive,
        ..Dialect::default()
    };
    let wire = b"\x3c\0\0\0\x01n\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x09Password:\0\0\0\0\x05Code:\x01";
    let Ok(Message::UserauthInfoRequest(UserauthInfoRequest { name, prompts, .. })) =
        Message::decode(wire, dialect)
    else {
        panic!("not an INFO_REQUEST");
    };
    let shown: Vec<_> = prompts.iter().map(|one| (one.prompt, one.echo)).collect();
    assert_eq!(name, b"n");
    assert_eq!(shown, [(&b"Password:"[..], false), (&b"Code:"[..], true)]);

    let answers: Vec<&[u8]> = vec![b"pw", b"42"];
    let response = UserauthInfoResponse {
        responses: (&answers).into(),
    };
    assert_eq!(payload(response), b"\x3d\0\0\0\x02\0\0\0\x02pw\0\0\0\x0242");
    let none: &[&[u8]] = &[];
    assert_eq!(
        payload(UserauthInfoResponse {
            responses: none.into()
        }),
        b"\x3d\0\0\0\0"
    );
}

#[test]
fn failure_lists_methods() {
    let wire = b"\x33\0\0\0\x12publickey,password\x01";
    let Ok(Message::UserauthFailure(UserauthFailure {
        authentications_that_can_continue,
        partial_success,
    })) = Message::decode(wire, Dialect::default())
    else {
        panic!("not a FAILURE");
    };
    assert!(authentications_that_can_continue.contains("password") && partial_success);
}

#[test]
fn ext_info() {
    let wire = b"\x07\0\0\0\x01\0\0\0\x0fserver-sig-algs\0\0\0\x0bssh-ed25519";
    let Ok(Message::ExtInfo(ExtInfo { extensions })) = Message::decode(wire, Dialect::default())
    else {
        panic!("not an EXT_INFO");
    };
    let all: Vec<_> = Counted::into_iter(extensions)
        .map(|extension| (extension.name, extension.value))
        .collect();
    assert_eq!(all, [(&b"server-sig-algs"[..], &b"ssh-ed25519"[..])]);
}

#[test]
fn method_specific_numbers_follow_the_dialect() {
    assert_eq!(payload(KexDhInit { e: &[0x80] }), b"\x1e\0\0\0\x02\0\x80");
    let request = KexGexRequest {
        min: 2048,
        n: 3072,
        max: 8192,
    };
    let wire = b"\x22\0\0\x08\0\0\0\x0c\0\0\0\x20\0";
    assert_eq!(payload(request), wire);
    let dialect = |kex| Dialect {
        kex,
        ..Dialect::default()
    };
    assert_eq!(
        Message::decode(wire, dialect(KexDialect::GroupExchange)),
        Ok(request.into())
    );
    assert_eq!(
        Message::decode(wire, dialect(KexDialect::Ecdh)),
        Ok(Message::Unknown { number: 34 })
    );
}

#[test]
fn channels() {
    let open = ChannelOpen {
        channel_type: b"session",
        sender_channel: 1,
        initial_window_size: 0x20_0000,
        maximum_packet_size: 0x8000,
        data: b"",
    };
    assert_eq!(
        payload(open),
        b"\x5a\0\0\0\x07session\0\0\0\x01\0\x20\0\0\0\0\x80\0"
    );
    let data = ChannelData {
        recipient_channel: 7,
        data: b"hello",
    };
    assert_eq!(payload(data), b"\x5e\0\0\0\x07\0\0\0\x05hello");
}
