//! The database of results, sessions and leases: PostgreSQL. The door to tokio-postgres.
//!
//! A session is rows of its log's own lines, added while its task runs. A connection that broke is made again by the next call.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config};

use super::queue::ACK_WAIT;
use super::tls::DatabaseTls;
use super::{FinishedTask, QueuedTask};

/// The version of the tables.
const SCHEMA: i32 = 2;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what was sent may stay unanswered by the other machine, before the connection counts as broken.
const NO_ANSWER: Duration = Duration::from_secs(15);
/// The most running tasks that a status names.
const MOST_NAMED: i64 = 20;

/// The values of a statement with their types: with these it needs one way there and back.
type Values<'v> = &'v [(&'v (dyn ToSql + Sync), Type)];
const TEXT: Type = Type::TEXT;

const TABLES: &str = "
    CREATE TABLE agent_schema (version int NOT NULL);
    CREATE TABLE agent_leases (
        job text, id text, worker text NOT NULL, fence bigint NOT NULL, begun int NOT NULL, until timestamptz NOT NULL,
        session text, PRIMARY KEY (job, id)
    );
    CREATE TABLE agent_results (
        job text, id text, exit_code int NOT NULL, body text NOT NULL, finished_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (job, id)
    );
    CREATE INDEX agent_results_finished ON agent_results (finished_at);
    CREATE TABLE agent_sessions (session text, line bigint, content text NOT NULL, PRIMARY KEY (session, line));
    INSERT INTO agent_schema VALUES (2);
";

/// The database.
pub struct ResultStore {
    config: Config,
    tls: DatabaseTls,
    client: Mutex<Option<Arc<Client>>>,
}

/// What became of the wish to work on a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskClaim {
    /// It is this worker's, under this fencing number. So many workers began it, this one included.
    Held { fence: i64, begun: i32 },
    /// Another worker holds it.
    Taken,
    /// It has a result.
    Finished(Box<FinishedTask>),
}

/// What a worker holds of a task.
pub struct Lease<'a> {
    pub task: &'a QueuedTask,
    pub fence: i64,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Kept,
    /// The task has a result already: nothing was written.
    Known,
    /// The lease is another worker's by now, and that one is at work: nothing was written.
    LeaseLost,
}

/// A task that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTask {
    pub id: String,
    pub worker: String,
    /// How many workers began it, this one included.
    pub begun: i32,
    /// Its session, once lines of it are in the database.
    pub session: Option<String>,
}

/// The results of the last minute, and of all time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultStatus {
    pub finished: i64,
    pub failed: i64,
    pub last_minute: i64,
}

impl ResultStore {
    /// Reads the address of a database. Nothing is connected yet.
    ///
    /// # Errors
    /// It is no address: a sentence without it, as it may hold a password.
    pub fn new(url: &str) -> Result<Self, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("the address of the store cannot be used: {error}");
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| wrong(&error))?;
        config.connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(NO_ANSWER).application_name("agent");
        let tls = DatabaseTls::new().map_err(|error| wrong(&error))?;
        Ok(Self { config, tls, client: Mutex::default() })
    }

    /// Makes the tables. Returns false if they are there.
    ///
    /// # Errors
    /// The database cannot be reached, or its tables are of another version: a sentence.
    pub async fn prepare(&self) -> Result<bool, String> {
        let client = self.connect().await?;
        let (client, failed) = (&client, word_failure);
        let known = client.query_opt("SELECT to_regclass('agent_schema')::text", &[]).await.map_err(failed)?;
        if known.and_then(|row| row.get::<_, Option<String>>(0)).is_some() {
            return Self::check_version(client).await.map(|()| false);
        }
        client.batch_execute(&format!("BEGIN; {TABLES} COMMIT;")).await.map_err(failed).map(|()| true)
    }

    /// Checks that the tables are there, and of the version that this program knows.
    ///
    /// # Errors
    /// They are not: a sentence.
    pub async fn check(&self) -> Result<(), String> {
        let client = self.connect().await?;
        let known =
            client.query_opt("SELECT to_regclass('agent_schema')::text", &[]).await.map_err(word_failure)?;
        if known.and_then(|row| row.get::<_, Option<String>>(0)).is_none() {
            return Err("the store has no tables yet: `agent worker init --store URL` makes them".to_owned());
        }
        Self::check_version(&client).await
    }

    async fn check_version(client: &Client) -> Result<(), String> {
        let row = client.query_one("SELECT max(version) FROM agent_schema", &[]).await.map_err(word_failure)?;
        match row.get::<_, Option<i32>>(0) {
            Some(SCHEMA) => Ok(()),
            version => Err(format!(
                "the tables of the store are of version {}, and this program knows {SCHEMA}: they are left as they are",
                version.unwrap_or_default()
            )),
        }
    }

    async fn connect(&self) -> Result<Client, String> {
        let (client, connection) = self.config.connect(self.tls.clone()).await.map_err(word_failure)?;
        // It ends with the client.
        tokio::spawn(async move { drop(connection.await) });
        Ok(client)
    }

    /// The connection, a new one if it broke. What many ask of it goes over it side by side.
    async fn client(&self) -> Result<Arc<Client>, String> {
        let mut slot = self.client.lock().await;
        if let Some(client) = slot.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        Ok(Arc::clone(slot.insert(Arc::new(self.connect().await?))))
    }

    /// Takes a task for a worker, unless another holds it or it has a result.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn claim(&self, task: &QueuedTask, worker: &str) -> Result<TaskClaim, String> {
        let client = self.client().await?;
        let (job, id) = (&task.job, &task.id);
        let sql = "INSERT INTO agent_leases AS held
                   VALUES ($1, $2, $3, 1, 1, now() + $4 * interval '1 second')
                   ON CONFLICT (job, id) DO UPDATE SET worker = $3, fence = held.fence + 1,
                       begun = held.begun + 1, session = NULL, until = now() + $4 * interval '1 second'
                   WHERE held.until < now()
                   RETURNING fence, begun";
        let wait = ACK_WAIT.as_secs_f64();
        let values: Values<'_> = &[(job, TEXT), (id, TEXT), (&worker, TEXT), (&wait, Type::FLOAT8)];
        let row = client.query_typed_opt(sql, values).await.map_err(word_failure)?;
        if let Some(row) = row {
            return Ok(TaskClaim::Held { fence: row.get(0), begun: row.get(1) });
        }
        let finished = find_result(&client, job, id).await?;
        Ok(finished.map_or(TaskClaim::Taken, |finished| TaskClaim::Finished(Box::new(finished))))
    }

    /// Holds a lease longer, and adds these lines of the log of the task's session, which come after so many. Returns false
    /// if the lease is another worker's by now: then nothing is added.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn renew(
        &self,
        lease: &Lease<'_>,
        session: Option<&str>,
        after: usize,
        log: &str,
    ) -> Result<bool, String> {
        let client = self.client().await?;
        let sql = "WITH held AS (UPDATE agent_leases
                       SET until = now() + $4 * interval '1 second', session = $5
                       WHERE job = $1 AND id = $2 AND fence = $3 RETURNING session),
                   added AS (INSERT INTO agent_sessions
                       SELECT held.session, $6 + line, content
                       FROM held, unnest($7) WITH ORDINALITY AS lines (content, line)
                       ON CONFLICT DO NOTHING)
                   SELECT count(*) FROM held";
        let (wait, task) = (ACK_WAIT.as_secs_f64(), lease.task);
        let (after, lines) = (i64::try_from(after).unwrap_or(i64::MAX), log.lines().collect::<Vec<_>>());
        let values: Values<'_> = &[
            (&task.job, TEXT),
            (&task.id, TEXT),
            (&lease.fence, Type::INT8),
            (&wait, Type::FLOAT8),
            (&session, TEXT),
            (&after, Type::INT8),
            (&lines, Type::TEXT_ARRAY),
        ];
        let row = client.query_typed_one(sql, values).await.map_err(word_failure)?;
        Ok(row.get::<_, i64>(0) == 1)
    }

    /// Gives a lease back at once, as if it had never been held.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn release(&self, lease: &Lease<'_>) -> Result<(), String> {
        let client = self.client().await?;
        let sql = "UPDATE agent_leases SET until = now() - interval '1 second', begun = begun - 1
                   WHERE job = $1 AND id = $2 AND fence = $3";
        let (job, id) = (&lease.task.job, &lease.task.id);
        client.execute(sql, &[job, id, &lease.fence]).await.map(drop).map_err(word_failure)
    }

    /// Writes a result and what the log of its session has gained, at once and as the holder of the lease.
    ///
    /// # Errors
    /// The database does not take it: a sentence.
    pub async fn finish(&self, finished: &FinishedTask, fence: i64, log: &str) -> Result<Written, String> {
        let client = self.client().await?;
        // The lease of a finished task never ends. Where it is gone nobody else can have it.
        let sql = "WITH lease AS (SELECT fence FROM agent_leases WHERE job = $1 AND id = $2 FOR UPDATE),
                   kept AS (INSERT INTO agent_results (job, id, exit_code, body)
                       SELECT $1, $2, $4, $5 WHERE NOT EXISTS (SELECT FROM lease WHERE fence <> $3)
                       ON CONFLICT DO NOTHING RETURNING 1),
                   held AS (UPDATE agent_leases SET until = 'infinity', session = $6 FROM kept
                       WHERE job = $1 AND id = $2),
                   added AS (INSERT INTO agent_sessions
                       SELECT $6, line, content
                       FROM kept, unnest($7) WITH ORDINALITY AS lines (content, line)
                       ON CONFLICT DO NOTHING)
                   SELECT EXISTS (SELECT FROM kept),
                          EXISTS (SELECT FROM agent_results WHERE job = $1 AND id = $2)";
        // A text of the database holds no NUL; JSON escapes it.
        let body = serde_json::to_string(finished).map_err(|error| error.to_string())?;
        let lines: Vec<&str> = finished.session.iter().flat_map(|_| log.lines()).collect();
        let code = i32::from(finished.exit_code);
        let values: Values<'_> = &[
            (&finished.job, TEXT),
            (&finished.id, TEXT),
            (&fence, Type::INT8),
            (&code, Type::INT4),
            (&body, TEXT),
            (&finished.session, TEXT),
            (&lines, Type::TEXT_ARRAY),
        ];
        let row = client.query_typed_one(sql, values).await.map_err(word_failure)?;
        Ok(match (row.get(0), row.get(1)) {
            (true, _) => Written::Kept,
            (false, true) => Written::Known,
            (false, false) => Written::LeaseLost,
        })
    }

    /// The result of a task, if it has one.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn find(&self, job: &str, id: &str) -> Result<Option<FinishedTask>, String> {
        find_result(&*self.client().await?, job, id).await
    }

    /// The log of a session, byte for byte; empty if there is none.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn read_log(&self, session: &str) -> Result<String, String> {
        let client = self.client().await?;
        let sql = "SELECT content FROM agent_sessions WHERE session = $1 ORDER BY line";
        let rows = client.query(sql, &[&session]).await.map_err(word_failure)?;
        Ok(rows.iter().flat_map(|row| [row.get::<_, &str>(0), "\n"]).collect())
    }

    /// Some of the tasks that are held and have no result.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn list_held(&self) -> Result<Vec<HeldTask>, String> {
        let client = self.client().await?;
        let sql = "SELECT id, worker, begun, session FROM agent_leases
                   WHERE until > now() AND until < 'infinity' ORDER BY until, id LIMIT $1";
        let rows = client.query(sql, &[&MOST_NAMED]).await.map_err(word_failure)?;
        let read = |row: &tokio_postgres::Row| HeldTask {
            id: row.get(0),
            worker: row.get(1),
            begun: row.get(2),
            session: row.get(3),
        };
        Ok(rows.iter().map(read).collect())
    }

    /// How many results there are.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn status(&self) -> Result<ResultStatus, String> {
        let client = self.client().await?;
        let sql = "SELECT count(*), count(*) FILTER (WHERE exit_code <> 0),
                          count(*) FILTER (WHERE finished_at > now() - interval '1 minute') FROM agent_results";
        let row = client.query_one(sql, &[]).await.map_err(word_failure)?;
        Ok(ResultStatus { finished: row.get(0), failed: row.get(1), last_minute: row.get(2) })
    }
}

async fn find_result(client: &Client, job: &str, id: &str) -> Result<Option<FinishedTask>, String> {
    let sql = "SELECT body FROM agent_results WHERE job = $1 AND id = $2";
    let row = client.query_typed_opt(sql, &[(&job, TEXT), (&id, TEXT)]).await.map_err(word_failure)?;
    Ok(row.and_then(|row| serde_json::from_str(row.get(0)).ok()))
}

/// A failure of the database, with what its server says.
fn word_failure(error: tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("the store refuses it: {}", said.message()),
        None => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("the store cannot be reached: {error}{cause}")
        }
    }
}
