//! Who answers questions: a person, or nobody.

use std::iter;
use std::path::{Path, PathBuf};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::enclosure::Enclosure;
use super::plan_review::{PlanReview, PlanSheet};
use crate::base::text;

/// Answers questions, on behalf of a person or of nobody.
pub trait Approver: Send + Sync {
    /// True if a person is present.
    fn present(&self) -> bool;

    /// Asks whether this call may run.
    fn approve<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Approval>;

    /// Asks whether a plan, or a proposal in words, is to be carried out.
    fn review_plan<'a>(&'a self, sheet: PlanSheet<'a>) -> BoxFuture<'a, PlanReview>;

    /// Asks the person a question of the model; `None` if nobody answers.
    fn answer<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>>;

    /// The files that the person has open where they work; `None` where that is not known.
    fn open_files(&self) -> Option<&dyn OpenFiles> {
        None
    }
}

/// The files in a person's editor, with changes that are not saved.
pub trait OpenFiles: Send + Sync {
    /// The text of a file as the editor has it; `None` if it does not say.
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>>;

    /// Has the editor save a file with this text; false if it did not.
    fn save<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, bool>;
}

/// A permission question to a person.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The helper whose call it is, such as `explore#2`; `None` for the agent that the person runs.
    pub helper: Option<&'a str>,
    pub tool: &'a str,
    /// Exactly what would happen, in full: the command, or the diff.
    pub preview: &'a str,
    /// The preview is a unified diff of files.
    pub is_change: bool,
    /// The reason for asking.
    pub why: &'a str,
    /// Exactly what [`Approval::Always`] would allow for the rest of the session; `None` if that answer is not
    /// offered.
    pub always: Option<&'a str>,
    /// The walls around the command that would run; `None` if no command would.
    pub enclosure: Option<Enclosure>,
    /// True if those walls let the network through.
    pub network: bool,
    /// Directories outside the workspace that are opened to it.
    pub opened: &'a [PathBuf],
    /// True if a known secret is masked in the preview, which is then not exactly what would run.
    pub hidden: bool,
    /// The command line that [`Approval::Edited`] may replace, exactly as it would run; `None` if that answer is not
    /// offered.
    pub editable: Option<&'a str>,
}

impl<'a> Question<'a> {
    /// A question about a call that needs nothing beyond.
    pub fn about(tool: &'a str, preview: &'a str) -> Self {
        Self {
            helper: None,
            tool,
            preview,
            is_change: false,
            why: "",
            always: None,
            enclosure: None,
            network: false,
            opened: &[],
            hidden: false,
            editable: None,
        }
    }

    /// Whose call of which tool it is.
    pub fn describe_tool(&self) -> String {
        let whose = self.helper.map_or(String::new(), |helper| format!("{helper}: "));
        text::one_line(&text::reveal(&format!("{whose}{}", self.tool)), 80)
    }

    /// What the command could do; `None` if no command would run.
    pub fn describe_place(&self) -> Option<String> {
        let network = if self.network { "with the network" } else { "no network" };
        Some(match self.enclosure? {
            Enclosure::Read => format!("only reads, {network}"),
            Enclosure::Write | Enclosure::Opened => {
                let opened = self.opened.iter().map(|dir| text::reveal_in_line(&dir.to_string_lossy()));
                let dirs: Vec<String> = iter::once("the workspace".to_owned()).chain(opened).collect();
                format!("writes in {}, {network}", dirs.join(" and "))
            }
            Enclosure::Outside => "outside the sandbox".to_owned(),
        })
    }

    /// The reason for asking; `None` if there is none to tell.
    pub fn describe_reason(&self) -> Option<String> {
        (!self.why.is_empty()).then(|| format!("asked because {}", text::reveal_in_line(self.why)))
    }

    /// What the person must not overlook.
    pub fn list_warnings(&self) -> impl Iterator<Item = &'static str> {
        let outside = "It runs with your own permissions: it can read your keys and change any of your files.";
        let secret = "One of your secrets is hidden as ***: the text shown is not exactly what would run.";
        let warnings = [(self.enclosure == Some(Enclosure::Outside), outside), (self.hidden, secret)];
        warnings.into_iter().filter_map(|(holds, words)| holds.then_some(words))
    }

    /// The question in Markdown, for a person whom another program asks. Nothing in the preview ends its block, or hides.
    pub fn to_markdown(&self) -> String {
        let place = self.describe_place().map(|place| format!(" · {place}")).unwrap_or_default();
        let mut told = format!("{}{place}", self.describe_tool());
        for words in self.describe_reason().into_iter().chain(self.list_warnings().map(str::to_owned)) {
            told.extend(["\n", &words]);
        }
        let block = text::fence_code(&text::reveal(self.preview), if self.is_change { "diff" } else { "" });
        format!("{told}\n\n{block}")
    }
}

/// The answer to a permission question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    Allow,
    /// Allows this call and, for the rest of the session, everything that [`Question::always`] names.
    Always,
    /// Runs this command line in place of [`Question::editable`], without another question.
    Edited(String),
    /// The reason, for the model; empty if none was given.
    Deny(String),
    /// Nobody could be asked.
    Nobody,
}

/// Denies every question: nobody is there to answer.
pub struct Nobody;

impl Approver for Nobody {
    fn present(&self) -> bool {
        false
    }

    fn approve<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Approval> {
        std::future::ready(Approval::Nobody).boxed()
    }

    fn review_plan<'a>(&'a self, _sheet: PlanSheet<'a>) -> BoxFuture<'a, PlanReview> {
        std::future::ready(PlanReview::Refuse(String::new())).boxed()
    }

    fn answer<'a>(&'a self, _question: &'a str, _choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }
}
