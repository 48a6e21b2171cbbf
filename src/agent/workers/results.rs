//! The database of results, sessions and leases: PostgreSQL. The door to tokio-postgres.
//!
//! A session is rows of its log's own lines. A connection that broke is made again by the next call.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, IsolationLevel};

use super::queue::ACK_WAIT;
use super::tls::DatabaseTls;
use super::{FinishedTask, QueuedTask};

/// The version of the tables.
const SCHEMA: i32 = 1;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE agent_schema (version int NOT NULL);
    CREATE TABLE agent_leases (
        job text, id text, worker text NOT NULL, fence bigint NOT NULL, begun int NOT NULL, until timestamptz NOT NULL,
        PRIMARY KEY (job, id)
    );
    CREATE TABLE agent_results (
        job text, id text, exit_code int NOT NULL, body text NOT NULL, finished_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (job, id)
    );
    CREATE INDEX agent_results_finished ON agent_results (finished_at);
    CREATE TABLE agent_sessions (session text, line bigint, content text NOT NULL, PRIMARY KEY (session, line));
    INSERT INTO agent_schema VALUES (1);
";

/// The database.
pub struct ResultStore {
    config: Config,
    tls: DatabaseTls,
    client: Mutex<Option<Client>>,
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
        config.connect_timeout(CONNECT_TIMEOUT).application_name("agent");
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

    /// Runs something on the connection, on a new one if it broke before.
    async fn with<T>(&self, work: impl AsyncFnOnce(&mut Client) -> Result<T, String>) -> Result<T, String> {
        let mut slot = self.client.lock().await;
        let mut client = match slot.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.connect().await?,
        };
        let done = work(&mut client).await;
        if !client.is_closed() {
            *slot = Some(client);
        }
        done
    }

    /// Takes a task for a worker, unless another holds it or it has a result.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn claim(&self, task: &QueuedTask, worker: &str) -> Result<TaskClaim, String> {
        self.with(async |client| {
            if let Some(finished) = find_result(client, &task.job, &task.id).await? {
                return Ok(TaskClaim::Finished(Box::new(finished)));
            }
            let sql =
                "INSERT INTO agent_leases AS held VALUES ($1, $2, $3, 1, 1, now() + $4 * interval '1 second')
                       ON CONFLICT (job, id) DO UPDATE SET worker = $3, fence = held.fence + 1,
                           begun = held.begun + 1, until = now() + $4 * interval '1 second'
                       WHERE held.until < now()
                       RETURNING fence, begun";
            let row = client.query_opt(sql, &[&task.job, &task.id, &worker, &ACK_WAIT.as_secs_f64()]).await;
            let held =
                row.map_err(word_failure)?.map(|row| TaskClaim::Held { fence: row.get(0), begun: row.get(1) });
            Ok(held.unwrap_or(TaskClaim::Taken))
        })
        .await
    }

    /// Holds a lease longer. Returns false if it is another worker's by now.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn renew(&self, lease: &Lease<'_>) -> Result<bool, String> {
        self.with(async |client| {
            let sql = "UPDATE agent_leases SET until = now() + $4 * interval '1 second'
                       WHERE job = $1 AND id = $2 AND fence = $3";
            let (job, id) = (&lease.task.job, &lease.task.id);
            let changed = client.execute(sql, &[job, id, &lease.fence, &ACK_WAIT.as_secs_f64()]).await;
            Ok(changed.map_err(word_failure)? == 1)
        })
        .await
    }

    /// Gives a lease back at once, as if it had never been held.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn release(&self, lease: &Lease<'_>) -> Result<(), String> {
        self.with(async |client| {
            let sql = "UPDATE agent_leases SET until = now() - interval '1 second', begun = begun - 1
                       WHERE job = $1 AND id = $2 AND fence = $3";
            let (job, id) = (&lease.task.job, &lease.task.id);
            client.execute(sql, &[job, id, &lease.fence]).await.map(drop).map_err(word_failure)
        })
        .await
    }

    /// Writes a result and the log of its session, in one transaction that holds the lease.
    ///
    /// # Errors
    /// The database does not take it: a sentence.
    pub async fn finish(&self, finished: &FinishedTask, fence: i64, log: &str) -> Result<Written, String> {
        self.with(async |client| {
            let begun = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await;
            let transaction = begun.map_err(word_failure)?;
            let (job, id) = (&finished.job, &finished.id);
            let sql = "SELECT fence FROM agent_leases WHERE job = $1 AND id = $2 FOR UPDATE";
            let held = transaction.query_opt(sql, &[job, id]).await.map_err(word_failure)?;
            let sql = "SELECT 1 FROM agent_results WHERE job = $1 AND id = $2";
            if transaction.query_opt(sql, &[job, id]).await.map_err(word_failure)?.is_some() {
                return Ok(Written::Known);
            }
            if held.is_some_and(|row| row.get::<_, i64>(0) != fence) {
                return Ok(Written::LeaseLost);
            }
            // A text of the database holds no NUL; JSON escapes it.
            let body = serde_json::to_string(finished).map_err(|error| error.to_string())?;
            let sql = "INSERT INTO agent_results (job, id, exit_code, body) VALUES ($1, $2, $3, $4)";
            let code = i32::from(finished.exit_code);
            transaction.execute(sql, &[job, id, &code, &body]).await.map_err(word_failure)?;
            if let Some(session) = &finished.session {
                let sql = "INSERT INTO agent_sessions
                           SELECT $1, line, content FROM unnest($2::text[]) WITH ORDINALITY AS lines (content, line)";
                let lines: Vec<&str> = log.lines().collect();
                transaction.execute(sql, &[session, &lines]).await.map_err(word_failure)?;
            }
            transaction.commit().await.map_err(word_failure)?;
            Ok(Written::Kept)
        })
        .await
    }

    /// The result of a task, if it has one.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn find(&self, job: &str, id: &str) -> Result<Option<FinishedTask>, String> {
        self.with(async |client| find_result(client, job, id).await).await
    }

    /// The log of a session, byte for byte; empty if there is none.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn read_log(&self, session: &str) -> Result<String, String> {
        self.with(async |client| {
            let sql = "SELECT content FROM agent_sessions WHERE session = $1 ORDER BY line";
            let rows = client.query(sql, &[&session]).await.map_err(word_failure)?;
            Ok(rows.iter().flat_map(|row| [row.get::<_, &str>(0), "\n"]).collect())
        })
        .await
    }

    /// How many results there are.
    ///
    /// # Errors
    /// The database cannot be asked: a sentence.
    pub async fn status(&self) -> Result<ResultStatus, String> {
        self.with(async |client| {
            let sql = "SELECT count(*), count(*) FILTER (WHERE exit_code <> 0),
                              count(*) FILTER (WHERE finished_at > now() - interval '1 minute') FROM agent_results";
            let row = client.query_one(sql, &[]).await.map_err(word_failure)?;
            Ok(ResultStatus { finished: row.get(0), failed: row.get(1), last_minute: row.get(2) })
        })
        .await
    }
}

async fn find_result(client: &Client, job: &str, id: &str) -> Result<Option<FinishedTask>, String> {
    let sql = "SELECT body FROM agent_results WHERE job = $1 AND id = $2";
    let row = client.query_opt(sql, &[&job, &id]).await.map_err(word_failure)?;
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
