//! The one place that makes of a tool's output what the model reads.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;

use crate::agent::{Agent, Emitter, ToolTerms};
use crate::base::output::{Kept, Lost, ResponseFormat, ToolOutput};
use crate::base::present::{self, Occasion, ResultSource};
use crate::base::text;
use crate::base::tokens::BYTES_PER_TOKEN;
use crate::config::ToolOutputSettings;
use crate::conversation::message::CallAnswer;
use crate::conversation::spill::Spill;

use super::execute::{CallLimits, CallOutcome};

/// Shapes the results of calls.
pub(super) struct ResultShaper<'a> {
    pub agent: &'a Agent,
    pub spill: Arc<Spill>,
    pub emitter: Arc<Emitter>,
    pub limits: CallLimits,
}

impl ResultShaper<'_> {
    /// Makes the answer of an outcome, in this order:
    ///
    /// 1. Secrets are removed everywhere, before anything is cut: half a secret would not be recognised.
    /// 2. `look` sees the clean and whole result, and may return a note about it.
    /// 3. Marks that may not direct the model are broken: only this program's own notices look like one afterwards.
    /// 4. What is too long is cut, and the whole goes to the spill store.
    /// 5. Notices of this program: an edited command before the result; after it the outcome's remarks, the note, and
    ///    the news of background commands.
    /// 6. The parts for the format are selected. Data that is too large is cut to its first items, likewise kept.
    /// 7. All of it is written in the encoding, with the frame that marks it as data.
    pub fn shape(
        &self,
        outcome: &mut CallOutcome<'_>,
        look: impl FnOnce(&CallOutcome<'_>) -> Option<String>,
    ) -> CallAnswer {
        let unknown = ToolTerms::default();
        let found = self.agent.tools.get(&outcome.prepared.call.name);
        let terms = found.map_or(&unknown, |found| &found.terms);
        let most = terms.max_tokens.unwrap_or(self.limits.shown_tokens);
        self.redact_output(&mut outcome.output);
        let note = look(outcome);
        self.cut_observation(outcome, most);
        self.add_notices(outcome, note);
        self.write_answer(outcome, terms, most)
    }

    fn redact_output(&self, output: &mut ToolOutput) {
        let redactor = &self.agent.redactor;
        output.observation = redactor.redact(&output.observation).into_owned();
        output.summary = redactor.redact(&output.summary).into_owned();
        redactor.redact_value(&mut output.result);
        output.state_update.values_mut().for_each(|value| redactor.redact_value(value));
    }

    /// Breaks the marks in an observation that may not direct the model (a failure may quote anything), then cuts it if
    /// it is too long and keeps the whole text for `recall`.
    fn cut_observation(&self, outcome: &mut CallOutcome<'_>, most: usize) {
        let CallOutcome { prepared, trusted, end, output, .. } = outcome;
        let broken = match present::break_text_marks(&output.observation) {
            Cow::Owned(broken) if !*trusted || !end.has_result() => Some(broken),
            _ => None,
        };
        let shown = broken.as_deref().unwrap_or(&output.observation);
        if shown.len() <= most * BYTES_PER_TOKEN && !self.is_dense(shown, most) {
            output.observation = broken.unwrap_or_else(|| std::mem::take(&mut output.observation));
            return;
        }
        let was_cut = output.kept.is_some();
        let kept = output.kept.take().or_else(|| self.keep_whole(&prepared.call.name, &output.observation));
        output.observation = self.cut_middle(shown, most, kept.as_ref(), was_cut);
        output.kept = kept;
        output.truncated = true;
    }

    fn add_notices(&self, outcome: &mut CallOutcome<'_>, note: Option<String>) {
        let redactor = &self.agent.redactor;
        let output = &mut outcome.output;
        for remark in &outcome.remarks {
            let _ = write!(output.observation, "\n[{}]", present::break_text_marks(&redactor.redact(remark)));
        }
        if let Some(line) = &outcome.prepared.edited {
            // It is inside the marks of the result.
            let line = redactor.redact_known(line);
            let line = present::break_text_marks(&line);
            output.observation.insert_str(0, &format!("[The user changed your command to:\n{line}\n]\n"));
            if let Value::Object(result) = &mut output.result {
                result.insert("command_of_user".to_owned(), line.into());
            }
        }
        output.observation += &note.unwrap_or_default();
        for news in self.agent.jobs.news() {
            let _ = write!(output.observation, "\n[{}]", present::break_text_marks(&news));
        }
    }

    /// Keeps a text that is too long for the conversation, if the model has the tool to read it. Results of that tool
    /// are already kept.
    fn keep_whole(&self, tool: &str, whole: &str) -> Option<Kept> {
        let recall = self.agent.tools.find("recall").ok()?;
        if tool == recall.tool.definition().name {
            return None;
        }
        let kept = self.spill.keep(whole);
        if let Kept::Beginning { why, .. } | Kept::Nothing(why) = &kept {
            let why = match why {
                Lost::Full => "the store is full",
                Lost::Failed => "the disk failed",
            };
            self.emitter
                .warn([format!("the part that was cut out of a result is not kept, or not to its end: {why}")]);
        }
        Some(kept)
    }

    fn write_answer(&self, outcome: &mut CallOutcome<'_>, terms: &ToolTerms, most: usize) -> CallAnswer {
        let CallOutcome { prepared, trusted, end, output, measured, .. } = outcome;
        let (call, status) = (&prepared.call, end.status());
        // The name of an unknown tool could contain anything.
        let tool = self.agent.tools.get(&call.name).map_or("unknown", |_| call.name.as_str());
        let latency = measured.latency.unwrap_or_default();
        let duration_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        let occasion = Occasion { call_id: &call.id, duration_ms };
        let ToolOutputSettings { format, encoding } = self.agent.tool_output;
        let (format, encoding) = (terms.format.unwrap_or(format), terms.encoding.unwrap_or(encoding));
        let most = self.bytes_of_data(&output.result, format, most);
        if output.kept.is_none()
            && let Some(whole) = present::left_out(status, output, format, most)
        {
            output.truncated = true;
            output.kept = self.keep_whole(&call.name, &whole);
        }
        let view =
            present::select_view(ResultSource { tool, trusted: *trusted }, status, output, format, occasion, most);
        CallAnswer {
            content: present::encode_view(&view, encoding),
            status,
            images: std::mem::take(&mut output.images),
            spill_id: output.kept.as_ref().and_then(Kept::id_of_whole).map(str::to_owned),
            skill: output.skill.take(),
            digested: false,
        }
    }

    /// True if a text has far more than so many tokens. What a tool has cut to fit is a little denser at times.
    fn is_dense(&self, text: &str, most: usize) -> bool {
        self.limits.rates.exceeds(text, most + most / 4)
    }

    /// The bytes that data may have within so many tokens.
    fn bytes_of_data(&self, data: &Value, format: ResponseFormat, most: usize) -> usize {
        let shown = matches!(format, ResponseFormat::Detailed | ResponseFormat::Raw).then(|| data.to_string());
        match shown.filter(|data| self.is_dense(data, most)) {
            Some(data) => self.limits.rates.take_tokens(&data, most, text::take_head).len(),
            None => most * BYTES_PER_TOKEN,
        }
    }

    /// Keeps the head and the tail of a long text, with a notice about the gap: its size, and how to read it.
    fn cut_middle(&self, observation: &str, most: usize, kept: Option<&Kept>, was_cut: bool) -> String {
        let rates = &self.limits.rates;
        let (head, tail) = (
            rates.take_tokens(observation, most * 2 / 3, text::take_head),
            rates.take_tokens(observation, most / 3, text::take_tail),
        );
        let left_out = &observation[head.len()..observation.len() - tail.len()];
        let (bytes, lines) = (left_out.len(), left_out.matches('\n').count());
        let how = kept.map_or(String::new(), |kept| format!("; {}", kept.notice()));
        // A tool has cut this before: there is more missing than can be counted here.
        let size = if was_cut { String::new() } else { format!("{bytes} bytes, {lines} lines ") };
        format!("{head}\n[… {size}left out{how} …]\n{tail}")
    }
}
