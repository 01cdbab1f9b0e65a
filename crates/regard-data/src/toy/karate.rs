//! A karate club that split in two: who met whom outside it, and which side each member took.
//! Zachary, "An information flow model for conflict and fission in small groups", Journal of
//! Anthropological Research 33 (1977).

use super::Graph;

const MEMBERS: usize = 34;

/// A member, from 1, and those of higher number he met.
const MEETINGS: [(usize, &[usize]); 26] = [
    (1, &[2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32]),
    (2, &[3, 4, 8, 14, 18, 20, 22, 31]),
    (3, &[4, 8, 9, 10, 14, 28, 29, 33]),
    (4, &[8, 13, 14]),
    (5, &[7, 11]),
    (6, &[7, 11, 17]),
    (7, &[17]),
    (9, &[31, 33, 34]),
    (10, &[34]),
    (14, &[34]),
    (15, &[33, 34]),
    (16, &[33, 34]),
    (19, &[33, 34]),
    (20, &[34]),
    (21, &[33, 34]),
    (23, &[33, 34]),
    (24, &[26, 28, 30, 33, 34]),
    (25, &[26, 28, 32]),
    (26, &[32]),
    (27, &[30, 34]),
    (28, &[34]),
    (29, &[32, 34]),
    (30, &[33, 34]),
    (31, &[33, 34]),
    (32, &[33, 34]),
    (33, &[34]),
];

/// Those who went with the officer; the others stayed with Mr. Hi.
const OFFICERS: [usize; 17] = [10, 15, 16, 19, 21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34];

/// Zachary's karate club: 34 members, 78 pairs who met, two sides. A node's feature is who it is.
///
/// ```
/// let club = regard_data::toy::karate();
/// assert_eq!((club.nodes, club.edges.len(), club.names.len()), (34, 78, 2));
/// ```
pub fn karate() -> Graph {
    let edges = MEETINGS.iter().flat_map(|(a, met)| met.iter().map(move |b| (a - 1, b - 1)));
    let one_hot = |node| (0..MEMBERS).map(|at| if at == node { 1.0 } else { 0.0 }).collect();
    Graph {
        nodes: MEMBERS,
        edges: edges.collect(),
        features: (0..MEMBERS).map(one_hot).collect(),
        labels: (1..=MEMBERS).map(|member| OFFICERS.contains(&member) as usize).collect(),
        names: vec!["Mr. Hi".into(), "Officer".into()],
    }
}
