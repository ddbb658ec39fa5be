//! TLS connections over loopback: the authorities that the client trusts, and its client certificates.

use std::{fs, path::PathBuf, sync::Arc};

use kordon::k8s::connect::{ConnectError, ConnectOptions, connect};
use kordon_clock::Clock;
use kordon_demo::api::{Api, ApiOptions};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::{
    net::{TcpListener, TcpStream},
    process::Command,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer},
        server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    },
};
use tokio_util::sync::{CancellationToken, DropGuard};

#[tokio::test]
async fn a_server_of_the_trusted_authority_is_connected_to() {
    let (folder, ours) = (Folder::new(), Authority::new("ours"));
    let server = Server::start(&ours, None).await;
    connect(&folder.options(&server, &ours)).await.expect("it is trusted");
}

#[tokio::test]
async fn a_server_of_another_authority_is_refused_with_a_clear_error() {
    // Names of the second authority. It has the name of the first authority if one tool created both clusters.
    for name in ["theirs", "ours"] {
        let (folder, ours, theirs) = (Folder::new(), Authority::new("ours"), Authority::new(name));
        let server = Server::start(&theirs, None).await;
        let error = connect(&folder.options(&server, &ours)).await.err().expect("it is not trusted");
        assert!(matches!(error, ConnectError::Certificate { .. }), "{error}");
        let output = error.to_string();
        assert!(output.contains(&server.url) && output.contains("--certificate-authority"), "{output}");
    }
}

#[tokio::test]
async fn the_program_ends_with_its_own_code_where_the_authority_is_wrong() {
    let (folder, ours, theirs) = (Folder::new(), Authority::new("ours"), Authority::new("theirs"));
    let server = Server::start(&theirs, None).await;
    let status = async |authority: &Authority| {
        let output = Command::new(env!("CARGO_BIN_EXE_kordon"))
            .args(["status", "--server", &server.url, "--certificate-authority"])
            .arg(folder.file("ca.crt", &authority.pem))
            .env_clear()
            .env("HOME", folder.0.path())
            .kill_on_drop(true)
            .output();
        let output = output.await.expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, output) = status(&ours).await;
    assert_eq!(code, Some(3), "{output}");
    assert!(output.contains("not trusted") && output.contains("--certificate-authority"), "{output}");
    let (code, output) = status(&theirs).await;
    assert_eq!((code, output.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_wants_one() {
    let (folder, ours, users) = (Folder::new(), Authority::new("ours"), Authority::new("users"));
    let server = Server::start(&ours, Some(&users)).await;
    let nameless = folder.options(&server, &ours);
    let error = connect(&nameless).await.err().expect("it wants a certificate");
    assert!(matches!(error, ConnectError::Certificate { .. }), "{error}");
    assert!(error.to_string().contains("client certificate"), "{error}");

    let (certificate, key) = users.issue("alice");
    let alice = ConnectOptions {
        client_certificate: Some(folder.file("alice.crt", &certificate.pem())),
        client_key: Some(folder.file("alice.key", &key.serialize_pem())),
        ..nameless
    };
    connect(&alice).await.expect("it knows the authority of the certificate");
}

/// A certificate authority.
pub struct Authority {
    pub pem: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signed");
        Self { pem: certificate.pem(), der: certificate.der().clone(), issuer: Issuer::new(params, key) }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        (params(name, &["127.0.0.1"]).signed_by(&key, &self.issuer).expect("signed"), key)
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("an authority");
        roots
    }
}

fn params(name: &str, addresses: &[&str]) -> CertificateParams {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(addresses).expect("addresses");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// The demo's API behind TLS, until it is dropped.
pub struct Server {
    pub url: String,
    _stop: DropGuard,
}

impl Server {
    /// Starts a server with a certificate of `authority`. If `clients` is given, it requires client certificates of
    /// that authority.
    pub async fn start(authority: &Authority, clients: Option<&Authority>) -> Self {
        let (plain, secure) = (listener().await, listener().await);
        let behind = plain.local_addr().expect("bound");
        let url = format!("https://{}", secure.local_addr().expect("bound"));
        let stop = CancellationToken::new();
        let api = Api::new(Clock::system(), ApiOptions::default());
        let stopped = stop.clone();
        tokio::spawn(async move { api.serve(plain, stopped).await });
        let acceptor = acceptor(authority, clients);
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = secure.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // The connection ends here if either side refuses the handshake.
                    let Ok(mut client) = acceptor.accept(stream).await else { return };
                    let Ok(mut server) = TcpStream::connect(behind).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        }));
        Self { url, _stop: stop.drop_guard() }
    }
}

/// Returns an acceptor with a certificate of `authority`. If `clients` is given, it requires client certificates of
/// that authority.
pub fn acceptor(authority: &Authority, clients: Option<&Authority>) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ClientCertVerifier> = match clients {
        Some(clients) => {
            let roots = Arc::new(clients.roots());
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
            verifier.build().expect("an authority to trust")
        }
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let (certificate, key) = authority.issue("server");
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions that the provider knows")
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate and its key");
    TlsAcceptor::from(Arc::new(config))
}

pub async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a port")
}

/// A folder for certificate files.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).expect("written");
        path
    }

    fn options(&self, server: &Server, trusted: &Authority) -> ConnectOptions {
        ConnectOptions {
            server: Some(server.url.clone()),
            certificate_authority: Some(self.file("ca.crt", &trusted.pem)),
            ..ConnectOptions::default()
        }
    }
}
