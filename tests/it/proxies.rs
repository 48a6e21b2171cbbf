//! The proxies that the environment names: which requests use them, and which do not.

use serde_json::json;

use crate::reply::Reply;
use crate::run::Run;
#[cfg(target_os = "linux")]
use crate::sandbox::{Form, has, not_tried, tried_in};
use crate::server::{Request, Server};

/// A proxy with one page for every name.
fn proxy() -> Server {
    Server::answering(|request, _| match request.path.as_str() {
        "http://inward.invalid/" => {
            Reply::body(302, "text/plain", "").header("location", "http://10.0.0.1/secret")
        }
        // A tunnel: what follows on this connection is for the host.
        path if path.ends_with(":443") => Reply::body(200, "text/plain", ""),
        path => Reply::body(200, "text/plain", format!("the page {path}")),
    })
}

fn address(proxy: &Server, login: &str) -> String {
    proxy.url().trim_end_matches("/v1").replace("http://", &format!("http://{login}"))
}

fn fetched(urls: &[&str], prepared: impl FnOnce(Run) -> Run) -> Vec<String> {
    let calls = urls.iter().map(|url| Reply::call("fetch_url", &json!({ "url": url })));
    let server = Server::start(calls.chain([Reply::text("done")]));
    let run = Run::task(&server, "task").args(["--approve", "all"]);
    prepared(run.config("agents/default.yaml", "tools: [fetch_url]\n")).run().success();
    let request = server.requests().pop().expect("a request");
    request.tool_results().iter().map(|(_, text)| (*text).to_owned()).collect()
}

fn paths(requests: &[Request]) -> Vec<&str> {
    requests.iter().map(|request| request.path.as_str()).collect()
}

#[test]
fn a_page_is_fetched_by_the_proxy_and_never_from_a_private_network() {
    let proxy = proxy();
    let urls = [
        "http://page.invalid/a",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost/",
        "http://metadata.google.internal/",
        "http://intranet/",
        "http://inward.invalid/",
        "http://excepted.invalid/",
    ];
    let results = fetched(&urls, |run| {
        run.env("ALL_PROXY", address(&proxy, "me:hidden@")).env("NO_PROXY", "excepted.invalid")
    });
    assert!(results[0].contains("the page http://page.invalid/a"), "{}", results[0]);
    for result in &results[1..7] {
        assert!(result.contains("of a private network"), "{result}");
    }
    assert!(results[7].contains("cannot be found"), "{}", results[7]);
    let requests = proxy.requests();
    assert_eq!(paths(&requests), ["http://page.invalid/a", "http://inward.invalid/"]);
    assert_eq!(requests[0].header("proxy-authorization"), Some("Basic bWU6aGlkZGVu"));
}

#[test]
fn a_page_is_not_fetched_past_a_broken_proxy() {
    let urls = ["http://page.invalid/", "https://page.invalid/"];
    let results = fetched(&urls, |run| run.env("ALL_PROXY", "http://me:hidden@a:b:c"));
    for result in &results {
        assert!(result.contains("ALL_PROXY is not the address of a proxy"), "{result}");
        assert!(!result.contains("hidden"), "{result}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn commands_reach_the_hosts_of_the_settings_by_the_proxy_of_the_machine() {
    if !has("python3") {
        not_tried("there is no python3");
        return;
    }
    let proxy = proxy();
    let plain = |host: &str| {
        format!("python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{host}/\").read().decode())'")
    };
    let tunnel = "python3 -c 'import http.client as h, os; c = h.HTTPConnection(\"127.0.0.1\", \
                  int(os.environ[\"HTTPS_PROXY\"].rsplit(\":\", 1)[1])); c.set_tunnel(\"page.invalid\", 443); \
                  c.request(\"GET\", \"/t\"); print(c.getresponse().read().decode())'";
    let commands = [
        plain("page.invalid"),
        tunnel.to_owned(),
        plain("other.invalid"),
        plain("x.internal"),
        "env | grep -c hidden; true".to_owned(),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let prepare = |run: Run| {
        run.env("HTTP_PROXY", address(&proxy, "me:hidden@"))
            .env("https_proxy", address(&proxy, "me:hidden@"))
            .config("agent.yaml", "sandbox: { network: [page.invalid, x.internal] }\n")
    };
    let Some((_, results)) = tried_in(Form::Namespaces, prepare, &commands) else { return };
    assert_eq!(results[0], "exit 0\nthe page http://page.invalid/");
    assert_eq!(results[1], "exit 0\nthe page /t");
    assert!(results[2].contains("403"), "{}", results[2]);
    assert!(results[3].contains("502"), "{}", results[3]);
    assert_eq!(results[4], "exit 0\n0");
    let requests = proxy.requests();
    assert_eq!(paths(&requests), ["http://page.invalid/", "page.invalid:443", "/t"]);
    for request in &requests[..2] {
        assert_eq!(request.header("proxy-authorization"), Some("Basic bWU6aGlkZGVu"), "{}", request.path);
    }
}
