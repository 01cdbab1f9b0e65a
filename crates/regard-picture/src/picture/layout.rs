//! Where a graph's nodes go: neighbors near, all others apart.
//!
//! Fruchterman and Reingold's springs (1991), started from a spiral, so that the same graph always
//! gets the same places.

/// A place for each node, in the unit square. Edges to nodes that are not there pull nothing.
pub(crate) fn places(nodes: usize, edges: &[(usize, usize)]) -> Vec<[f64; 2]> {
    let mut places: Vec<[f64; 2]> = (0..nodes)
        .map(|i| {
            let (sin, cos) = (i as f64 * 2.399_963).sin_cos();
            let radius = 0.5 * ((i as f64 + 0.5) / nodes as f64).sqrt();
            [0.5 + radius * cos, 0.5 + radius * sin]
        })
        .collect();
    // A large graph gets fewer rounds: each costs the square of its nodes.
    let rounds = (40_000_000 / (nodes * nodes).max(1)).clamp(20, 400);
    let length = (1.0 / nodes.max(1) as f64).sqrt();
    for round in 0..rounds {
        let farthest = 0.12 * (1.0 - round as f64 / rounds as f64);
        step(&mut places, edges, length, farthest);
    }
    spread(&mut places);
    places
}

fn step(places: &mut [[f64; 2]], edges: &[(usize, usize)], length: f64, farthest: f64) {
    let mut pull = vec![[0.0; 2]; places.len()];
    for i in 0..places.len() {
        for j in 0..i {
            let [dx, dy] = difference(places[i], places[j]);
            let push = length * length / (dx * dx + dy * dy).max(1e-9);
            add(&mut pull, i, j, [dx * push, dy * push]);
        }
        // Towards the middle, or parts that no edge joins would drift away.
        let [dx, dy] = difference([0.5, 0.5], places[i]);
        pull[i] = [pull[i][0] + 0.35 * dx, pull[i][1] + 0.35 * dy];
    }
    for &(i, j) in edges.iter().filter(|&&(i, j)| i != j && i.max(j) < places.len()) {
        let [dx, dy] = difference(places[j], places[i]);
        let strength = (dx * dx + dy * dy).sqrt() / length * 0.5;
        add(&mut pull, i, j, [dx * strength, dy * strength]);
    }
    for (place, [x, y]) in places.iter_mut().zip(pull) {
        let size = (x * x + y * y).sqrt().max(1e-12);
        let step = size.min(farthest) / size;
        *place = [place[0] + x * step, place[1] + y * step];
    }
}

fn difference(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

fn add(pull: &mut [[f64; 2]], i: usize, j: usize, [x, y]: [f64; 2]) {
    pull[i] = [pull[i][0] + x, pull[i][1] + y];
    pull[j] = [pull[j][0] - x, pull[j][1] - y];
}

/// Stretched to fill the square.
fn spread(places: &mut [[f64; 2]]) {
    for side in 0..2 {
        let low = places.iter().map(|p| p[side]).fold(f64::INFINITY, f64::min);
        let high = places.iter().map(|p| p[side]).fold(f64::NEG_INFINITY, f64::max);
        for place in places.iter_mut() {
            place[side] = if high > low { (place[side] - low) / (high - low) } else { 0.5 };
        }
    }
}
