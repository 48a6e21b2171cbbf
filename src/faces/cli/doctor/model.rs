//! Checks that the model answers, with one short question that costs a few tokens.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::assembly::{self, ModelCheck, Options, Outlook, Reached};
use crate::config::Config;
use crate::model::Face;

use super::super::Failure;
use super::account::{Check, Health};

/// The longest that the doctor waits for the answer.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn check(config: &Arc<Config>) -> Result<Check, Failure> {
    let of = "model";
    let outlook = match assembly::outlook(config, &Options::default()) {
        Ok(outlook) => outlook,
        Err(error) => return Ok(Check::new(of, Health::Bad, error.to_string())),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if !outlook.is_configured {
        let advice = runtime.block_on(assembly::without_model(config, Face::Run));
        return Ok(Check::new(of, Health::Bad, format!("none is configured\n{advice}")));
    }
    let Some(server) = &outlook.server else {
        return Ok(Check::new(of, Health::Good, format!("{}: scripted, needs no server", outlook.model)));
    };
    let check = match ModelCheck::new(config, &Options::default()) {
        Ok(check) => check,
        Err(error) => return Ok(Check::new(of, Health::Bad, error.to_string())),
    };
    let name = format!("{} at {server}", outlook.model);
    let reached = runtime.block_on(async { tokio::time::timeout(PATIENCE, check.reach()).await });
    Ok(match reached {
        Ok(Ok(reached)) => answered(&outlook, &name, &reached),
        Ok(Err(error)) => {
            let why = config.redactor().redact(&error.to_string()).into_owned();
            let says = format!("{name} does not answer: {why}\n`agent model check` asks again, and tests more");
            Check::new(of, Health::Bad, says)
        }
        Err(_) => {
            let seconds = PATIENCE.as_secs();
            let says = format!(
                "{name} has not answered within {seconds} s: check that the server is running, or name another model \
                 (models/default.yaml, -m)"
            );
            Check::new(of, Health::Bad, says)
        }
    })
}

fn answered(outlook: &Outlook, name: &str, reached: &Reached) -> Check {
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
        return Check::new(
            "model",
            Health::Weak,
            format!(
                "{says}\nnobody knows its window: declare `context_window` in {file} (`agent model check` helps)"
            ),
        );
    }
    Check::new("model", Health::Good, says)
}
