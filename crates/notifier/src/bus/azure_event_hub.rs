//! `azureeventhub`: an event in an Azure Event Hub, over HTTPS.
//!
//! Flux speaks AMQP. Event Hubs take single events over HTTPS just as well, through any proxy, with the same tokens and
//! signatures.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use url::Url;

use crate::edge::Http;
use crate::error::Error;
use crate::forward;
use crate::identity;
use crate::notification::{Notification, Sent};
use crate::request::Request;
use crate::target::Target;
use forge::api::url;

/// Scope of the token.
const SCOPE: &str = "https://eventhubs.azure.net/.default";
const VERSION: (&str, &str) = ("api-version", "2014-01");
/// As Microsoft's documentation has it for single events.
const CONTENT_TYPE: &str = "application/atom+xml;type=entry;charset=utf-8";
/// A signature is made for one request.
const SIGNED_SECONDS: i64 = 300;
/// Where Microsoft has its services, in its clouds.
const CLOUDS: [&str; 3] = [
    ".servicebus.windows.net",
    ".servicebus.chinacloudapi.cn",
    ".servicebus.usgovcloudapi.net",
];

/// How to get in.
#[derive(Debug, PartialEq)]
enum Login {
    /// A shared access key: its name and itself.
    Key(String, String),
    /// A signature that someone made.
    Signature(String),
    /// A token of the Secret.
    Token(String),
    /// Identity of the Provider at Microsoft.
    Identity,
}

/// An event hub.
struct Hub {
    url: Url,
    login: Login,
}

/// Checks a target.
pub(super) fn check(target: &Target) -> Result<(), Error> {
    Hub::new(target, CLOUDS[0]).map(drop)
}

/// Sends the event.
pub(super) async fn send(http: Http<'_>, notification: &Notification) -> Result<Sent, Error> {
    let authority = http
        .edge
        .identities
        .session()
        .environment
        .get("AZURE_AUTHORITY_HOST");
    let hub = Hub::new(http.target, cloud(authority.unwrap_or_default()))?;
    let authorization = match &hub.login {
        Login::Key(name, key) => signature(&hub.url, name, key, Timestamp::now()),
        Login::Signature(signature) => signature.clone(),
        Login::Token(token) => format!("Bearer {token}"),
        Login::Identity => {
            let token = identity::azure(http, SCOPE).await;
            let token =
                token.map_err(|error| error.within("failed to create a eventhub using managed identity"))?;
            format!("Bearer {token}")
        }
    };
    let request = render(&hub, notification)?.header(AUTHORIZATION, &authorization)?;
    let answer = http.exchange(request).await;
    let sent = answer.and_then(|answer| http.success(answer));
    sent.map_err(|error| error.within("failed to send msg"))?;
    Ok(Sent::default())
}

fn render(hub: &Hub, notification: &Notification) -> Result<Request, Error> {
    let mut url = url(&hub.url, &["messages"])?;
    url.query_pairs_mut().append_pair(VERSION.0, VERSION.1);
    let body = go_text::json::to_vec(&*forward::worded(notification));
    Ok(Request::new(Method::POST, url, CONTENT_TYPE, body))
}

impl Hub {
    fn new(target: &Target, suffix: &str) -> Result<Self, Error> {
        let refuse = |problem: &str| Error::invalid(format!("invalid authentication options: {problem}"));
        let (address, token) = (target.address.trim(), target.token.trim());
        let has_account = target.service_account.is_some();
        if address.is_empty() {
            return Err(refuse("endpoint URL cannot be empty"));
        }
        if address.contains("SharedAccess") {
            return match (has_account, token) {
                (true, _) => Err(refuse(
                    "serviceAccountName and SAS authentication cannot be set at the same time",
                )),
                (false, "") => of_connection_string(address, &target.channel),
                _ => Err(refuse(
                    "jwt token and SAS authentication cannot be set at the same time",
                )),
            };
        }
        let login = match (has_account, token) {
            (_, "") => Login::Identity,
            (false, token) => Login::Token(token.to_owned()),
            (true, _) => {
                return Err(refuse(
                    "serviceAccountName and jwt token authentication cannot be set at the same time",
                ));
            }
        };
        let host = host(target.channel.trim(), suffix, &login)?;
        let root = Url::parse(&format!("https://{host}/"));
        let root = root.map_err(|error| Error::invalid(format!("invalid event hub namespace: {error}")))?;
        Ok(Self {
            url: url(&root, &[address])?,
            login,
        })
    }
}

/// The host of a namespace, which may be whole already. The identity of a workload is shown to Microsoft only.
fn host(namespace: &str, suffix: &str, login: &Login) -> Result<String, Error> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    if namespace.is_empty() || !namespace.chars().all(is_host) {
        return Err(Error::invalid(
            "invalid event hub namespace: the channel must be its name",
        ));
    }
    let host = if namespace.contains(".servicebus.") {
        namespace.to_owned()
    } else {
        format!("{namespace}{suffix}")
    };
    if *login == Login::Identity && !CLOUDS.iter().any(|cloud| host.ends_with(cloud)) {
        return Err(Error::invalid(
            "invalid event hub namespace: an identity of Azure is shown only to Microsoft's hosts",
        ));
    }
    Ok(host)
}

/// The suffix of the cloud whose tokens are used.
fn cloud(authority: &str) -> &'static str {
    match authority {
        host if host.contains("chinacloudapi.cn") => CLOUDS[1],
        host if host.contains("microsoftonline.us") => CLOUDS[2],
        _ => CLOUDS[0],
    }
}

/// `Endpoint=sb://…;SharedAccessKeyName=…;SharedAccessKey=…;EntityPath=…`, in any order. Nothing of it is quoted.
fn of_connection_string(text: &str, channel: &str) -> Result<Hub, Error> {
    let refuse = |problem: &str| Error::invalid(format!("failed to create a eventhub using SAS: {problem}"));
    let value = |name: &str| {
        let mut pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        found
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    };
    let endpoint = value("Endpoint").ok_or_else(|| refuse("the connection string has no Endpoint"))?;
    let endpoint = Url::parse(endpoint).map_err(|_| refuse("its Endpoint is not a URL"))?;
    let host = endpoint.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| refuse("its Endpoint has no host"))?;
    let scheme = match value("UseDevelopmentEmulator") {
        Some("true") => "http",
        _ => "https",
    };
    let port = endpoint.port().map(|port| format!(":{port}")).unwrap_or_default();
    let root =
        Url::parse(&format!("{scheme}://{host}{port}/")).map_err(|_| refuse("its Endpoint is not a URL"))?;
    let path = value("EntityPath").or(Some(channel.trim()).filter(|name| !name.is_empty()));
    let path = path.ok_or_else(|| refuse("the connection string does not contain an EntityPath"))?;
    let login = match (
        value("SharedAccessKeyName"),
        value("SharedAccessKey"),
        value("SharedAccessSignature"),
    ) {
        (Some(name), Some(key), _) => Login::Key(name.to_owned(), key.to_owned()),
        (_, _, Some(signature)) => Login::Signature(signature.to_owned()),
        _ => {
            return Err(refuse(
                "the connection string has no SharedAccessKeyName and SharedAccessKey",
            ));
        }
    };
    let url = url(&root, &[path]).map_err(|_| refuse("its EntityPath is not a name"))?;
    Ok(Hub { url, login })
}

/// A shared access signature over where the hub is and until when.
fn signature(hub: &Url, name: &str, key: &str, now: Timestamp) -> String {
    let quoted = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let resource = quoted(hub.as_str());
    let until = now.as_second().saturating_add(SIGNED_SECONDS);
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let signed = hmac::sign(&key, format!("{resource}\n{until}").as_bytes());
    format!(
        "SharedAccessSignature sr={resource}&sig={}&se={until}&skn={}",
        quoted(&STANDARD.encode(signed)),
        quoted(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider_type::ProviderType;

    const STRING: &str = "Endpoint=sb://fluxv2.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=c2VjcmV0=;EntityPath=hub";

    fn hub(address: &str, channel: &str, token: &str) -> Result<Hub, String> {
        let mut target = Target::new(ProviderType::AzureEventHub, address);
        target.channel = channel.to_owned();
        target.token = token.to_owned();
        Hub::new(&target, CLOUDS[0]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_connection_string_says_where_and_how() {
        let found = hub(STRING, "", "").unwrap();
        assert_eq!(found.url.as_str(), "https://fluxv2.servicebus.windows.net/hub");
        assert_eq!(found.login, Login::Key("Root".to_owned(), "c2VjcmV0=".to_owned()));
        let without = STRING.replace(";EntityPath=hub", "");
        let problem = hub(&without, "", "").err().unwrap();
        assert!(
            problem.ends_with("the connection string does not contain an EntityPath"),
            "{problem}"
        );
        assert_eq!(hub(&without, "other", "").unwrap().url.path(), "/other");
    }

    #[test]
    fn ways_to_get_in_exclude_each_other() {
        assert_eq!(
            hub(STRING, "", "jwt").err().unwrap(),
            "invalid authentication options: jwt token and SAS authentication cannot be set at the same time"
        );
        assert_eq!(
            hub("", "ns", "").err().unwrap(),
            "invalid authentication options: endpoint URL cannot be empty"
        );
        assert_eq!(
            hub("hub", "ns", "jwt").unwrap().login,
            Login::Token("jwt".to_owned())
        );
    }

    #[test]
    fn an_identity_is_shown_to_microsoft_only() {
        let found = hub("hub", "ns", "").unwrap();
        assert_eq!(found.url.as_str(), "https://ns.servicebus.windows.net/hub");
        assert_eq!(found.login, Login::Identity);
        assert!(hub("hub", "ns.servicebus.chinacloudapi.cn", "").is_ok());
        for namespace in [
            "ns.servicebus.example.com",
            "ns.example.com/x",
            "",
            "ns.servicebus.windows.net.example.com",
        ] {
            let problem = hub("hub", namespace, "").err().unwrap_or_default();
            assert!(
                problem.starts_with("invalid event hub namespace") || namespace.is_empty(),
                "{namespace}: {problem}"
            );
        }
        assert!(hub("hub", "ns.servicebus.example.com", "jwt").is_ok());
        assert_eq!(
            cloud("https://login.microsoftonline.us/"),
            ".servicebus.usgovcloudapi.net"
        );
    }

    /// Against the algorithm of Microsoft's documentation, run in Python.
    #[test]
    fn a_signature_is_that_of_the_documentation() {
        let hub = Url::parse("https://fluxv2.servicebus.windows.net/hub").unwrap();
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        assert_eq!(
            signature(&hub, "Root", "c2VjcmV0=", now),
            include_str!("azure_event_hub/signature.txt").trim()
        );
    }

    #[test]
    fn the_event_goes_to_the_messages_of_the_hub() {
        let notification =
            Notification::new(event::Event::default(), crate::notification::AlertRef::default());
        let request = render(&hub(STRING, "", "").unwrap(), &notification).unwrap();
        assert_eq!(
            request.url.as_str(),
            "https://fluxv2.servicebus.windows.net/hub/messages?api-version=2014-01"
        );
    }
}
