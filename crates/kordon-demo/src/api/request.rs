//! Parsed requests: target, verb, parameters, and the form of the response.

use bytes::Bytes;
use http::{HeaderMap, Method, header, request::Parts};
use serde_json::{Value, json};

use super::{
    Requester,
    kinds::{self, Kind, ResourceScope, Subresource},
    object::ObjectKey,
    protobuf::{self, NotDecodable},
    refusal::{FieldCause, Refusal},
};

/// One request to the API.
pub struct ApiRequest {
    /// The path as sent; used by the log and by discovery.
    pub path: String,
    pub target: RequestTarget,
    pub verb: Verb,
    pub query: Query,
    pub view: View,
    /// The type of a PATCH; None if the type is not supported or the request is not a PATCH.
    pub patch: Option<PatchType>,
    /// Whether the body is protobuf instead of JSON.
    pub protobuf: bool,
    pub identity: Requester,
    pub body: Bytes,
}

/// The target of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestTarget {
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    Version,
    /// `/api`, `/apis` and below, without a resource.
    Discovery,
    OpenApi,
    Resource(Resource),
    Nothing,
}

/// The objects of one kind that a URL selects.
#[derive(Clone, Debug)]
pub struct Resource {
    pub kind: &'static Kind,
    /// The namespace. Empty if the kind is cluster-scoped, or if the URL selects all namespaces.
    pub namespace: String,
    pub name: Option<String>,
    pub subresource: Option<Subresource>,
}

impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.kind, other.kind)
            && (&self.namespace, &self.name, self.subresource)
                == (&other.namespace, &other.name, other.subresource)
    }
}

impl Eq for Resource {}

/// The verb of a request, as in RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// OPTIONS and other methods that the Kubernetes API does not have.
    Other,
}

/// The requested form of objects (the Accept header).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Object,
    /// Like [`View::Object`], but in protobuf.
    Protobuf,
    /// meta.k8s.io/v1 Table: rows for kubectl to print.
    Table,
    /// meta.k8s.io/v1 PartialObjectMetadata.
    Metadata,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl ApiRequest {
    /// Parses a request. Never fails: invalid requests are refused when they are handled.
    pub fn parse(head: &Parts, body: Bytes, identity: Requester) -> Self {
        let path = head.uri.path().trim_end_matches('/').to_owned();
        let query = Query::parse(head.uri.query().unwrap_or_default());
        let target = target(&path);
        let verb = verb(&head.method, &target, &query);
        Self {
            verb,
            query,
            view: encodable(view(&head.headers), &target),
            target,
            patch: patch_type(&head.headers),
            protobuf: media_type(&head.headers) == Some(protobuf::MEDIA),
            identity,
            body,
            path,
        }
    }
}

impl ApiRequest {
    /// The body as a JSON value.
    pub fn value(&self) -> Result<Value, Refusal> {
        if self.protobuf {
            return protobuf::decode(&self.body).map_err(|error| match error {
                NotDecodable::Broken => {
                    Refusal::bad_request("the body of the request is not Kubernetes protobuf")
                }
                NotDecodable::Unknown(kind) => {
                    let message =
                        format!("{kind} is not understood as protobuf by the embedded API: send JSON");
                    Refusal::new(415, "UnsupportedMediaType", message)
                }
            });
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Refusal::bad_request(format!("the body of the request is not JSON: {error}")))
    }

    /// Whether the query asks for a dry run.
    pub fn dry_run(&self) -> Result<bool, Refusal> {
        dry_run(self.query.all("dryRun"))
    }
}

impl Resource {
    /// The namespace and name of the object that the URL names.
    pub fn key(&self) -> Result<ObjectKey, Refusal> {
        let name = self.name.as_deref().ok_or_else(Refusal::no_such_method)?;
        Ok(ObjectKey::new(&self.namespace, name))
    }
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        }
    }
}

/// The parameters of a URL, decoded.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query. Empty pairs are skipped, because kube writes `?&limit=500`.
    fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes()).into_owned();
        Self(pairs.filter(|(key, _)| !key.is_empty()).collect())
    }

    /// Returns the first value of a parameter; an empty string if the parameter is absent.
    pub fn text(&self, key: &str) -> &str {
        self.0.iter().find(|(k, _)| k == key).map_or("", |(_, value)| value)
    }

    pub fn flag(&self, key: &str) -> bool {
        matches!(self.text(key), "true" | "1")
    }

    /// The value of a parameter as a number; None if absent.
    pub fn number<N: std::str::FromStr>(&self, key: &str) -> Result<Option<N>, Refusal> {
        match self.text(key) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Refusal::bad_request(format!("unable to decode the query parameter {key}: {text:?}"))
            }),
        }
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, value)| value.as_str())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Query {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }
}

/// Whether the `dryRun` list of a `DeleteOptions` object asks for a dry run.
pub fn dry_run_in(options: &Value) -> Result<bool, Refusal> {
    dry_run(options["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str))
}

/// Whether these values ask for a dry run. Values other than `All` are refused.
fn dry_run<'a>(values: impl Iterator<Item = &'a str>) -> Result<bool, Refusal> {
    let mut dry = false;
    for value in values {
        if value != "All" {
            let cause = FieldCause::unsupported("dryRun", &json!(value), &["All"]);
            let message = format!("dryRun: {}", cause.message);
            return Err(Refusal::new(422, "Invalid", message).because(vec![cause]));
        }
        dry = true;
    }
    Ok(dry)
}

fn target(path: &str) -> RequestTarget {
    let parts: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => RequestTarget::Health,
        ["version"] => RequestTarget::Version,
        ["openapi", ..] => RequestTarget::OpenApi,
        ["api" | "apis"] | ["api", _] | ["apis", _] | ["apis", _, _] => RequestTarget::Discovery,
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => RequestTarget::Nothing,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> RequestTarget {
    let find = |plural: &str| kinds::find(group, version, plural);
    let named = |kind: Option<&'static Kind>, namespace: &str, name: Option<&&str>, sub: Option<&&str>| {
        let Some(kind) = kind else { return RequestTarget::Nothing };
        let subresource = match sub {
            None => None,
            Some(sub) => match kind.subresources.iter().find(|s| s.name() == *sub) {
                Some(known) => Some(*known),
                None => return RequestTarget::Nothing,
            },
        };
        RequestTarget::Resource(Resource {
            kind,
            namespace: namespace.to_owned(),
            name: name.map(|name| (*name).to_owned()),
            subresource,
        })
    };
    match rest {
        // `namespaces/x/pods` selects the pods in x, but `namespaces/x/status` is a subresource of the namespace x.
        ["namespaces", namespace, plural, rest @ ..]
            if find(plural).is_some_and(Kind::is_namespaced) && rest.len() <= 2 =>
        {
            named(find(plural), namespace, rest.first(), rest.get(1))
        }
        [plural] => named(find(plural), "", None, None),
        // The rest of the path is for the kubelet to which the request is forwarded.
        [plural, name, "proxy", ..] if find(plural).is_some_and(|kind| kind.has(Subresource::Proxy)) => {
            named(find(plural), "", Some(name), Some(&"proxy"))
        }
        [plural, name, rest @ ..]
            if rest.len() <= 1 && find(plural).is_some_and(|kind| kind.scope == ResourceScope::Cluster) =>
        {
            named(find(plural), "", Some(name), rest.first())
        }
        _ => RequestTarget::Nothing,
    }
}

fn verb(method: &Method, target: &RequestTarget, query: &Query) -> Verb {
    let named = matches!(target, RequestTarget::Resource(Resource { name: Some(_), .. }));
    match (method.as_str(), named) {
        ("GET" | "HEAD", _) if query.flag("watch") => Verb::Watch,
        ("GET" | "HEAD", true) => Verb::Get,
        ("GET" | "HEAD", false) if matches!(target, RequestTarget::Resource(_)) => Verb::List,
        ("GET" | "HEAD", false) => Verb::Get,
        ("POST", _) => Verb::Create,
        ("PUT", _) => Verb::Update,
        ("PATCH", _) => Verb::Patch,
        ("DELETE", true) => Verb::Delete,
        ("DELETE", false) => Verb::DeleteCollection,
        _ => Verb::Other,
    }
}

/// Returns the form in which the objects of a target are sent. Kinds without a protobuf message are sent as JSON.
fn encodable(view: View, target: &RequestTarget) -> View {
    match target {
        RequestTarget::Resource(resource) if protobuf::is_encodable(resource.kind) => view,
        _ if view == View::Protobuf => View::Object,
        _ => view,
    }
}

/// Returns the first known form in the Accept header, as a real server does.
fn view(headers: &HeaderMap) -> View {
    let accept = headers.get(header::ACCEPT).and_then(|a| a.to_str().ok()).unwrap_or_default();
    for range in accept.split(',') {
        let parameter = |name: &str| {
            range
                .split(';')
                .skip(1)
                .filter_map(|p| p.trim().split_once('='))
                .find(|p| p.0 == name)
                .map(|p| p.1)
        };
        let media = range.split(';').next().unwrap_or_default().trim();
        match (media, parameter("as")) {
            (protobuf::MEDIA, None) => return View::Protobuf,
            ("application/json" | "*/*" | "application/*", _) => {}
            _ => continue,
        }
        match (parameter("as"), parameter("g"), parameter("v")) {
            (None, ..) => return View::Object,
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => return View::Table,
            (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), _, _) => return View::Metadata,
            _ => {}
        }
    }
    View::Object
}

fn patch_type(headers: &HeaderMap) -> Option<PatchType> {
    match media_type(headers)? {
        "application/json-patch+json" => Some(PatchType::Json),
        "application/merge-patch+json" => Some(PatchType::Merge),
        "application/strategic-merge-patch+json" => Some(PatchType::Strategic),
        "application/apply-patch+yaml" => Some(PatchType::Apply),
        _ => None,
    }
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    text.split(';').next().map(str::trim)
}

/// Decodes percent encoding in one segment of a path.
fn decode(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_kinds_namespaces_names_and_subresources() {
        let pods = |namespace: &str, name: Option<&str>, subresource| {
            RequestTarget::Resource(Resource {
                kind: kinds::named("pods"),
                namespace: namespace.into(),
                name: name.map(str::to_owned),
                subresource,
            })
        };
        assert_eq!(target("/api/v1/pods"), pods("", None, None));
        assert_eq!(target("/api/v1/namespaces/a/pods"), pods("a", None, None));
        assert_eq!(
            target("/api/v1/namespaces/a/pods/p/eviction"),
            pods("a", Some("p"), Some(Subresource::Eviction))
        );
        let RequestTarget::Resource(proxied) = target("/api/v1/nodes/n1/proxy/stats/summary") else {
            panic!("a resource")
        };
        assert_eq!((proxied.name.as_deref(), proxied.subresource), (Some("n1"), Some(Subresource::Proxy)));
        assert_eq!(target("/api/v1/namespaces/a/proxy/x"), RequestTarget::Nothing);
        assert_eq!(target("/api/v1/pods/p"), RequestTarget::Nothing);
        assert_eq!(target("/api/v1/namespaces/a/pods/p/colour"), RequestTarget::Nothing);
        assert_eq!(target("/apis/apps/v1"), RequestTarget::Discovery);
        assert_eq!(target("/apis/apps/v1/colours"), RequestTarget::Nothing);
        let RequestTarget::Resource(status) = target("/api/v1/namespaces/a/status") else {
            panic!("a resource")
        };
        assert_eq!((status.kind.plural, status.name.as_deref()), ("namespaces", Some("a")));
    }

    #[test]
    fn the_first_known_form_of_accept_counts() {
        let view_of = |accept: &'static str| {
            view(&HeaderMap::from_iter([(header::ACCEPT, http::HeaderValue::from_static(accept))]))
        };
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;\
                       g=meta.k8s.io,application/json";
        assert_eq!(view_of(kubectl), View::Table);
        assert_eq!(view_of("application/vnd.kubernetes.protobuf,application/json"), View::Protobuf);
        assert_eq!(
            view_of("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            View::Metadata
        );
    }
}
