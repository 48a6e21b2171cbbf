//! `agent stats`: the cost of a session, for people or for programs.

use crate::app;
use crate::telemetry;

use super::args::ReportFormat;
use super::setup::Setup;
use super::{Failure, Outcome, exit, print, tables};

pub(super) fn run(setup: &Setup, session: Option<&str>, output: ReportFormat) -> Outcome {
    let workspace = setup.workspace()?;
    let config = setup.config(&workspace)?;
    let store = app::store(&config);
    let id = match session {
        Some(id) => id.to_owned(),
        None => match store.latest(workspace.root())? {
            Some(latest) => latest.id,
            None => {
                return Err(Failure::usage(
                    "there is no session in this workspace yet. `agent session list --all` lists those of others.",
                ));
            }
        },
    };
    let (session, warnings) = store.read(&id).map_err(|error| Failure::new(exit::USAGE, error))?;
    for warning in warnings {
        super::warn(&warning);
    }
    let (report, model) = (tables::costs(&session), session.about().model);
    print(match output {
        ReportFormat::Text => telemetry::table(&report, model, tables::edge()),
        ReportFormat::Json => serde_json::to_string_pretty(&report.json(session.id(), model))? + "\n",
    })
}
