//! Sends spans and metrics to a collector: the SDK's background threads batch them and use the program's HTTP client.
//!
//! Nothing here delays or ends a run: spans that cannot be queued are dropped, a failed request is remembered as a
//! reason, and the end waits for the last batch at most as long as it is told.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::{Builder, Runtime};

use crate::safety::net::{self, Net};

/// The time limit of one export.
const SEND: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);

/// The address of a collector, and how to reach it.
#[derive(Debug)]
pub struct Collector {
    /// The base URL.
    pub endpoint: String,
    pub headers: Vec<(String, String)>,
    pub net: Arc<Net>,
}

/// The exporters of spans and metrics.
#[derive(Debug)]
pub struct OtlpExport {
    pub spans: SdkTracerProvider,
    pub metrics: SdkMeterProvider,
    failure: ExportFailure,
}

/// The reason why the last export failed.
type ExportFailure = Arc<Mutex<Option<String>>>;

impl OtlpExport {
    /// Starts the background threads. Nothing is sent yet.
    ///
    /// # Errors
    /// The endpoint is not a URL.
    pub fn start(collector: Collector) -> Result<Self, String> {
        let Collector { endpoint, headers, net } = collector;
        let failure = ExportFailure::default();
        let url = |path: &str| format!("{}/v1/{path}", endpoint.trim_end_matches('/'));
        net::parse_url(&url("traces")).map_err(|error| error.to_string())?;
        let door = || Door { net: Arc::clone(&net), runtime: Mutex::new(None), failure: Arc::clone(&failure) };
        let headers = || headers.iter().cloned().collect();
        let spans = SpanExporter::builder()
            .with_http()
            .with_http_client(door())
            .with_endpoint(url("traces"))
            .with_headers(headers())
            .build()
            .map_err(|error| error.to_string())?;
        let metrics = MetricExporter::builder()
            .with_http()
            .with_http_client(door())
            .with_endpoint(url("metrics"))
            .with_headers(headers())
            .build()
            .map_err(|error| error.to_string())?;
        let resource = Resource::builder_empty()
            .with_service_name("agent")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            spans: SdkTracerProvider::builder()
                .with_batch_exporter(spans)
                .with_sampler(Sampler::AlwaysOn)
                .with_resource(resource.clone())
                .build(),
            metrics: SdkMeterProvider::builder().with_periodic_exporter(metrics).with_resource(resource).build(),
            failure,
        })
    }

    /// Sends the remaining spans and metrics, and waits at most `limit`.
    ///
    /// # Errors
    /// The reason why something was not sent, in one line.
    pub fn close(self, limit: Duration) -> Result<(), String> {
        let Self { spans, metrics, failure } = self;
        let (done, closed) = mpsc::channel();
        // Closing blocks for as long as the collector does.
        thread::spawn(move || {
            let closed = spans.shutdown_with_timeout(limit).and(metrics.shutdown_with_timeout(limit));
            // After the time limit, nobody receives this.
            let _ = done.send(closed);
        });
        let in_time = closed.recv_timeout(limit);
        let known = failure.lock().expect("nothing panics while it holds the reason").take();
        match (known, in_time) {
            (Some(why), _) => Err(why),
            (None, Err(_)) => Err("the collector did not answer in time".to_owned()),
            // The SDK's message says less than ours, which is set if sending failed.
            (None, Ok(Err(error))) => Err(error.to_string()),
            (None, Ok(Ok(()))) => Ok(()),
        }
    }
}

/// The program's HTTP client for threads without a runtime. The first export creates the runtime.
#[derive(Debug)]
struct Door {
    net: Arc<Net>,
    runtime: Mutex<Option<Runtime>>,
    failure: ExportFailure,
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Door {
    fn send_bytes<'s, 'f>(&'s self, request: Request<Bytes>) -> Sending<'f>
    where
        's: 'f,
        Self: 'f,
    {
        // Blocks its thread, which does nothing else.
        Box::pin(async move {
            let sent = self.send(request);
            let why = match &sent {
                Ok(response) if response.status().is_success() => None,
                Ok(response) => Some(format!("the collector answered HTTP {}", response.status().as_u16())),
                Err(why) => Some(why.clone()),
            };
            *self.failure.lock().expect("nothing panics while it holds the reason") = why;
            sent.map_err(HttpError::from)
        })
    }
}

impl Door {
    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let (parts, body) = request.into_parts();
        let url = net::parse_url(&parts.uri.to_string()).map_err(|error| error.to_string())?;
        let client = self.net.client(&url, CONNECT).map_err(|error| error.to_string())?;
        let request = client.request(parts.method, url).headers(parts.headers).body(body).timeout(SEND);
        let mut runtime = self.runtime.lock().expect("no export panics");
        let runtime = match &mut *runtime {
            Some(runtime) => runtime,
            empty => {
                let made = Builder::new_current_thread().enable_all().build();
                empty.insert(made.map_err(|error| error.to_string())?)
            }
        };
        runtime.block_on(async {
            let response = request.send().await.map_err(|error| net::list_causes(&error))?;
            let status = response.status();
            let body = response.bytes().await.map_err(|error| net::list_causes(&error))?;
            Response::builder().status(status).body(body).map_err(|error| error.to_string())
        })
    }
}
