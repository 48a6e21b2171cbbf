//! Commands inside the sandbox: the parts that all tools that start commands share.
//!
//! A separate remark at the end of the observation says what the sandbox refused or undid, so that the model does
//! not search for the fault in the command; the UI may offer to run it outside.

use std::io::PipeReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::output::{ToolError, ToolErrorKind};
use crate::conversation::event::EventKind;
use crate::files::file_name;
use crate::safety::net::proxy::{self, Hosts};
use crate::safety::process::{self, ChildEnd, ChildPatience, Exit, Launch};
use crate::safety::sandbox::{
    self, Boundary, Denied, MOST_PROCESSES, MovedAside, Network, Protection, Sandbox, SandboxProfile, Undone,
    Walls,
};
use crate::safety::{Enclosure, Hold, Refused, net::Proxies};
use crate::tools::CallContext;

use super::environment::Environment;
use super::hidden::find_matches;

/// What a layer over the workspace does not do.
const NO_RENAMES: &str = "in this trial a directory that was there before cannot be renamed: copy it and remove the old \
                          one, as `mv` does";

/// The environment and sandbox of commands.
pub struct Confined {
    env: Environment,
    /// `None` if it was turned off.
    sandbox: Option<Arc<Sandbox>>,
    /// The proxies between this machine and the hosts of the settings.
    proxies: Proxies,
}

/// A program to run.
pub struct ProgramOrder<'a> {
    pub program: &'a str,
    pub arguments: &'a [&'a str],
    pub dir: &'a Path,
    /// Variables besides those of every command; they win over those of the same name.
    pub variables: &'a [(String, String)],
    pub patience: ChildPatience<'a>,
    /// What it reads; nothing without it.
    pub input: Option<&'a PipeReader>,
}

/// A finished command, and its forbidden changes.
pub struct ProgramOutcome {
    pub ended: ChildEnd,
    undone: Undone,
    walls: Option<Walls>,
}

impl Confined {
    pub fn new(env: impl Into<Environment>, sandbox: Option<Arc<Sandbox>>, proxies: Proxies) -> Self {
        Self { env: env.into(), sandbox, proxies }
    }

    /// The limits that the walls can enforce on a command.
    pub fn hold(&self) -> Hold {
        match &self.sandbox {
            None => Hold::Nothing,
            Some(sandbox) if sandbox.is_whole() => Hold::Whole,
            Some(sandbox) if sandbox.hides() => Hold::Permitted,
            Some(_) => Hold::Reading,
        }
    }

    /// True if commands have network access: the boundary permits it, or there is none.
    pub fn has_network(&self) -> bool {
        self.sandbox.as_ref().is_none_or(|sandbox| sandbox.plan().network != Network::Closed)
    }

    /// Begins to set up the boundary without waiting.
    pub fn prepare(&self) {
        if let Some(sandbox) = &self.sandbox {
            sandbox.prepare();
        }
    }

    /// The walls that a command gets if `wanted` ones are asked for.
    pub fn enclosure(&self, wanted: Enclosure) -> Enclosure {
        if self.sandbox.is_some() { wanted } else { Enclosure::Outside }
    }

    /// A sentence about the boundary for a tool's description, with a leading space; or an empty string.
    pub fn describe_boundary(&self) -> String {
        let Some(plan) = self.sandbox.as_ref().map(|sandbox| sandbox.plan()) else { return String::new() };
        let network = if plan.network == Network::Open { "" } else { ", no network" };
        format!(" Writes only in workspace{} and $TMPDIR{network}.", plan.name_further())
    }

    /// The boundary for a command that starts now; `None` if it was turned off, or may be left.
    ///
    /// # Errors
    /// The boundary is unavailable; the error is of the kind `Unavailable`.
    pub fn walls(&self, context: &CallContext<'_>) -> Result<Option<Walls>, ToolError> {
        let Some(sandbox) = &self.sandbox else { return Ok(None) };
        let opened;
        let (sandbox, profile) = match context.enclosure {
            Enclosure::Read => (&**sandbox, SandboxProfile::Read),
            Enclosure::Write => (&**sandbox, SandboxProfile::Write),
            Enclosure::Opened => {
                opened = sandbox.open(&context.reach.opening);
                (&opened, SandboxProfile::Write)
            }
            Enclosure::Outside => return Ok(None),
        };
        let walls = sandbox.walls(profile);
        let walls = walls.map_err(|error| ToolError::new(ToolErrorKind::Unavailable, error.to_string()))?;
        let workspace = context.reach.workspace();
        let mut unseen = find_matches(workspace.root(), &context.reach.denied)?;
        for original in workspace.originals() {
            unseen.extend(find_matches(original, &context.reach.denied)?);
        }
        unseen.extend(workspace.denied().follow(workspace.root(), &unseen));
        let mut unwritten = find_matches(workspace.root(), &context.reach.unwritten)?;
        // A program that a person runs by its name is not to be one that a command left.
        unwritten.extend(workspace.programs().iter().cloned());
        Ok(Some(walls.hiding(unseen, unwritten)))
    }

    /// Runs a command to its end: inside the sandbox, unless this call may leave it.
    ///
    /// # Errors
    /// It cannot be started; the error is of the kind `Unavailable` if there is no sandbox to start it in.
    pub async fn run(
        &self,
        order: ProgramOrder<'_>,
        context: &CallContext<'_>,
        seen: impl FnMut(&[u8]) + Send,
    ) -> Result<ProgramOutcome, ToolError> {
        let walls = self.walls(context)?;
        if walls.is_some() {
            self.tell_weakness(context);
        }
        let protection = walls.as_ref().map(|walls| Protection::begin(walls, context.workspace.root()));
        let ended = self.run_within(walls.as_ref(), order, seen).await?;
        let undone = protection.map(Protection::end).unwrap_or_default();
        Ok(ProgramOutcome { ended, undone, walls })
    }

    /// Tells observers, once per run, what is weaker on this system.
    pub fn tell_weakness(&self, context: &CallContext<'_>) {
        let told = self.sandbox.as_ref().and_then(|sandbox| sandbox.weakness().ok()?);
        if let Some(message) = told {
            (context.notify)(EventKind::Warning { message });
        }
    }

    /// Runs a command to its end, without watching protected files.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn run_within(
        &self,
        walls: Option<&Walls>,
        order: ProgramOrder<'_>,
        seen: impl FnMut(&[u8]) + Send,
    ) -> Result<ChildEnd, ToolError> {
        let ProgramOrder { program, arguments, dir, variables, patience, input } = order;
        let mut env = self.env.variables().to_vec();
        env.extend_from_slice(variables);
        if let Some(walls) = walls {
            env.retain(|(name, _)| name != "TMPDIR");
            let temp = walls.temp_dir().map_err(|error| ToolError::permanent(error.to_string()))?;
            env.push(("TMPDIR".to_owned(), temp.to_string_lossy().into_owned()));
            self.open_hosts(walls, &mut env)?;
        } else if let Some(sandbox) = &self.sandbox {
            keep_programs_outside(&mut env, &sandbox.plan().workspace);
        }
        let launch = Launch { program, arguments, dir, env: &env, patience, input, walls };
        process::run_child(launch, seen)
            .await
            .map_err(|error| ToolError::permanent(format!("the command could not be run: {error}")))
    }

    /// Starts the proxy for the hosts of the settings, if there are any, and names it to a command.
    fn open_hosts(&self, walls: &Walls, env: &mut Vec<(String, String)>) -> Result<(), ToolError> {
        const NAMES: [&str; 6] =
            ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
        let Some(sandbox) = &self.sandbox else { return Ok(()) };
        let (Network::Hosts(hosts), Some(port)) = (&sandbox.plan().network, walls.proxy_port()) else {
            return Ok(());
        };
        if let Some(listener) = walls.proxy_listener() {
            let started = proxy::start_proxy(listener, Hosts::new(hosts, self.proxies.clone()));
            started.map_err(|error| {
                ToolError::permanent(format!("the proxy for commands does not start: {error}"))
            })?;
        }
        env.retain(|(name, _)| !NAMES.contains(&name.as_str()));
        env.extend(NAMES.map(|name| (name.to_owned(), format!("http://127.0.0.1:{port}"))));
        env.extend(["no_proxy", "NO_PROXY"].map(|name| (name.to_owned(), "localhost,127.0.0.1,::1".to_owned())));
        Ok(())
    }

    /// Remarks about the sandbox and the outcome, as lines for the model; the observers are notified as well.
    /// `output` is the command's output.
    pub fn remarks(outcome: &ProgramOutcome, output: &str, context: &CallContext<'_>) -> String {
        let walls = outcome.walls.as_ref();
        let denied = walls.and_then(|walls| find_denial(&outcome.ended, output, context.enclosure, walls.plan()));
        let claims = |denied: &Denied| denied.how == Refused::Claimed && context.enclosure == Enclosure::Write;
        let named = walls.filter(|_| denied.as_ref().is_some_and(claims)).map(|walls| walls.find_named(output));
        let undone = describe_undone(&outcome.undone);
        let named = named.filter(|named| !named.is_empty()).map(Refused::Changing);
        let how = outcome.undone.refusal().or(named).or_else(|| denied.as_ref().map(|denied| denied.how.clone()));
        if let Some(how) = how {
            (context.refused)(how);
        }
        for message in warn_of_changes(&outcome.undone, &[]) {
            (context.notify)(EventKind::Warning { message });
        }
        let is_renamed = context.workspace.layer().is_some()
            && outcome.ended.exit != Exit::Code(0)
            && output.to_lowercase().contains("cross-device link");
        let renamed = is_renamed.then(|| NO_RENAMES.to_owned());
        bracket_remarks(denied.into_iter().map(|denied| denied.why).chain(renamed).chain(undone))
    }
}

/// The sandbox's possible part in the end of a command inside it; `plan` is what its walls permit.
pub fn find_denial(ended: &ChildEnd, output: &str, enclosure: Enclosure, plan: &Boundary) -> Option<Denied> {
    if ended.flooded {
        let why = format!("the command was ended: it had started more than {MOST_PROCESSES} processes");
        return Some(Denied { why, how: Refused::Known });
    }
    let signal = match &ended.exit {
        Exit::Code(0) => return None,
        Exit::Signal(name) => Some(name.as_str()),
        Exit::Code(_) => None,
    };
    if enclosure == Enclosure::Read && sandbox::says_it_could_not_write(output) {
        let why = "it ran as a command that only reads: it could write only in $TMPDIR".to_owned();
        return Some(Denied { why, how: Refused::Writing });
    }
    sandbox::explain_denial(output, signal, plan)
}

/// Removes from `PATH` what leads into the workspace: outside of all walls, a name means a program that commands cannot
/// have written.
pub fn keep_programs_outside(env: &mut [(String, String)], workspace: &Path) {
    let leads_inside = |dir: &Path| crate::files::canonicalize(dir).is_ok_and(|dir| dir.starts_with(workspace));
    for (_, path) in env.iter_mut().filter(|(name, _)| name == "PATH") {
        let dirs = path.split(':').filter(|dir| dir.starts_with('/') && !leads_inside(Path::new(dir)));
        *path = dirs.collect::<Vec<_>>().join(":");
    }
}

/// The remarks about forbidden changes.
pub fn describe_undone(undone: &Undone) -> Vec<String> {
    const RULE: &str = "Commands may not change files that decide what runs later";
    let Undone { aside, put_back, refused, left } = undone;
    let kept = |moved: &MovedAside| format!("{} (kept as {})", moved.name, file_name::quote(&moved.kept));
    let join = |moved: &[MovedAside]| moved.iter().map(kept).collect::<Vec<_>>().join(", ");
    let rows = [
        (!aside.is_empty()).then(|| format!("moved aside: {}. {RULE}", join(aside))),
        (!put_back.is_empty()).then(|| format!("put back as before: {}. {RULE}", put_back.join(", "))),
        (!refused.is_empty()).then(|| {
            format!(
                "not taken over: changes of {}. {RULE}: settings that run a program or lead elsewhere",
                join(refused)
            )
        }),
        (!left.is_empty()).then(|| {
            format!(
                "changed by the command, though commands may not, and it could not be put back: {}",
                left.join(", ")
            )
        }),
    ];
    rows.into_iter().flatten().collect()
}

/// Tells a person of forbidden changes, and of executables that appeared where `git status` shows nothing.
pub fn warn_of_changes(undone: &Undone, executables: &[PathBuf]) -> impl Iterator<Item = String> {
    let remarks = describe_undone(undone).into_iter().map(|remark| format!("the sandbox: {remark}"));
    let shown = executables.iter().take(3).map(|path| file_name::quote(path)).collect::<Vec<_>>().join(", ");
    let more = executables.get(3..).filter(|rest| !rest.is_empty());
    let more = more.map_or_else(String::new, |rest| format!(" and {} more", rest.len()));
    let made = (!executables.is_empty())
        .then(|| format!("git ignores executables that were made or changed: {shown}{more}"));
    remarks.chain(made)
}

/// Formats remarks as separate lines at the end of a text.
pub fn bracket_remarks(remarks: impl IntoIterator<Item = String>) -> String {
    remarks.into_iter().fold(String::new(), |lines, remark| lines + "\n[" + &remark + "]")
}
