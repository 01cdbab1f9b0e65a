//! Graphs in which nodes ask and their neighbors tell, most of them something else.

use super::{normal, pick};
use crate::{Error, Result};
use regard::tensor::Random;

/// A graph of nodes that ask and nodes that tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Telling {
    /// nodes × D numbers.
    pub features: Vec<Vec<f32>>,
    /// (who tells, who asks), from 0.
    pub edges: Vec<(usize, usize)>,
    /// What is asked for, of nodes that ask; the first so many do.
    pub answers: Vec<usize>,
    /// How many neighbors of each node that asks tell something else.
    pub misleading: Vec<usize>,
    /// What can be told.
    pub names: Vec<String>,
}

const CLASSES: usize = 4;
const NEIGHBORS: usize = 8;
const COLORS: usize = 6;
/// How far the noise of a feature goes beyond what it says.
const NOISE: f64 = 0.2;
/// The most nodes that ask.
const MOST: usize = 100_000;

fn names() -> Vec<String> {
    (1..=CLASSES).map(|class| format!("class {class}")).collect()
}

fn check(asking: usize) -> Result<()> {
    match asking <= MOST {
        true => Ok(()),
        false => Err(Error::invalid(format!("{asking} nodes that ask; there are {MOST} at most"))),
    }
}

/// `asking` nodes without features of their own and 8 neighbors each: 2 to 7 of them tell one and
/// the same wrong class, the others the right one. The last feature says who can be trusted. A mean
/// goes with the many; attention can learn whom to ask.
///
/// ```
/// let graph = regard_data::toy::misleading(10, 1)?;
/// assert_eq!((graph.features.len(), graph.edges.len()), (90, 80));
/// assert!(graph.misleading.iter().all(|n| (2..8).contains(n)));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn misleading(asking: usize, seed: u64) -> Result<Telling> {
    check(asking)?;
    let random = Random::named(seed, "misleading");
    let width = CLASSES + 1;
    let mut graph = Telling {
        features: vec![vec![0.0; width]; asking],
        edges: Vec::new(),
        answers: Vec::new(),
        misleading: Vec::new(),
        names: names(),
    };
    for node in 0..asking {
        let right = random.below(CLASSES);
        let wrong = (right + 1 + random.below(CLASSES - 1)) % CLASSES;
        let liars = 2 + random.below(NEIGHBORS - 2);
        for neighbor in random.order(NEIGHBORS) {
            let honest = neighbor >= liars;
            let mut feature = normal(&random, width, NOISE)?;
            feature[if honest { right } else { wrong }] += 1.0;
            feature[CLASSES] += if honest { 1.0 } else { -1.0 };
            graph.edges.push((graph.features.len(), node));
            graph.features.push(feature);
        }
        graph.answers.push(right);
        graph.misleading.push(liars);
    }
    Ok(graph)
}

/// `asking` nodes of one of 6 colors, and for each a neighbor of every color that tells a class: the
/// one of the node's own color is right. Whom to ask depends on who asks, which graph attention's
/// first version cannot express (Brody, Alon, Yahav 2021).
///
/// ```
/// let graph = regard_data::toy::matching(10, 1)?;
/// assert_eq!((graph.features.len(), graph.edges.len()), (70, 60));
/// # Ok::<(), regard_data::Error>(())
/// ```
pub fn matching(asking: usize, seed: u64) -> Result<Telling> {
    check(asking)?;
    let random = Random::named(seed, "matching");
    let width = COLORS + CLASSES;
    let one = |color: usize, class: Option<usize>| {
        let mut feature = vec![0.0; width];
        feature[color] = 1.0;
        class.into_iter().for_each(|class| feature[COLORS + class] = 1.0);
        feature
    };
    let colors: Vec<usize> = (0..asking).map(|_| random.below(COLORS)).collect();
    let mut graph = Telling {
        features: colors.iter().map(|&color| one(color, None)).collect(),
        edges: Vec::new(),
        answers: Vec::new(),
        misleading: Vec::new(),
        names: names(),
    };
    let classes: Vec<usize> = (0..CLASSES).collect();
    for (node, &own) in colors.iter().enumerate() {
        let told: Vec<usize> = (0..COLORS).map(|_| *pick(&random, &classes)).collect();
        for color in random.order(COLORS) {
            graph.edges.push((graph.features.len(), node));
            graph.features.push(one(color, Some(told[color])));
        }
        graph.answers.push(told[own]);
        graph.misleading.push(told.iter().filter(|&&class| class != told[own]).count());
    }
    Ok(graph)
}
