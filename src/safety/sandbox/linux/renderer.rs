//! Renders templates that could run away in a process of its own: without an environment, with limits of memory and
//! time, and ended by a signal that reaches this program. It starts with the first such template and serves the others.
//!
//! Lines over a socket: an order after the seconds that it may compute, questions (`?`) and their answers, a result (`=`).

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};

use nix::sys::signal::Signal;

use super::part::{SandboxPart, take_socket};
use crate::template::{self, OrderQuestion};

/// The longest that a template may take, in milliseconds: until the settings are read, as long as they say by default.
static LONGEST: AtomicU64 = AtomicU64::new(2000);
/// The most memory that the process may have.
const MOST_MEMORY: u64 = 256 << 20;
/// The seconds of processor time that a template may take beyond its time, should nobody be there to end it.
const MORE_SECONDS: u64 = 1;

/// The process, once a template has needed it.
static RENDERER: Mutex<Option<Renderer>> = Mutex::new(None);
/// The connection of a rendering that goes on.
static RENDERING: Mutex<Option<UnixStream>> = Mutex::new(None);

struct Renderer {
    child: Child,
    socket: BufReader<UnixStream>,
}

/// Lets such templates be rendered there, from now on.
pub fn guard_templates() {
    template::render_apart_with(render_apart);
}

/// Sets the longest that a template may take from now on.
pub fn limit_rendering(longest: Duration) {
    LONGEST.store(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

fn longest() -> Duration {
    Duration::from_millis(LONGEST.load(Ordering::Relaxed))
}

/// Ends the rendering that goes on, if any.
pub fn end_rendering() {
    if let Some(socket) = hold(&RENDERING).as_ref() {
        // It fails only where the process has ended already.
        let _ = socket.shutdown(Shutdown::Both);
    }
}

fn render_apart(order: &str, answer: &mut dyn FnMut(&str) -> String) -> Result<String, String> {
    let mut held = hold(&RENDERER);
    let renderer = match held.take() {
        Some(renderer) => renderer,
        None => Renderer::start().map_err(|error| format!("the process that renders it cannot start: {error}"))?,
    };
    let renderer = held.insert(renderer);
    let result = renderer.converse(order, answer);
    hold(&RENDERING).take();
    result.map_err(|error| held.take().map_or_else(String::new, |renderer| renderer.describe_end(&error)))
}

impl Renderer {
    fn start() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        // First, so that a signal that comes while the process starts ends what it is started for.
        *hold(&RENDERING) = Some(ours.try_clone()?);
        // Keys that interrupt the program do not reach it, so that it survives them while it is idle.
        let child = SandboxPart::Renderer.command(theirs).process_group(0).spawn()?;
        Ok(Self { child, socket: BufReader::new(ours) })
    }

    fn converse(&mut self, order: &str, answer: &mut dyn FnMut(&str) -> String) -> io::Result<String> {
        *hold(&RENDERING) = Some(self.socket.get_ref().try_clone()?);
        let (begun, longest) = (Instant::now(), longest());
        write_line(self.socket.get_mut(), &format!("{} {order}", longest.as_secs() + MORE_SECONDS))?;
        loop {
            let left = longest.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
            self.socket.get_ref().set_read_timeout(Some(left))?;
            let line = read_line(&mut self.socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            match line.split_at_checked(1) {
                Some(("=", result)) => return Ok(result.to_owned()),
                Some(("?", question)) => write_line(self.socket.get_mut(), &answer(question))?,
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Ends the process, and tells why it gave no result.
    fn describe_end(mut self, error: &io::Error) -> String {
        // It may have ended already; then this changes nothing.
        let _ = self.child.kill();
        match self.child.wait() {
            _ if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                format!("it runs too long: it was ended after {:?} (templates.timeout)", longest())
            }
            Ok(status) => describe_status(status),
            Err(_) => error.to_string(),
        }
    }
}

fn describe_status(status: ExitStatus) -> String {
    match status.signal().and_then(|signal| Signal::try_from(signal).ok()) {
        Some(Signal::SIGKILL) => "it was interrupted".to_owned(),
        Some(Signal::SIGABRT) => {
            format!("it takes more than {} MiB of memory, or nests too deeply", MOST_MEMORY >> 20)
        }
        _ => format!("the process that renders it failed ({status})"),
    }
}

/// Renders what comes over the socket, as a process of its own.
pub(super) fn run_renderer() -> io::Result<()> {
    lower_limit(Resource::RLIMIT_DATA, MOST_MEMORY)?;
    lower_limit(Resource::RLIMIT_CORE, 0)?;
    let socket = take_socket()?;
    let reader = Arc::new(Mutex::new(BufReader::new(socket.try_clone()?)));
    let asked = Arc::clone(&reader);
    let ask: OrderQuestion = Arc::new(move |question| {
        let mut asked = hold(&asked);
        let answer = write_line(asked.get_mut(), &format!("?{question}")).and_then(|()| read_line(&mut asked));
        answer.ok().flatten().unwrap_or_default()
    });
    let mut writer = socket;
    loop {
        let order = read_line(&mut hold(&reader))?;
        let Some(order) = order else { return Ok(()) };
        let (more, order) = order.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
        let more: u64 = more.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        let used = getrusage(UsageWho::RUSAGE_SELF)?;
        let seconds = u64::try_from(used.user_time().tv_sec() + used.system_time().tv_sec()).unwrap_or_default();
        lower_limit(Resource::RLIMIT_CPU, seconds.saturating_add(more))?;
        let result = template::serve_order(order, &ask);
        write_line(&mut writer, &format!("={result}"))?;
    }
}

/// Sets a limit, up to what this process may have at most.
fn lower_limit(resource: Resource, limit: u64) -> io::Result<()> {
    let (_, most) = getrlimit(resource)?;
    Ok(setrlimit(resource, limit.min(most), most)?)
}

fn write_line(socket: &mut UnixStream, line: &str) -> io::Result<()> {
    // Data in JSON has no line breaks.
    socket.write_all(format!("{line}\n").as_bytes())
}

/// The next line; `None` at the end.
fn read_line(socket: &mut BufReader<UnixStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = socket.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end_matches('\n').to_owned()))
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
