//! Checks that the model answers, with one short question that costs a few tokens.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::assembly::{self, ModelCheck, Outlook, Reached, RunOptions};
use crate::config::Config;
use crate::model::Face;

use super::super::CommandFailure;
use super::account::{DoctorCheck, Health};

/// The longest that the doctor waits for the answer.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn check_model(config: &Arc<Config>) -> Result<DoctorCheck, CommandFailure> {
    let of = "model";
    let outlook = match assembly::read_outlook(config, &RunOptions::default()) {
        Ok(outlook) => outlook,
        Err(error) => return Ok(DoctorCheck::new(of, Health::Bad, error.to_string())),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if !outlook.is_configured {
        let advice = runtime.block_on(assembly::without_model(config, Face::Run));
        return Ok(DoctorCheck::new(of, Health::Bad, format!("none is configured\n{advice}")));
    }
    let Some(server) = &outlook.server else {
        return Ok(DoctorCheck::new(of, Health::Good, format!("{}: scripted, needs no server", outlook.model)));
    };
    let check = match ModelCheck::new(config, &RunOptions::default()) {
        Ok(check) => check,
        Err(error) => return Ok(DoctorCheck::new(of, Health::Bad, error.to_string())),
    };
    let name = format!("{} at {server}", outlook.model);
    let reached = runtime.block_on(async { tokio::time::timeout(PATIENCE, check.reach()).await });
    Ok(match reached {
        Ok(Ok(reached)) => judge_reached(&outlook, &name, &reached),
        Ok(Err(error)) => {
            let why = config.redactor().redact(&error.to_string()).into_owned();
            let says = format!("{name} does not answer: {why}\n`agent model check` asks again, and tests more");
            DoctorCheck::new(of, Health::Bad, says)
        }
        Err(_) => {
            let seconds = PATIENCE.as_secs();
            let says = format!(
                "{name} has not answered within {seconds} s: check that the server is running, or name another model \
                 (models/default.yaml, -m)"
            );
            DoctorCheck::new(of, Health::Bad, says)
        }
    })
}

fn judge_reached(outlook: &Outlook, name: &str, reached: &Reached) -> DoctorCheck {
    let Reached { streams, window, calls_tools, sees, usage } = reached;
    let can = [(*streams, "streams"), (*calls_tools, "calls tools"), (*sees, "sees pictures")];
    let can: Vec<&str> = can.iter().filter(|(can, _)| *can).map(|(_, what)| *what).collect();
    let spent = format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens);
    let says = format!(
        "{name} answers; it {}, window {} tokens ({}); this took one request, {spent}",
        can.join(", "),
        window.tokens,
        window.source
    );
    if window.source == "assumed" {
        let file = if outlook.model.contains('/') { "models/NAME.yaml" } else { "models/default.yaml" };
        return DoctorCheck::new(
            "model",
            Health::Weak,
            format!(
                "{says}\nnobody knows its window: declare `context_window` in {file} (`agent model check` helps)"
            ),
        );
    }
    DoctorCheck::new("model", Health::Good, says)
}
