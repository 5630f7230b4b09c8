//! What a rollout would do: every node's own plan, held against the canary's. Nothing is changed, and nothing is kept.

use super::orders::Orders;
use crate::carrier::Carrier;
use crate::node::NodeName;
use serde_json::Value;
use std::sync::mpsc::channel;
use wakewatt_fleet::rollout::kind::{Kind, difference, kind_of};
use wakewatt_fleet::rollout::plan::Plan;

/// A node looked at.
#[derive(Clone, Debug)]
pub struct Looked {
    /// Which.
    pub node: NodeName,
    /// Its own plan, where it gave one.
    pub plan: Option<Value>,
    /// Why it would be left out.
    pub left_out: Option<String>,
}

/// Asks all for their plans, in their order; the first is the canary.
pub fn look(carrier: &dyn Carrier, plan: &Plan, nodes: &[NodeName]) -> Vec<Looked> {
    let orders = Orders { carrier, plan, id: "" };
    let mut all = Vec::with_capacity(nodes.len());
    for part in nodes.chunks(plan.parallel.max(1)) {
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            for (at, node) in part.iter().enumerate() {
                let (tell, orders) = (tell.clone(), &orders);
                scope.spawn(move || tell.send((at, orders.planned(node))));
            }
            drop(tell);
            let mut answers: Vec<_> = told.iter().collect();
            answers.sort_by_key(|(at, _)| *at);
            all.extend(answers.into_iter().map(|(_, answer)| answer));
        });
    }
    let kinds: Vec<Result<Kind, String>> =
        all.iter().map(|a: &Result<Value, String>| a.clone().and_then(|plan| kind_of(&plan))).collect();
    let canary = kinds.iter().flatten().next().cloned();
    let looked = |node: &NodeName, answer: Result<Value, String>, kind: Result<Kind, String>| {
        let left_out = match (&kind, &canary) {
            (Err(why), _) => Some(why.clone()),
            (Ok(kind), Some(canary)) => {
                difference(canary, kind).map(|how| format!("its plan is of another kind than the canary's: it {how}"))
            }
            (Ok(_), None) => None,
        };
        Looked { node: node.clone(), plan: answer.ok(), left_out }
    };
    nodes.iter().zip(all).zip(kinds).map(|((node, answer), kind)| looked(node, answer, kind)).collect()
}
