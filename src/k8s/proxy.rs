//! The proxy for a server: `proxy-url` of the cluster, or environment variables with Go's rules.
//!
//! `NO_PROXY` is read here, so that one value means the same to kordon and kubectl. The matcher of hyper-util follows
//! curl: it takes `host:port` and `*.example.com` for names of hosts, lets `.example.com` cover `example.com` itself,
//! sends loopback addresses to the proxy, and ignores a proxy that it cannot read instead of reporting it.

use std::net::IpAddr;

use http::Uri;
use percent_encoding::percent_decode_str;

use super::error::{ConnectError, address};

/// Proxy variables of the environment.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    pub https: Option<String>,
    pub http: Option<String>,
    /// `NO_PROXY`: names, domains, addresses and networks that are reached without a proxy.
    pub except: String,
}

impl Proxies {
    pub fn from_env() -> Self {
        let either = |upper: &str, lower: &str| {
            let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
            set(upper).or_else(|| set(lower))
        };
        Self {
            https: either("HTTPS_PROXY", "https_proxy"),
            http: either("HTTP_PROXY", "http_proxy"),
            except: either("NO_PROXY", "no_proxy").unwrap_or_default(),
        }
    }

    /// Returns the proxy for a server. As in kubectl, `NO_PROXY` does not apply to the kubeconfig's proxy.
    pub fn for_server(&self, server: &Uri, named: Option<&str>) -> Result<Option<Uri>, ConnectError> {
        let (text, origin) = if let Some(named) = named {
            (named, "proxy-url of the kubeconfig")
        } else {
            let (variable, origin) = match server.scheme_str() {
                Some("http") => (&self.http, "HTTP_PROXY"),
                _ => (&self.https, "HTTPS_PROXY"),
            };
            match variable {
                Some(text) if !self.excepts(server) => (text.as_str(), origin),
                _ => return Ok(None),
            }
        };
        let text = text.replacen("socks5h://", "socks5://", 1);
        let whole = if text.contains("://") { text } else { format!("http://{text}") };
        let bad = |why: &str| ConnectError::BadProxy { origin, proxy: address(&whole), why: why.into() };
        let uri: Uri = whole.parse().map_err(|_| bad("it is not an address"))?;
        match uri.scheme_str() {
            Some("socks5") if credentials(&uri).is_some_and(|of_user| exceeds_socks(&of_user)) => {
                Err(bad("its user and its password may have 255 bytes each"))
            }
            Some("http" | "https" | "socks5") => Ok(Some(uri)),
            _ => Err(bad("it has to start with http://, https:// or socks5://")),
        }
    }

    /// Whether a server is reached without a proxy, by the rules of Go's `httpproxy`. Loopback addresses never need a
    /// proxy.
    fn excepts(&self, server: &Uri) -> bool {
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
        let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
        let address: Option<IpAddr> = host.parse().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return true;
        }
        let entries = self.except.split(',').map(|entry| entry.trim().to_ascii_lowercase());
        entries.filter(|entry| !entry.is_empty()).any(|entry| covers(&entry, &host, address, port))
    }
}

/// Returns the user and password of an address; `None` if the address has no user.
pub fn credentials(proxy: &Uri) -> Option<(String, String)> {
    let (user_info, _) = proxy.authority()?.as_str().rsplit_once('@')?;
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((decoded(user), decoded(password)))
}

/// Whether the user or password is too long for SOCKS messages (RFC 1929).
fn exceeds_socks((user, password): &(String, String)) -> bool {
    user.len().max(password.len()) > usize::from(u8::MAX)
}

fn covers(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        let (Some(address), Ok(network), Ok(bits)) = (address, network.parse(), bits.parse()) else {
            return false;
        };
        return same_network(address, network, bits);
    }
    // An IPv6 address has colons even without a port.
    let (entry, wanted_port) = match entry.rsplit_once(':') {
        Some((name, port)) if entry.parse::<IpAddr>().is_err() => (name, Some(port)),
        _ => (entry, None),
    };
    if wanted_port.is_some_and(|wanted| wanted != port.to_string()) {
        return false;
    }
    let entry = entry.trim_matches(['[', ']']);
    if let Ok(wanted) = entry.parse::<IpAddr>() {
        return address == Some(wanted);
    }
    let domain = entry.trim_start_matches('*');
    match domain.strip_prefix('.') {
        Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
        None => host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
    }
}

fn same_network(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let (left, right, width) = match (address, network) {
        (IpAddr::V4(left), IpAddr::V4(right)) => {
            (u128::from(left.to_bits()), u128::from(right.to_bits()), 32)
        }
        (IpAddr::V6(left), IpAddr::V6(right)) => (left.to_bits(), right.to_bits(), 128),
        _ => return false,
    };
    match bits {
        0 => true,
        bits if bits <= width => (left ^ right) >> (width - bits) == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(except: &str, server: &str) -> bool {
        let proxies = Proxies { https: Some("proxy:3128".into()), http: None, except: except.into() };
        let server = server.parse().expect("an address");
        proxies.for_server(&server, None).expect("a good proxy").is_some()
    }

    #[test]
    fn a_user_of_a_socks_proxy_is_as_long_as_its_messages_allow() {
        let server = "https://api.example.com".parse().expect("an address");
        let proxied = |scheme: &str, length: usize| {
            let named = format!("{scheme}://{}:secret@proxy:1080", "u".repeat(length));
            Proxies::default().for_server(&server, Some(&named)).map_err(|error| error.to_string())
        };
        assert!(proxied("socks5", 255).is_ok() && proxied("http", 256).is_ok());
        let error = proxied("socks5", 256).expect_err("too long");
        assert!(error.contains("255 bytes") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn exceptions_are_compared_with_the_server_as_go_does() {
        assert!(proxied("", "https://api.example.com"));
        assert!(!proxied("*", "https://api.example.com"));
        for except in ["example.com", ".example.com", "*.example.com", "x, api.example.com:443"] {
            assert!(!proxied(except, "https://api.example.com"), "{except}");
        }
        for except in [".api.example.com", "ample.com", "api.example.com:6443", "proxy"] {
            assert!(proxied(except, "https://api.example.com"), "{except}");
        }
        assert!(!proxied("10.0.0.0/8", "https://10.9.8.7:6443"));
        assert!(proxied("10.0.0.0/8", "https://11.9.8.7:6443"));
        assert!(!proxied("fd00::/8", "https://[fd12::1]:6443"));
        assert!(!proxied("10.1.1.1", "https://10.1.1.1:6443"));
        assert!(!proxied("", "https://127.0.0.1:6443") && !proxied("", "https://localhost"));
    }

    #[test]
    fn a_named_proxy_has_no_exceptions_and_bad_ones_are_reported() {
        let proxies = Proxies { except: "*".into(), ..Proxies::default() };
        let server = "https://api".parse().expect("an address");
        let named = |proxy| proxies.for_server(&server, Some(proxy));
        assert_eq!(named("socks5h://p:1").expect("good").expect("used").scheme_str(), Some("socks5"));
        let error = named("ftp://me:secret@p").expect_err("bad").to_string();
        assert!(error.contains("proxy-url") && !error.contains("secret"), "{error}");
    }
}
