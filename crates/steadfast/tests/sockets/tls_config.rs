//! What is said of a TLS configuration that cannot be used: which file, and what was expected of it.

use std::path::{Path, PathBuf};

use rcgen::KeyPair;
use steadfast::transport::{Pool, PoolConfig, Proxy, TlsConfigError, TlsOptions};

use crate::tls_server::*;

fn error(change: impl FnOnce(&mut TlsOptions)) -> TlsConfigError {
    try_pool(HOST, 443, Vec::new(), |config| change(&mut config.tls)).unwrap_err()
}

/// The message with the files' names in place of their paths.
fn text(error: &TlsConfigError) -> String {
    let folder = format!("{}/{}-", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    error.to_string().replace(&folder, "")
}

#[track_caller]
fn assert_names(error: &TlsConfigError, path: &Path, expected: &str) {
    assert_eq!(text(error), expected);
    assert_eq!(error.path(), Some(path));
}

#[test]
fn a_root_file_that_cannot_be_used_is_named() {
    let missing = PathBuf::from("/no/such/file.pem");
    let found = error(|tls| tls.extra_roots = vec![missing.clone()]);
    assert_eq!(found.path(), Some(missing.as_path()));
    let said = found.to_string();
    assert!(said.starts_with("the root certificates in '/no/such/file.pem' cannot be read: "), "{said}");
    for (name, content, expected) in [
        ("r-empty.pem", "", "'r-empty.pem' has no certificate; expected one or more PEM sections CERTIFICATE"),
        (
            "r-key.pem",
            &KeyPair::generate().unwrap().serialize_pem(),
            "'r-key.pem' has no certificate; expected one or more PEM sections CERTIFICATE",
        ),
        (
            "r-cut.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n",
            "'r-cut.pem' is not valid PEM; expected one or more CERTIFICATE sections: a section has no END line",
        ),
        (
            "r-start.pem",
            "-----BEGIN CERTIFICATE-----AAAA\n",
            "'r-start.pem' is not valid PEM; expected one or more CERTIFICATE sections: a BEGIN line does not end after \
             its five dashes",
        ),
        (
            "r-base64.pem",
            "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
            "'r-base64.pem' is not valid PEM; expected one or more CERTIFICATE sections: a section is not base64",
        ),
        (
            "r-rubbish.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "certificate 1 in 'r-rubbish.pem' cannot be used as a root; expected an X.509 certificate: invalid peer \
             certificate: BadEncoding",
        ),
    ] {
        let path = file(name, content);
        assert_names(&error(|tls| tls.extra_roots = vec![path.clone()]), &path, expected);
    }
    let large = file("r-large.pem", &"x".repeat(16 * 1024 * 1024 + 1));
    let expected = "'r-large.pem' is larger than 16 MiB; expected one or more CERTIFICATE sections";
    assert_names(&error(|tls| tls.extra_roots = vec![large.clone()]), &large, expected);
}

#[test]
fn without_https_no_file_is_read() {
    let mut plain = PoolConfig::new(false, HOST, 80);
    plain.proxy = Proxy::Off;
    plain.tls.extra_roots = vec![PathBuf::from("/no/such/file.pem")];
    plain.tls.identity = Some(PathBuf::from("/no/such/file.pem"));
    plain.tls.server_name = Some("not a name".to_owned());
    let pool = Pool::new(plain, std::sync::Arc::new(Here)).unwrap();
    assert!(!pool.reload_tls().unwrap());
}

#[test]
fn an_identity_that_cannot_be_used_is_named() {
    let authority = Authority::new("ours");
    let (ours, other) = (authority.issue("client"), authority.issue("client"));
    let (certificate, key) = (ours.certificate.pem(), ours.key.serialize_pem());
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AA\n\nMIIB\n\
               -----END RSA PRIVATE KEY-----\n";
    let rubbish = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (name, content, expected) in [
        (
            "i-text.pem",
            "hello".to_owned(),
            "'i-text.pem' has no certificate; expected one or more PEM sections CERTIFICATE",
        ),
        ("i-key.pem", key.clone(), "'i-key.pem' has no certificate; expected one or more PEM sections CERTIFICATE"),
        (
            "i-cut.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n".to_owned(),
            "'i-cut.pem' is not valid PEM; expected CERTIFICATE sections and one PRIVATE KEY section: a section has no \
             END line",
        ),
        (
            "i-chain.pem",
            certificate.clone() + rubbish + &key,
            "certificate 2 in 'i-chain.pem' cannot be used as a client certificate; expected an X.509 certificate: \
             invalid peer certificate: BadEncoding",
        ),
        (
            "i-alone.pem",
            certificate.clone(),
            "'i-alone.pem' has no private key; expected one PEM section PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY \
             in it, or in the file of tls_identity_key",
        ),
        ("i-two.pem", ours.pem() + &key, "'i-two.pem' has 2 private keys; expected one"),
        (
            "i-encrypted.pem",
            certificate.clone() + encrypted,
            "the private key in 'i-encrypted.pem' is encrypted; expected one without a passphrase",
        ),
        (
            "i-old.pem",
            certificate.clone() + old,
            "the private key in 'i-old.pem' is encrypted; expected one without a passphrase",
        ),
        (
            "i-unusable.pem",
            certificate.clone() + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "the private key in 'i-unusable.pem' cannot be used; expected RSA (2048 bits or more), ECDSA (P-256, P-384) \
             or Ed25519, as PKCS#8, PKCS#1 or SEC1",
        ),
        (
            "i-mismatch.pem",
            certificate.clone() + &other.key.serialize_pem(),
            "the private key in 'i-mismatch.pem' does not belong to the first certificate in 'i-mismatch.pem'; expected \
             that certificate's own key, and the chain after it",
        ),
    ] {
        let path = file(name, &content);
        assert_names(&error(|tls| tls.identity = Some(path.clone())), &path, expected);
    }
    let missing = PathBuf::from("/no/such/client.pem");
    let said = error(|tls| tls.identity = Some(missing.clone())).to_string();
    assert!(said.starts_with("the client certificate in '/no/such/client.pem' cannot be read: "), "{said}");
}

#[test]
fn a_key_file_that_cannot_be_used_is_named() {
    let authority = Authority::new("ours");
    let (ours, other) = (authority.issue("client"), authority.issue("client"));
    let identity = file("k-identity.pem", &ours.certificate.pem());
    for (name, content, expected) in [
        (
            "k-none.pem",
            ours.certificate.pem(),
            "'k-none.pem' has no private key; expected one PEM section PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY",
        ),
        (
            "k-cut.pem",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n".to_owned(),
            "'k-cut.pem' is not valid PEM; expected one PRIVATE KEY section: a section has no END line",
        ),
        (
            "k-other.pem",
            other.key.serialize_pem(),
            "the private key in 'k-other.pem' does not belong to the first certificate in 'k-identity.pem'; expected \
             that certificate's own key, and the chain after it",
        ),
    ] {
        let path = file(name, &content);
        let found = error(|tls| {
            tls.identity = Some(identity.clone());
            tls.identity_key = Some(path.clone());
        });
        assert_names(&found, &path, expected);
    }
    let key = file("k-only.pem", &ours.key.serialize_pem());
    let expected = "tls_identity_key ('k-only.pem') is set without tls_identity; expected the file of the key's \
                    certificate too";
    assert_names(&error(|tls| tls.identity_key = Some(key.clone())), &key, expected);
    let missing = PathBuf::from("/no/such/key.pem");
    let said = error(|tls| {
        tls.identity = Some(identity.clone());
        tls.identity_key = Some(missing.clone());
    });
    let expected = "the client certificate's key in '/no/such/key.pem' cannot be read: ";
    assert!(said.to_string().starts_with(expected), "{said}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let pinned = error(|tls| tls.only_extra_roots = true);
    assert_eq!(
        text(&pinned),
        "tls_roots_only is set and tls_roots is empty; expected at least one file of root certificates"
    );
    let both = error(|tls| {
        tls.only_extra_roots = true;
        tls.platform_roots = true;
        tls.extra_roots = vec![Authority::new("ours").file("both.pem")];
    });
    assert_eq!(text(&both), "tls_roots_only and tls_platform_roots contradict each other; expected one of the two");
    assert_eq!((pinned.path(), both.path()), (None, None));
    for name in ["", "not a name", "a..b", "https://a.test", "line\nbreak"] {
        let said = text(&error(|tls| tls.server_name = Some(name.to_owned())));
        let expected = format!(
            "tls_server_name '{}' is not a name that a certificate can be issued for; expected a host name or an IP \
             address: invalid dns name",
            name.escape_debug()
        );
        assert_eq!(said, expected);
    }
}

/// 8.6: a key on one line, as an environment variable leaves it, is quoted by the PEM reader, and must not be by us.
#[test]
fn c8_6_no_message_quotes_a_key() {
    let ours = Authority::new("ours").issue("client");
    let one_line = ours.key.serialize_pem().replace('\n', "").replace("-----END", " -----END");
    let secret = one_line.trim_start_matches("-----BEGIN PRIVATE KEY-----")[..40].to_owned();
    let cut = format!("-----BEGIN PRIVATE KEY-----{secret}");
    let spoilt = format!("-----BEGIN PRIVATE KEY-----\n{secret}!!\n-----END PRIVATE KEY-----\n");
    for (name, key) in [("s-line.pem", one_line), ("s-cut.pem", cut), ("s-spoilt.pem", spoilt)] {
        let path = file(name, &(ours.certificate.pem() + &key));
        let found = error(|tls| tls.identity = Some(path.clone()));
        // Debug writes bytes as numbers.
        let bytes = format!("{:?}", &secret.as_bytes()[..10]);
        for said in [found.to_string(), format!("{found:?}"), format!("{found:#?}").replace(['\n', ' '], "")] {
            let numbers = bytes.trim_matches(['[', ']']).replace(' ', "");
            assert!(!said.contains(&secret[..10]) && !said.replace(' ', "").contains(&numbers), "{said}");
        }
    }
}
