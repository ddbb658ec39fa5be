//! TLS connections over loopback: the authorities that the client trusts, and its client certificates.

use std::{fs, path::PathBuf, sync::Arc};

use kordon::k8s::connect::{
    ConnectError, ConnectOptions, Connection, KubeEnvironment, ServiceAccount, connect, connect_from,
};
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
    // The server's authority may have the same name as the trusted authority, if one tool created both.
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

#[tokio::test]
async fn a_certificate_for_another_name_is_accepted_under_the_name_of_tls_server_name() {
    let (folder, ours) = (Folder::new(), Authority::new("ours"));
    let server = Server::behind(acceptor_for(&ours, "api.internal", None), ApiOptions::default()).await;
    let options = |name: Option<&str>| ConnectOptions {
        tls_server_name: name.map(str::to_owned),
        ..folder.options(&server, &ours)
    };
    for name in [None, Some("other.internal")] {
        let error = connect(&options(name)).await.err().expect("the certificate is for another name");
        assert!(matches!(error, ConnectError::Certificate { .. }), "{error}");
        assert!(error.to_string().contains("--tls-server-name"), "{error}");
    }
    connect(&options(Some("api.internal"))).await.expect("the certificate is for this name");
}

#[tokio::test]
async fn in_a_pod_the_service_account_is_used_as_the_kubelet_mounts_it() {
    let (folder, ours, user) = (Folder::new(), Authority::new("ours"), "system:serviceaccount:ops:kordon");
    let tokens = [("mounted".to_owned(), user.to_owned())].into();
    let acceptor = acceptor_for(&ours, "127.0.0.1", None);
    let server = Server::behind(acceptor, ApiOptions { tokens, ..ApiOptions::default() }).await;
    let account = ServiceAccount { server: server.url.clone(), folder: folder.0.path().to_owned() };
    let pod = KubeEnvironment { service_account: Some(account), ..KubeEnvironment::default() };
    let none = ConnectOptions::default();

    folder.file("token", "mounted");
    let error = connect_from(&none, &pod).await.err().expect("there is no ca.crt");
    assert!(matches!(error, ConnectError::InCluster { .. }), "{error}");
    assert!(error.to_string().contains("ca.crt"), "{error}");
    folder.file("ca.crt", &ours.pem);
    folder.file("namespace", "ops");
    let connection = connect_from(&none, &pod).await.expect("it is trusted, and the token is known");
    // The demo's API server does not report the user of a token, but it refuses unknown tokens, as tested below.
    assert_eq!(connection.identity.user, "the pod's service account");
    let of = |connection: &Connection| (connection.context.clone(), connection.namespace.clone());
    assert_eq!(of(&connection), ("in-cluster".into(), "ops".into()));
    let options = ConnectOptions { namespace: Some("web".into()), ..ConnectOptions::default() };
    let connection = connect_from(&options, &pod).await.expect("only the namespace is another one");
    assert_eq!(of(&connection), ("in-cluster".into(), "web".into()));

    // The kubelet has replaced the token, and the server knows only the earlier one.
    folder.file("token", "next");
    let error = connect_from(&none, &pod).await.err().expect("the server does not know the token");
    assert!(matches!(error, ConnectError::Unauthorized { .. }), "{error}");

    // A kubeconfig takes precedence over the service account of the pod.
    let kubeconfig =
        folder.file("kubeconfig", &format!("clusters: [{{name: c, cluster: {{server: '{}'}}}}]", server.url));
    let options = ConnectOptions { kubeconfig: Some(kubeconfig), ..ConnectOptions::default() };
    let error = connect_from(&options, &pod).await.err().expect("the file has no context");
    assert!(matches!(error, ConnectError::NoCurrentContext { .. }), "{error}");
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
        self.issue_for(name, "127.0.0.1")
    }

    /// Issues a certificate for the server at an address or with a name.
    fn issue_for(&self, name: &str, address: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        (params(name, &[address]).signed_by(&key, &self.issuer).expect("signed"), key)
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

/// A server of the demo's API behind TLS. Dropping this value stops the server.
pub struct Server {
    pub url: String,
    _stop: DropGuard,
}

impl Server {
    /// Starts a server with a certificate of `authority`. If `clients` is given, it requires client certificates of
    /// that authority.
    pub async fn start(authority: &Authority, clients: Option<&Authority>) -> Self {
        Self::behind(acceptor(authority, clients), ApiOptions::default()).await
    }

    /// Starts a server whose connections `acceptor` accepts.
    async fn behind(acceptor: TlsAcceptor, options: ApiOptions) -> Self {
        let (plain, secure) = (listener().await, listener().await);
        let behind = plain.local_addr().expect("bound");
        let url = format!("https://{}", secure.local_addr().expect("bound"));
        let stop = CancellationToken::new();
        let api = Api::new(Clock::system(), options);
        let stopped = stop.clone();
        tokio::spawn(async move { api.serve(plain, stopped).await });
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
    acceptor_for(authority, "127.0.0.1", clients)
}

/// Returns an acceptor whose certificate is for the server at this address or with this name.
fn acceptor_for(authority: &Authority, address: &str, clients: Option<&Authority>) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ClientCertVerifier> = match clients {
        Some(clients) => {
            let roots = Arc::new(clients.roots());
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
            verifier.build().expect("an authority to trust")
        }
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let (certificate, key) = authority.issue_for("server", address);
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
