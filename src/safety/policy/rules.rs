//! The rules of the configuration: deny wins, then ask, then allow.
//!
//! Deny and ask apply to anything that a rule matches or could match; allow requires every part of the call to
//! match. A redirection is judged as the `read_file` or `write_file` of its target, and the command that a
//! configured tool makes as a `run_command`.

use crate::base::text::GlobPattern;
use crate::config::{ApprovalMode, PermissionRule, RuleEffect};

use super::call::{Opens, ParsedLine, ProposedCall};
use super::habits::{Habit, delegates_work, strip_leading_flags};
use super::pattern::{CommandPattern, PathPattern, RuleMatch};
use super::shell::Simple;
use super::target::PathTarget;

/// The tool whose rules for commands apply to the commands of all tools.
const COMMANDS: &str = "run_command";
/// Tools that leave out denied paths themselves.
const LEAVE_OUT: [&str; 4] = ["glob", "grep", "list_dir", "load_skill_reference"];

/// All rules in force.
#[derive(Debug, Clone, Default)]
pub struct PolicyRules(Vec<PolicyRule>);

#[derive(Debug, Clone)]
struct PolicyRule {
    effect: RuleEffect,
    tool: GlobPattern,
    scope: RuleScope,
    /// The rule as it is in the configuration.
    text: String,
}

#[derive(Debug, Clone)]
enum RuleScope {
    Everything,
    Path(PathPattern),
    Command(CommandPattern),
}

/// The answer of the rules that deny and ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Objection {
    Denied(String),
    Asked(String),
    /// A deny or ask rule may match.
    Doubtful(String),
}

impl PolicyRules {
    /// # Errors
    /// A rule is wrong; the configuration reports it with its place.
    pub fn new(rules: &[PermissionRule]) -> Result<Self, String> {
        rules.iter().map(PolicyRule::new).collect::<Result<_, _>>().map(Self)
    }

    /// True if a rule denies every call of a tool.
    pub(super) fn deny_all_of(&self, tool: &str) -> bool {
        let is_whole = |rule: &PolicyRule| matches!(rule.scope, RuleScope::Everything);
        self.0.iter().any(|rule| rule.effect == RuleEffect::Deny && is_whole(rule) && rule.tool.matches(tool))
    }

    /// True if a rule allows a call of a tool.
    pub(super) fn could_allow(&self, tool: &str) -> bool {
        self.0.iter().any(|rule| rule.effect == RuleEffect::Allow && rule.tool.matches(tool))
    }

    /// The patterns of the paths that a tool never sees, however it finds them: those denied to it, and those denied to
    /// `read_file`.
    pub fn denied_to(&self, tool: &str) -> Vec<GlobPattern> {
        let denies = |rule: &&PolicyRule| {
            rule.effect == RuleEffect::Deny && (rule.tool.matches(tool) || rule.denies(Opens::ToRead))
        };
        let pattern = |rule: &PolicyRule| match &rule.scope {
            RuleScope::Path(pattern) => Some(pattern.glob().clone()),
            _ => None,
        };
        self.0.iter().filter(denies).filter_map(pattern).collect()
    }

    pub(super) fn objection(&self, call: &ProposedCall<'_>) -> Option<Objection> {
        let of = |effect: RuleEffect, wanted: RuleMatch| {
            self.0.iter().find(|rule| rule.effect == effect && rule.matches(call) == wanted)
        };
        if let Some(rule) = of(RuleEffect::Deny, RuleMatch::Yes) {
            return Some(Objection::Denied(format!("the rule `{}` forbids it", rule.text)));
        }
        if let Some(rule) = of(RuleEffect::Deny, RuleMatch::Possible) {
            return Some(Objection::Doubtful(format!("it could be what the rule `{}` forbids", rule.text)));
        }
        if let Some(rule) = of(RuleEffect::Ask, RuleMatch::Yes) {
            return Some(Objection::Asked(format!("the rule `{}` wants it asked", rule.text)));
        }
        of(RuleEffect::Ask, RuleMatch::Possible)
            .map(|rule| Objection::Doubtful(format!("it could be what the rule `{}` wants asked", rule.text)))
    }

    /// True if every part of the call may run without asking.
    pub(super) fn allow(&self, call: &ProposedCall<'_>, mode: ApprovalMode) -> bool {
        if let Some(line) = &call.line {
            return self.allow_line(call.tool, line, mode);
        }
        let mut reads = call.reads.iter().filter(|target| !target.is_free_to_read()).peekable();
        if call.writes.is_empty() && reads.peek().is_none() {
            return self.allows_all(call.tool);
        }
        call.writes.iter().all(|target| self.covers(call.tool, target, Opens::ToWrite))
            && reads.all(|target| self.covers(call.tool, target, Opens::ToRead))
    }

    fn allow_line(&self, tool: &str, line: &ParsedLine, mode: ApprovalMode) -> bool {
        if self.allows_all(tool) {
            return true;
        }
        // The configuration of a tool says whether it only reads.
        let freed: Vec<bool> = line.commands().map(|(command, _)| self.frees(tool, command)).collect();
        let is_own = line.configured.is_none() && !line.script.names_home() && !line.script.calculates();
        let is_harmless = line.commands().map(|(_, part)| is_own && part.is_harmless());
        let writes = line.files.iter().any(|(_, opens)| *opens == Opens::ToWrite);
        line.is_inside
            && line.script.doubt().is_none()
            && (writes || freed.contains(&true))
            && freed.iter().zip(is_harmless).all(|(is_freed, is_harmless)| *is_freed || is_harmless)
            && line
                .files
                .iter()
                .all(|(target, opens)| target.as_ref().is_some_and(|target| self.frees_file(target, *opens, mode)))
    }

    /// The program in the line that delegates to another one, unless a rule names it.
    pub(super) fn find_delegate<'l>(&self, tool: &str, line: &'l ParsedLine) -> Option<&'l str> {
        let is_named = |command: &Simple| self.list_matching(tool, command).any(|pattern| pattern.spells(0));
        let all = line.script.all().into_iter();
        all.filter(|command| delegates_work(command) && !is_named(command)).find_map(Simple::program)
    }

    /// The rule that denies paths, if there is one.
    pub(super) fn hiding(&self) -> Option<&str> {
        let hides =
            |rule: &&PolicyRule| rule.effect == RuleEffect::Deny && matches!(rule.scope, RuleScope::Path(_));
        self.0.iter().find(hides).map(|rule| rule.text.as_str())
    }

    /// True if a redirection from or to this file may happen without asking.
    pub(super) fn frees_file(&self, target: &PathTarget, opens: Opens, mode: ApprovalMode) -> bool {
        match opens {
            Opens::ToRead => target.is_free_to_read() || self.covers("read_file", target, opens),
            Opens::ToWrite => {
                let is_edit = mode == ApprovalMode::Edits && target.is_of_work() && !target.is_protected;
                is_edit || self.covers("write_file", target, opens)
            }
        }
    }

    fn frees(&self, tool: &str, command: &Simple) -> bool {
        let mut matching = self.list_matching(tool, command);
        if !command.assigned.is_empty() || command.argv.is_empty() {
            return false;
        }
        let Some(inside) = &command.inside else { return matching.next().is_some() };
        let inner_is_free = inside.script.unresolved.is_none()
            && inside.script.commands.iter().all(|inner| self.frees(tool, inner));
        if inner_is_free {
            inside.is_transparent || matching.next().is_some()
        } else {
            // A rule may spell out what is run: `sudo apt-get update`.
            matching.any(|pattern| pattern.spells(inside.at))
        }
    }

    /// True if the rule covers a path. No rule covers a file that decides later what runs, and a path outside is
    /// covered only by a rule that names it.
    fn covers(&self, tool: &str, target: &PathTarget, opens: Opens) -> bool {
        if opens == Opens::ToWrite && target.is_protected {
            return false;
        }
        self.list_allowing(tool).any(|rule| match &rule.scope {
            RuleScope::Everything => target.is_of_work(),
            RuleScope::Path(pattern) => pattern.allows(target),
            RuleScope::Command(_) => false,
        })
    }

    fn list_allowing(&self, tool: &str) -> impl Iterator<Item = &PolicyRule> {
        self.0.iter().filter(move |rule| rule.effect == RuleEffect::Allow && rule.tool.matches(tool))
    }

    /// The patterns that allow this command of the tool. Rules that allow `run_command` allow the commands of every tool.
    fn list_matching(&self, tool: &str, command: &Simple) -> impl Iterator<Item = &CommandPattern> {
        let of_commands = self.list_allowing(COMMANDS).filter(move |rule| !rule.tool.matches(tool));
        self.list_allowing(tool).chain(of_commands).filter_map(move |rule| match &rule.scope {
            RuleScope::Command(pattern) if pattern.matches(&command.argv, false) == RuleMatch::Yes => {
                Some(pattern)
            }
            _ => None,
        })
    }

    /// True if a rule allows everything that the tool does.
    fn allows_all(&self, tool: &str) -> bool {
        self.list_allowing(tool).any(|rule| matches!(rule.scope, RuleScope::Everything))
    }
}

impl PolicyRule {
    fn new(rule: &PermissionRule) -> Result<Self, String> {
        let Some((effect, tool)) = rule.subject() else {
            return Err("a rule has one of deny, ask, allow".to_owned());
        };
        let scope = match (&rule.path, &rule.command) {
            (None, None) => RuleScope::Everything,
            (Some(path), None) => RuleScope::Path(PathPattern::new(path)?),
            (None, Some(command)) => RuleScope::Command(CommandPattern::new(command)?),
            (Some(_), Some(_)) => return Err("a rule has a path or a command, not both".to_owned()),
        };
        Ok(Self { effect, tool: GlobPattern::word(tool)?, scope, text: rule.to_string() })
    }

    /// True if it denies a path to `read_file` or `write_file`, and so to every tool that does the same with files.
    fn denies(&self, opens: Opens) -> bool {
        self.effect == RuleEffect::Deny && self.tool.matches(opens.tool())
    }

    fn matches(&self, call: &ProposedCall<'_>) -> RuleMatch {
        let is_meant = self.tool.matches(call.tool);
        match &self.scope {
            RuleScope::Everything if is_meant => RuleMatch::Yes,
            RuleScope::Everything => {
                let mut files = call.line.iter().flat_map(|line| &line.files);
                RuleMatch::certain(files.any(|(_, opens)| self.tool.matches(opens.tool())))
            }
            RuleScope::Path(pattern) => {
                let leaves_out = self.effect == RuleEffect::Deny && LEAVE_OUT.contains(&call.tool);
                let concerns = |opens| is_meant || (self.denies(opens) && call.line.is_none());
                let reads = call.reads.iter().filter(|_| concerns(Opens::ToRead));
                let own = reads.chain(call.writes.iter().filter(|_| concerns(Opens::ToWrite)));
                let own = own.map(|target| match pattern.restricts(target) {
                    RuleMatch::Possible if leaves_out => RuleMatch::No,
                    found => found,
                });
                let line = call.line.iter().map(|line| self.matches_line(pattern, line, is_meant));
                own.chain(line).max().unwrap_or(RuleMatch::No)
            }
            RuleScope::Command(pattern) => {
                let is_meant = is_meant || self.tool.matches(COMMANDS);
                let Some(line) = call.line.as_ref().filter(|_| is_meant) else { return RuleMatch::No };
                let all = line.script.all();
                let match_of = |command: &&Simple| {
                    let bare = strip_leading_flags(&command.argv);
                    pattern.matches(&command.argv, true).max(pattern.matches(&bare, true))
                };
                let most = all.iter().map(match_of).max();
                let doubt = if line.script.doubt().is_some() { RuleMatch::Possible } else { RuleMatch::No };
                most.unwrap_or(RuleMatch::No).max(doubt)
            }
        }
    }

    /// Matches a path that the line names literally. The walls hide whatever else programs open.
    fn matches_line(&self, pattern: &PathPattern, line: &ParsedLine, is_meant: bool) -> RuleMatch {
        let opened = line.list_opened(|opens| is_meant || self.tool.matches(opens.tool()));
        let (reads, writes) = (self.tool.matches("read_file"), self.tool.matches("write_file"));
        let is_about = |habit: Habit| is_meant || reads || (writes && habit == Habit::Unknown);
        let named = line.list_possible_paths().filter(|(_, habit)| is_about(*habit)).map(|(target, _)| target);
        let is_named = opened.chain(named).any(|target| pattern.restricts(target) == RuleMatch::Yes);
        RuleMatch::certain(is_named)
    }
}

impl Opens {
    /// The tool with the same effect.
    pub(super) fn tool(self) -> &'static str {
        match self {
            Self::ToRead => "read_file",
            Self::ToWrite => "write_file",
        }
    }
}
