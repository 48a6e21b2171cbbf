//! The queue: streams of NATS JetStream. The door to async-nats.
//!
//! Tasks wait in a stream with the retention of a work queue; one durable consumer hands each to one worker, and again
//! when nobody acknowledges it in time. Results lie in a stream of their own, from which whoever published collects them.
//! What is too large for a message is in an object store, under the name of its message.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::context::Context;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::{self, RetentionPolicy, Stream};
use async_nats::jetstream::{self, AckKind, Message, object_store};
use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::io::AsyncReadExt;

use super::{FinishedTask, QueuedTask};
use crate::base::digest::hash_sha256;

const TASKS: &str = "AGENT_TASKS";
const RESULTS: &str = "AGENT_RESULTS";
const DEAD: &str = "AGENT_DEAD";
const LARGE: &str = "AGENT_LARGE";
/// The one consumer of all workers.
const WORKERS: &str = "workers";

/// How long a task may be unheard of before it is delivered again.
pub const ACK_WAIT: Duration = Duration::from_secs(30);
/// How often a message is delivered; the last time it is laid with the dead.
const MOST_DELIVERIES: i64 = 100;
/// The most tasks that all workers together hold.
const MOST_HELD: i64 = 10_000;
/// The largest payload of a message, in bytes; servers take 1 MiB.
const LARGEST: usize = 512 * 1024;
/// How long results and the dead are kept, and what was published is known again.
const KEPT: Duration = Duration::from_hours(7 * 24);
/// How often the state of the connection is looked at.
const LOOK: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to the queue.
#[derive(Clone)]
pub struct TaskQueue {
    client: Client,
    context: Context,
}

/// A task that was delivered, and has to be answered.
pub struct Delivery {
    message: Message,
    /// The task; or what is wrong with the message.
    pub task: Result<QueuedTask, String>,
    /// True if it was delivered so often that it is given up.
    pub is_last: bool,
}

/// How full the queue is.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueStatus {
    /// The tasks that no worker holds.
    pub waiting: u64,
    /// The tasks that workers hold.
    pub held: u64,
    /// The age of the oldest task that has no result.
    pub oldest: Option<Duration>,
    /// The tasks that were given up.
    pub dead: u64,
}

impl TaskQueue {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached, or has no JetStream: a sentence without the address, which may hold a password.
    pub async fn connect(url: &str) -> Result<Self, String> {
        let options = ConnectOptions::new().name("agent").connection_timeout(CONNECT_TIMEOUT);
        let client =
            options.connect(url).await.map_err(|error| format!("the queue cannot be reached: {error}"))?;
        let context = jetstream::new(client.clone());
        Ok(Self { client, context })
    }

    /// Makes the streams and the consumer where they are missing.
    ///
    /// # Errors
    /// One exists with other settings, or the server refuses it: a sentence.
    pub async fn prepare(&self) -> Result<(), String> {
        self.prepare_stream(TASKS, "agent.tasks.>", RetentionPolicy::WorkQueue).await?;
        self.prepare_stream(RESULTS, "agent.results.>", RetentionPolicy::Limits).await?;
        self.prepare_stream(DEAD, "agent.dead.>", RetentionPolicy::Limits).await?;
        self.consumer().await.map(drop)
    }

    async fn prepare_stream(
        &self,
        name: &str,
        subjects: &str,
        retention: RetentionPolicy,
    ) -> Result<Stream, String> {
        let config = stream::Config {
            name: name.to_owned(),
            subjects: vec![subjects.to_owned()],
            retention,
            max_age: if retention == RetentionPolicy::WorkQueue { Duration::ZERO } else { KEPT },
            duplicate_window: KEPT,
            ..stream::Config::default()
        };
        let found = self.context.get_or_create_stream(config.clone()).await;
        let found = found.map_err(|error| format!("the stream {name} cannot be had: {error}"))?;
        let info = found.cached_info();
        if info.config.retention != retention || info.config.subjects != config.subjects {
            return Err(format!(
                "the stream {name} exists with other settings: delete it, or use another account of the server"
            ));
        }
        Ok(found)
    }

    async fn consumer(&self) -> Result<PullConsumer, String> {
        let config = pull::Config {
            durable_name: Some(WORKERS.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_deliver: MOST_DELIVERIES,
            max_ack_pending: MOST_HELD,
            ..pull::Config::default()
        };
        let failed = |error: &dyn std::fmt::Display| format!("the consumer of {TASKS} cannot be had: {error}");
        let stream = self.context.get_stream(TASKS).await.map_err(|error| failed(&error))?;
        stream.get_or_create_consumer(WORKERS, config).await.map_err(|error| failed(&error))
    }

    /// Publishes a task. One that was published within a week as this `time` is published once.
    ///
    /// # Errors
    /// The server does not take it: a sentence.
    pub async fn publish(&self, task: &QueuedTask, time: u64) -> Result<(), String> {
        let name = name_message(&format!("t{time}"), &task.job, &task.id);
        self.send(&format!("agent.tasks.{}", task.job), &name, task).await
    }

    /// How often the connection was made.
    pub fn count_connections(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Waits until the connection was made more often than `so_often`. What the server had acknowledged before may be lost
    /// then: it keeps some of it in memory for a while.
    pub async fn wait_for_reconnection(&self, so_often: u64) {
        while self.count_connections() <= so_often {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Publishes a result, once.
    ///
    /// # Errors
    /// The server does not take it: a sentence.
    pub async fn report(&self, finished: &FinishedTask) -> Result<(), String> {
        let name = name_message("r", &finished.job, &finished.id);
        self.send(&format!("agent.results.{}", finished.job), &name, finished).await
    }

    async fn send(&self, subject: &str, name: &str, content: &impl serde::Serialize) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("the queue does not take it: {error}");
        let mut bytes = serde_json::to_vec(content).map_err(|error| failed(&error))?;
        if bytes.len() > LARGEST {
            let store = self.large().await?;
            store.put(name, &mut bytes.as_slice()).await.map_err(|error| failed(&error))?;
            bytes = serde_json::to_vec(&serde_json::json!({ "large": name })).map_err(|error| failed(&error))?;
        }
        let message = PublishMessage::build().payload(bytes.into()).message_id(name);
        let sent = self.context.send_publish(subject.to_owned(), message).await.map_err(|error| failed(&error))?;
        sent.await.map(drop).map_err(|error| failed(&error))
    }

    async fn large(&self) -> Result<ObjectStore, String> {
        if let Ok(store) = self.context.get_object_store(LARGE).await {
            return Ok(store);
        }
        let config =
            object_store::Config { bucket: LARGE.to_owned(), max_age: KEPT, ..object_store::Config::default() };
        let made = self.context.create_object_store(config).await;
        made.map_err(|error| format!("the store for large messages cannot be had: {error}"))
    }

    /// The payload of a message, wherever it is.
    async fn load(&self, payload: &[u8]) -> Result<Vec<u8>, String> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Reference {
            large: String,
        }
        let Ok(Reference { large }) = serde_json::from_slice(payload) else { return Ok(payload.to_vec()) };
        let lost = |error: &dyn std::fmt::Display| format!("its content is lost: {error}");
        let store = self.large().await?;
        let mut object = store.get(&large).await.map_err(|error| lost(&error))?;
        let mut bytes = Vec::new();
        object.read_to_end(&mut bytes).await.map_err(|error| lost(&error))?;
        Ok(bytes)
    }

    /// Waits up to `longest` for at most so many tasks.
    ///
    /// # Errors
    /// The queue is gone: a sentence.
    pub async fn take(&self, most: usize, longest: Duration) -> Result<Vec<Delivery>, String> {
        let consumer = self.consumer().await?;
        let asked = consumer.fetch().max_messages(most).expires(longest);
        let gone = |error: &dyn std::fmt::Display| format!("the queue gives nothing: {error}");
        // What waits is given at once; where nothing waits, one message is waited for.
        let mut batch = asked.messages().await.map_err(|error| gone(&error))?;
        let mut taken = Vec::new();
        while let Some(message) = batch.next().await {
            taken.push(self.receive(message.map_err(|error| gone(&error))?).await);
        }
        if taken.is_empty() {
            let one = consumer.batch().max_messages(1).expires(longest);
            let mut batch = one.messages().await.map_err(|error| gone(&error))?;
            while let Some(message) = batch.next().await {
                taken.push(self.receive(message.map_err(|error| gone(&error))?).await);
            }
        }
        Ok(taken)
    }

    async fn receive(&self, message: Message) -> Delivery {
        let is_last = message.info().is_ok_and(|info| info.delivered >= MOST_DELIVERIES);
        let task = match self.load(&message.payload).await {
            Ok(bytes) => QueuedTask::read(&bytes),
            Err(why) => Err(why),
        };
        Delivery { message, task, is_last }
    }

    /// Lays a message with the dead: its reason, and what it was.
    ///
    /// # Errors
    /// The server does not take it: a sentence.
    pub async fn bury(&self, delivery: &Delivery, reason: &str) -> Result<(), String> {
        let job = delivery.task.as_ref().map_or("unknown", |task| task.job.as_str());
        let message = String::from_utf8_lossy(&delivery.message.payload).into_owned();
        let name = hash_sha256([message.as_bytes()]);
        self.send(
            &format!("agent.dead.{job}"),
            &name,
            &serde_json::json!({ "reason": reason, "message": message }),
        )
        .await
    }

    /// Hands every result of a job to `take`, those that are there and those that come, as long as the queue is there.
    ///
    /// # Errors
    /// The queue is gone: a sentence.
    pub async fn collect(&self, job: &str, take: &mut impl FnMut(FinishedTask)) -> Result<(), String> {
        let gone = |error: &dyn std::fmt::Display| format!("the results cannot be read: {error}");
        let stream = self.context.get_stream(RESULTS).await.map_err(|error| gone(&error))?;
        let config = pull::OrderedConfig {
            filter_subject: format!("agent.results.{job}"),
            deliver_policy: DeliverPolicy::All,
            ..pull::OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await.map_err(|error| gone(&error))?;
        let mut messages = consumer.messages().await.map_err(|error| gone(&error))?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(|error| gone(&error))?;
            let bytes = self.load(&message.payload).await?;
            // A result of another version is none of ours.
            if let Ok(finished) = serde_json::from_slice(&bytes) {
                take(finished);
            }
        }
        Ok(())
    }

    /// How full the queue is.
    ///
    /// # Errors
    /// It cannot be asked: a sentence.
    pub async fn status(&self) -> Result<QueueStatus, String> {
        let failed = |error: &dyn std::fmt::Display| format!("the queue cannot be asked: {error}");
        let none = |_| "the queue has no streams yet: `agent worker init --queue URL` makes them".to_owned();
        let stream = self.context.get_stream(TASKS).await.map_err(none)?;
        let mut consumer = self.consumer().await?;
        let info = consumer.info().await.map_err(|error| failed(&error))?;
        let (waiting, held) = (info.num_pending, u64::try_from(info.num_ack_pending).unwrap_or(u64::MAX));
        let state = &stream.cached_info().state;
        let oldest = (state.messages > 0).then(|| state.first_timestamp.unix_timestamp_nanos());
        let oldest = oldest.and_then(|nanos| Timestamp::from_nanosecond(nanos).ok());
        let oldest = oldest.map(|begun| Timestamp::now().duration_since(begun).unsigned_abs());
        let dead = self.context.get_stream(DEAD).await.map_err(|error| failed(&error))?;
        Ok(QueueStatus { waiting, held, oldest, dead: dead.cached_info().state.messages })
    }

    /// Waits until everything that was sent has left.
    pub async fn flush(&self) {
        // What is not sent is delivered again.
        let _ = self.client.flush().await;
    }
}

impl Delivery {
    /// Says that the task is being worked on.
    pub async fn keep_alive(&self) {
        self.answer(AckKind::Progress).await;
    }

    /// Takes the task out of the queue: its result is kept.
    pub async fn finish(&self) {
        // Answered by the server, so that a task with a result is not delivered again without need.
        if self.message.double_ack().await.is_err() {
            self.answer(AckKind::Ack).await;
        }
    }

    /// Gives the task back, to be delivered again after a while.
    pub async fn give_back(&self, after: Duration) {
        self.answer(AckKind::Nak(Some(after).filter(|after| !after.is_zero()))).await;
    }

    async fn answer(&self, kind: AckKind) {
        // What is not heard is delivered again.
        let _ = self.message.ack_with(kind).await;
    }
}

/// The name by which a message is known again.
fn name_message(kind: &str, job: &str, id: &str) -> String {
    format!("{kind}-{job}-{}", &hash_sha256([id.as_bytes()])[..24])
}
