//! A plan without its calls: what the orchestration itself costs. A plan of eight steps is read, checked, followed step
//! by step with its references filled in, and judged.

use agent::facade::agent::orchestration::graph::{self, Choices};
use agent::facade::agent::orchestration::progress::{PlanAction, PlanProgress};
use agent::facade::agent::orchestration::reference;
use agent::facade::agent::orchestration::reply::{PlanReply, ReflectorReply, read_reply};
use agent::facade::agent::orchestration::verdict;
use agent::facade::base::Validator;
use agent::facade::conversation::event::plan::{
    self, PlanCreated, Reflection, ScoreDecision, StepFinished, StepStarted, StepStatus,
};
use agent::facade::prompt::Registry;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use serde_json::{Value, json};

/// The steps of the plan: the most that there may be.
const STEPS: u32 = 8;

/// The time of one step.
#[divan::bench]
fn plan_of_eight_steps(bencher: Bencher<'_, '_>) {
    let (plan, verdict) = (plan_reply(), reflector_reply());
    let (planner, reflector) = (schema("planner"), schema("reflector"));
    let tool = Validator::new(&json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "lines": { "type": "integer" } },
        "required": ["path"],
        "additionalProperties": false,
    }))
    .expect("a schema");
    let choices = Choices { tools: [("read_file", &tool)].into(), ..Choices::default() };
    // A result of some kilobytes, of which the next step needs a part.
    let result = json!({ "items": (0..100).map(|n| json!({ "path": format!("src/{n}.rs"), "lines": n })).collect::<Value>() });
    bencher.counter(ItemsCount::new(STEPS)).bench(|| {
        let reply = read_reply::<PlanReply>(black_box(&plan), &planner).expect("it matches").value;
        let steps = graph::check_plan(&reply, &choices).expect("it stands");
        let mut machine = PlanProgress::default();
        let (revision, analysis) = (1, reply.analysis);
        machine.apply(&plan::PlanEvent::Planned(PlanCreated {
            revision,
            analysis,
            steps,
            ..PlanCreated::default()
        }));
        while let PlanAction::Start(ready) = machine.next() {
            let step = machine.step(ready[0]).expect("it is of the plan").clone();
            let input =
                reference::fill_references(&step.tool_input, &machine.results()).expect("its needs are met");
            tool.check("The arguments do", &input).expect("they match");
            follow(&mut machine, step.step_id, &result);
        }
        let reply = read_reply::<ReflectorReply>(black_box(&verdict), &reflector).expect("it matches").value;
        let (facts, decision) = (machine.facts(), verdict::decide_step(&reply, &machine.facts()));
        assert_eq!((facts.steps.len(), &decision), (STEPS as usize, &ScoreDecision::Accept));
        let ReflectorReply { evaluation, overall_pass, .. } = reply;
        let retries = facts.retries;
        machine.apply(&plan::PlanEvent::Reflected(Reflection { evaluation, overall_pass, decision, retries }));
        machine
    });
}

fn follow(machine: &mut PlanProgress, step_id: u32, result: &Value) {
    let (attempt, tool_name, description) = (1, "read_file".to_owned(), String::new());
    machine.apply(&plan::PlanEvent::Started(StepStarted { step_id, name: None, attempt, tool_name, description }));
    machine.apply(&plan::PlanEvent::Finished(StepFinished {
        step_id,
        name: None,
        attempt,
        status: StepStatus::Ok,
        summary: String::new(),
        check: None,
        duration_ms: 0,
        cut: false,
        result: result.clone(),
    }));
}

fn schema(role: &str) -> Validator {
    let (text, _) =
        Registry::new(&[]).read_beside(role, "reply.json").expect("readable").expect("there is a schema");
    Validator::new(&serde_json::from_str(&text).expect("JSON")).expect("a schema")
}

/// A chain: each step reads what the one before it found.
fn plan_reply() -> String {
    let step = |id: u32| match id {
        1 => {
            json!({ "step_id": 1, "description": "begins", "tool_name": "read_file", "tool_input": { "path": "a" }, "depends_on": [] })
        }
        id => {
            let before = format!("$step_{}_result.items[{id}]", id - 1);
            let input = json!({ "path": format!("{before}.path"), "lines": format!("{before}.lines") });
            json!({ "step_id": id, "description": "goes on", "tool_name": "read_file", "tool_input": input, "depends_on": [id - 1] })
        }
    };
    let steps: Value = (1..=STEPS).map(step).collect();
    let reply = json!({ "analysis": "a chain", "plan": steps, "estimated_steps": STEPS, "can_parallelize": [] });
    format!("<scratchpad>\none after another\n</scratchpad>\n<action>\n{reply}\n</action>")
}

fn reflector_reply() -> String {
    let score = json!({ "score": 5, "reason": "it is all there" });
    let evaluation = json!({ "completeness": score, "correctness": score, "format": score });
    let details = json!({ "step_id": null, "modification": "" });
    json!({ "evaluation": evaluation, "overall_pass": true, "action": "accept", "retry_details": details })
        .to_string()
}
