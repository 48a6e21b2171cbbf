//! Finds cycles: steps that wait for one another, and flows that run one another.

use std::collections::{BTreeMap, BTreeSet};

use super::{DEEPEST, FlowConfig};
use crate::config::settings::Named;

/// `a → b → a`, if the step `to` waits for `from`, which waits for it.
pub(super) fn find_cycle(flow: &FlowConfig, from: &str, to: &str) -> Option<String> {
    let all = flow.all_steps();
    let waits: BTreeMap<&str, BTreeSet<String>> =
        all.iter().map(|(_, step)| (step.id.as_str(), step.waits())).collect();
    let mut way = Vec::new();
    let found = way_to(to, from, &waits, &mut way);
    found.then(|| [from].into_iter().chain(way).collect::<Vec<_>>().join(" → "))
}

/// Returns the mistake in the flows that a flow runs: it runs itself, directly or indirectly, or they are nested too
/// deeply.
pub(super) fn find_recursion(flow: &FlowConfig, flows: &Named<FlowConfig>) -> Option<String> {
    let called = |flow: &'_ FlowConfig| -> Vec<String> {
        flow.all_steps().into_iter().filter_map(|(_, step)| step.flow.clone()).collect()
    };
    let mut way: Vec<String> = vec![flow.name.clone()];
    let mut rest: Vec<(usize, String)> = called(flow).into_iter().map(|name| (1, name)).collect();
    let mut looked = BTreeSet::new();
    while let Some((depth, name)) = rest.pop() {
        way.truncate(depth);
        way.push(name.clone());
        if name == flow.name {
            return Some(format!("a flow cannot run itself: {}", way.join(" → ")));
        }
        if depth >= DEEPEST {
            return Some(format!("flows can be nested at most {DEEPEST} deep: {}", way.join(" → ")));
        }
        if looked.insert((depth, name.clone()))
            && let Some(flow) = flows.get(&name)
        {
            rest.extend(called(flow).into_iter().map(|name| (depth + 1, name)));
        }
    }
    None
}

/// True if `from` waits for `to`, directly or indirectly; `way` has the steps from one to the other.
fn way_to<'s>(
    from: &'s str,
    to: &str,
    needs: &'s BTreeMap<&str, BTreeSet<String>>,
    way: &mut Vec<&'s str>,
) -> bool {
    if way.contains(&from) {
        return false;
    }
    way.push(from);
    if from == to {
        return true;
    }
    for next in needs.get(from).into_iter().flatten() {
        if way_to(next, to, needs, way) {
            return true;
        }
    }
    way.retain(|step| *step != from);
    false
}
