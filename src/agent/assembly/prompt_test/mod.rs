//! Runs the test cases of prompts: cases that only render at once, the others with a model, several at a time, or from
//! recordings.

mod watch;
mod attempt;
mod judges;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::agent::Cancel;
use crate::config::Config;
use crate::prompt::test::{
    Assertion, Case, CaseOutcome, CaseRun, JudgeAnswer, Recorded, Recordings, Suite, Tested, fingerprint_request,
    question_key, render_case, replay_case, replay_run, run_rendered,
};
use crate::prompt::{Prompt, PromptContext, Registry};
use crate::template;

use super::paced::Gate;
use super::{RunOptions, SetupError};
use attempt::{AttemptContext, attempt_case, model_of};

/// The source of a model's replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replies {
    /// From the model; nothing is recorded.
    Asked,
    /// Only from recordings: no model is asked.
    Replayed,
    /// From recordings if they exist; otherwise from the model, and recorded.
    Completed,
    /// From the model; all of it is recorded.
    Renewed,
}

/// The settings for running cases.
pub struct Bench<'a> {
    pub config: &'a Arc<Config>,
    pub registry: &'a Registry,
    /// The agent, the model and the limits of a run. Its prompt is not used.
    pub options: RunOptions,
    pub replies: Replies,
    /// The most runs at a time.
    pub jobs: usize,
    /// The number of runs of each case, in place of its own.
    pub runs: Option<u32>,
    pub cancel: Cancel,
}

/// The progress of a test: the runs that are done, and all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestProgress {
    pub done: usize,
    pub all: usize,
}

impl Bench<'_> {
    /// Runs the cases of a suite against one version. `recordings` are those of the version; new replies are added if
    /// `replies` says so. `model` names the model whose recordings are replayed; `None` means any model.
    ///
    /// # Errors
    /// No agent can be assembled. A failed run is not an error.
    pub async fn test(
        &self,
        prompt: &Arc<Prompt>,
        suite: &Suite,
        recordings: &mut Recordings,
        model: Option<&str>,
        progress: &dyn Fn(TestProgress),
    ) -> Result<Tested, SetupError> {
        let gate = Gate::default();
        let around =
            AttemptContext { config: self.config, options: &self.options, gate: &gate, cancel: &self.cancel };
        let asks = suite.cases.iter().any(|case| !case.render);
        let model = match self.replies {
            Replies::Replayed => model.map(str::to_owned),
            _ if asks => Some(model_of(around)?),
            _ => None,
        };
        let sample = PromptContext::sample().value_for(prompt);
        let mut outcomes: Vec<Option<CaseOutcome>> = Vec::with_capacity(suite.cases.len());
        for case in &suite.cases {
            outcomes.push(self.without_a_model(prompt, case, &sample, recordings, model.as_deref()));
        }
        let open: Vec<usize> = (0..outcomes.len()).filter(|at| outcomes[*at].is_none()).collect();
        let tasks: Vec<(usize, u32)> = open
            .iter()
            .flat_map(|at| (1..=self.runs.unwrap_or(suite.cases[*at].runs)).map(|run| (*at, run)))
            .collect();
        let all = tasks.len();
        progress(TestProgress { done: 0, all });
        let mut done = 0;
        let runs = tasks.into_iter().map(|(at, run)| {
            let (case, model) = (&suite.cases[at], model.clone().unwrap_or_default());
            async move { Ok::<_, SetupError>((at, self.run(around, prompt, case, run, model).await?)) }
        });
        let runs: Vec<(usize, Recorded)> = stream::iter(runs)
            .buffer_unordered(self.jobs.max(1))
            .inspect_ok(|_| {
                done += 1;
                progress(TestProgress { done, all });
            })
            .try_collect()
            .await?;
        for at in open {
            let case = &suite.cases[at];
            let mut of_case: Vec<Recorded> =
                runs.iter().filter(|(of, _)| *of == at).map(|(_, run)| run.clone()).collect();
            of_case.sort_by_key(|run| run.run);
            let rendered = render_case(prompt, case, &sample).unwrap_or_default();
            outcomes[at] = Some(CaseOutcome::from_runs(
                case,
                of_case.iter().map(|run| replay_run(case, run, &rendered)).collect(),
            ));
            if matches!(self.replies, Replies::Completed | Replies::Renewed) {
                // A failed run is not recorded, unless the case tests the failure.
                let asked = of_case.len();
                of_case.retain(|run| run.reply.failure.is_none() || case.looks_at_the_code());
                // After an interruption, only what is whole.
                if of_case.len() == asked || !self.cancel.is_triggered() {
                    recordings.put(of_case);
                }
            }
        }
        Ok(Tested {
            prompt: prompt.version.map_or(prompt.name.clone(), |version| format!("{}@{version}", prompt.name)),
            fingerprint: prompt.fingerprint().to_owned(),
            model: model.filter(|_| asks),
            cases: outcomes.into_iter().flatten().collect(),
        })
    }

    /// The outcome of a case that needs no model.
    fn without_a_model(
        &self,
        prompt: &Prompt,
        case: &Case,
        sample: &template::Value,
        recordings: &Recordings,
        model: Option<&str>,
    ) -> Option<CaseOutcome> {
        if case.render {
            return Some(run_rendered(prompt, case, sample));
        }
        let from_recording = || replay_case(prompt, case, sample, recordings, model);
        match self.replies {
            Replies::Asked | Replies::Renewed => None,
            Replies::Completed => from_recording().ok(),
            Replies::Replayed => Some(from_recording().unwrap_or_else(|why| {
                let why = format!("{why}; --record records it");
                CaseOutcome::from_runs(case, vec![CaseRun::record_failure("a recording to replay", why)])
            })),
        }
    }

    async fn run(
        &self,
        around: AttemptContext<'_>,
        prompt: &Arc<Prompt>,
        case: &Case,
        run: u32,
        model: String,
    ) -> Result<Recorded, SetupError> {
        let mut reply = attempt_case(around, prompt, case).await?;
        let mut judged: BTreeMap<String, JudgeAnswer> = BTreeMap::new();
        // A run without an answer is not judged.
        let questions = case.assert.iter().filter_map(Assertion::question);
        for question in questions.filter(|_| reply.failure.is_none()).collect::<Vec<_>>() {
            let (answer, cost) = judges::answer_question(around, self.registry, question, &reply.output).await;
            judged.insert(question_key(question), answer);
            reply.judging_cost = match (reply.judging_cost, cost) {
                (Some(before), Some(cost)) => Some(before + cost),
                (before, cost) => cost.or(before),
            };
        }
        let asked = fingerprint_request(prompt.fingerprint(), case);
        Ok(Recorded { case: case.name.clone(), run, asked, model, reply, judged })
    }
}
