//! Circles: stages that send records to each other, by rules or as dead letters, so that one may
//! go round until the hop limit. Conditions are not looked at, so this is a warning.
//!
//! The slip needs no edges: it ends, and only a rule or a dead letter makes a way longer.

use std::collections::{HashMap, HashSet, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};
use petgraph::visit::EdgeRef as _;

use super::draft::Draft;
use super::problem::{Problem, Span};
use super::reader::Reader;

/// More stages of a circle are not named.
const NAMED_MAX: usize = 8;

/// Why records go from one stage to another, and where that stands.
struct Way {
    span: Span,
    dead: bool,
}

type Graph<'d> = DiGraph<&'d str, Way>;

impl Reader<'_> {
    pub(super) fn circles(&mut self, draft: &Draft) {
        for stage in &draft.stages {
            let own = stage.targets.iter().find(|target| target.name == stage.name.name);
            if let Some(target) = own {
                let message = format!("`{}` sends records to itself", stage.name.name);
                let problem = Problem::warning(target.span.clone(), message);
                self.report(problem.label("what matches again goes round until the hop limit"));
            }
        }
        let graph = graph(draft);
        for group in kosaraju_scc(&graph).iter().filter(|group| group.len() > 1) {
            if let Some(circle) = circle(&graph, group) {
                self.circle(&graph, &circle);
            }
        }
    }

    fn circle(&mut self, graph: &Graph<'_>, circle: &[EdgeIndex]) {
        let names = circle.iter().filter_map(|way| Some(graph[graph.edge_endpoints(*way)?.0]));
        let mut names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        let first = names[0].clone();
        if names.len() > NAMED_MAX {
            names.truncate(NAMED_MAX);
            names.push(format!("{} more", circle.len() - NAMED_MAX));
        }
        let message = format!("records may go in a circle: {} to {first}", names.join(" to "));
        let mut ways = circle.iter().map(|way| &graph[*way]);
        let Some(last) = ways.next_back() else {
            return;
        };
        let all_dead = circle.iter().all(|way| graph[*way].dead);
        let mut problem = Problem::warning(last.span.clone(), message);
        problem = problem.label(if last.dead { "dead letters go back" } else { "the way back" });
        for way in ways.take(NAMED_MAX) {
            problem = problem.also(way.span.clone(), "on the way");
        }
        self.report(problem.help(match all_dead {
            true => "let the last stage keep its dead letters: leave out its `dead-letter`",
            false => "make sure that a rule ends it; `hop-limit` in [bus] ends it in any case",
        }));
    }
}

/// All ways that lead from one stage to another one.
fn graph(draft: &Draft) -> Graph<'_> {
    let mut graph = Graph::new();
    let nodes: HashMap<&str, NodeIndex> = draft
        .stages
        .iter()
        .map(|stage| (stage.name.name.as_str(), graph.add_node(stage.name.name.as_str())))
        .collect();
    for stage in &draft.stages {
        let from = nodes[stage.name.name.as_str()];
        let targets = stage.targets.iter();
        let targets = targets.map(|target| (target.name.as_str(), target.span.clone(), false));
        let dead = stage.settings.dead_letter.as_deref().zip(stage.dead_letter.clone());
        for (name, span, dead) in targets.chain(dead.map(|(name, span)| (name, span, true))) {
            if let Some(to) = nodes.get(name).filter(|to| **to != from) {
                graph.add_edge(from, *to, Way { span, dead });
            }
        }
    }
    graph
}

/// A shortest circle through the first stage of a group whose stages all reach each other.
fn circle(graph: &Graph<'_>, group: &[NodeIndex]) -> Option<Vec<EdgeIndex>> {
    let members: HashSet<NodeIndex> = group.iter().copied().collect();
    let start = *group.iter().min()?;
    let mut came: HashMap<NodeIndex, EdgeIndex> = HashMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(node) = next.pop_front() {
        for edge in graph.edges(node).filter(|edge| members.contains(&edge.target())) {
            let target = edge.target();
            if came.contains_key(&target) {
                continue;
            }
            came.insert(target, edge.id());
            if target == start {
                return Some(back(graph, &came, start));
            }
            next.push_back(target);
        }
    }
    None
}

/// The ways of the circle in their order, from how each of its stages was come to.
fn back(
    graph: &Graph<'_>,
    came: &HashMap<NodeIndex, EdgeIndex>,
    start: NodeIndex,
) -> Vec<EdgeIndex> {
    let mut ways = Vec::new();
    let mut node = start;
    while let Some(way) = came.get(&node) {
        ways.push(*way);
        let Some((source, _)) = graph.edge_endpoints(*way) else {
            break;
        };
        node = source;
        if node == start {
            break;
        }
    }
    ways.reverse();
    ways
}
