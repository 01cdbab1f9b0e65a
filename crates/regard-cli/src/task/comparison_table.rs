//! Variants or runs side by side: a table, a picture, and the files of both.

use super::table;
use crate::output::note;
use anyhow::Result;
use regard::tensor::write_whole;
use regard_picture::picture;
use regard_picture::picture::{Buckets, Cost};
use regard_tasks::compare::Compared;
use regard_tasks::task::{Groups, Part};
use std::path::Path;

/// What a table says above itself, and which of its columns are known.
pub(super) struct Heading<'a> {
    /// What is compared: "variant", "run".
    pub(super) what: &'a str,
    /// The part that all were measured on.
    pub(super) part: Part,
    /// How many seeds each was trained with; none where that is not known.
    pub(super) seeds: Option<usize>,
}

/// The table: measures, parameters, time, memory; then the measure by groups.
pub(super) fn written(compared: &[Compared], heading: &Heading, columns: Option<usize>) -> String {
    let Some(first) = compared.first().and_then(|c| c.scores.first()) else {
        return String::new();
    };
    let names: Vec<&str> = first.values.iter().map(|(name, _)| &name[..]).collect();
    let has_p = compared.iter().any(|c| c.p.is_some());
    let p = if has_p { &["p"][..] } else { &[] };
    let head: Vec<&str> =
        [heading.what].into_iter().chain(names).chain(p.iter().copied()).collect();
    let has_memory = compared.iter().any(|c| c.peak_bytes > 0);
    let costs =
        if has_memory { &["parameters", "time", "memory"][..] } else { &["parameters", "time"] };
    let head = [&head[..], costs].concat();
    let row = |c: &Compared| {
        let measure = |i: usize| {
            let (mean, deviation) = c.spread(i);
            match c.scores.len() {
                1 => table::measure(mean),
                _ => format!("{} ± {}", table::measure(mean), table::measure(deviation)),
            }
        };
        let mut row = vec![c.name.clone()];
        row.extend((0..first.values.len()).map(measure));
        if has_p {
            row.push(c.p.map_or("".into(), significance));
        }
        row.push(table::number(c.parameters));
        row.push(table::seconds(c.seconds));
        row.extend(has_memory.then(|| table::bytes(c.peak_bytes)));
        row
    };
    let part = match heading.part {
        Part::Training => "training",
        Part::Validation => "validation",
        Part::Test => "test",
    };
    let seeds = heading.seeds.map_or(String::new(), |seeds| {
        let spread = if seeds > 1 { ", mean ± standard deviation" } else { "" };
        format!(", {}{spread}", table::count(seeds, "seed", "seeds"))
    });
    let mut text = format!("measured on the {part} part{seeds}\n\n");
    text += &table::within(columns, &head, &compared.iter().map(row).collect::<Vec<_>>());
    if let Some(each) = compared.first().and_then(|c| c.each.as_ref()).filter(|_| has_p) {
        text += &format!(
            "\np: how likely a difference from the first {} at least as large would be by chance \
             (paired permutation test over the examples' {})\n",
            heading.what, each.measure
        );
    }
    for of in GROUPS {
        let Some(groups) = compared.first().and_then(of) else { continue };
        let by = format!("{} by {}", groups.measure, groups.by);
        let head: Vec<&str> =
            [&by[..]].into_iter().chain(groups.values.iter().map(|(name, _)| &name[..])).collect();
        let row = |c: &Compared| {
            let values = of(c).into_iter().flat_map(|g| &g.values);
            let cells = values.map(|(_, value)| table::measure(*value));
            [c.name.clone()].into_iter().chain(cells).collect()
        };
        text += &format!(
            "\n{}",
            table::within(columns, &head, &compared.iter().map(row).collect::<Vec<_>>())
        );
    }
    text
}

/// What is measured over groups, a table and a chart for each.
const GROUPS: [fn(&Compared) -> Option<&Groups>; 2] =
    [|c| c.groups.as_ref(), |c| c.places.as_ref()];

/// A probability with as many digits as say something.
fn significance(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("{p:.3}") }
}

/// Writes the table, the numbers and the picture into a folder.
pub(super) fn write(
    folder: &Path,
    title: &str,
    compared: &[Compared],
    heading: &Heading,
) -> Result<()> {
    write_whole(folder.join("comparison.txt"), written(compared, heading, None).as_bytes())?;
    write_whole(folder.join("comparison.json"), json(compared, heading)?.as_bytes())?;
    let svg = picture::comparison(title, &drawn(compared));
    write_whole(folder.join("comparison.svg"), svg.as_bytes())?;
    // The table is what hours were spent on.
    match picture::png(&svg, 2.0) {
        Ok(png) => write_whole(folder.join("comparison.png"), &png)?,
        Err(error) => note(&format!("no comparison.png: {error}")),
    }
    Ok(())
}

/// The same as numbers.
pub(super) fn json(compared: &[Compared], heading: &Heading) -> Result<String> {
    let json = serde_json::json!({ "part": heading.part, "variants": compared });
    Ok(serde_json::to_string_pretty(&json)?)
}

fn drawn(compared: &[Compared]) -> picture::Comparison {
    let first = compared.first();
    let metric = first.and_then(|c| c.scores.first()).map_or("", |scores| scores.first().0);
    let values = |groups: &Groups| groups.values.iter().map(|(_, value)| *value).collect();
    let buckets = |of: fn(&Compared) -> Option<&Groups>| {
        first.and_then(of).map(|groups| Buckets {
            metric: groups.measure.clone(),
            axis: groups.by.clone(),
            names: groups.values.iter().map(|(name, _)| name.clone()).collect(),
            values: compared.iter().map(|c| of(c).map_or(Vec::new(), values)).collect(),
        })
    };
    let of = |c: &Compared| picture::Variant {
        name: c.name.clone(),
        values: c.scores.iter().map(|scores| scores.first().1).collect(),
    };
    let cost = |name: &str, of: &dyn Fn(&Compared) -> (f64, String)| Cost {
        name: name.into(),
        values: compared.iter().map(of).collect(),
    };
    let parameters = |c: &Compared| (c.parameters as f64, table::number(c.parameters));
    let memory = |c: &Compared| (c.peak_bytes as f64, table::bytes(c.peak_bytes));
    picture::Comparison {
        metric: metric.into(),
        variants: compared.iter().map(of).collect(),
        buckets: GROUPS.into_iter().filter_map(buckets).collect(),
        costs: [
            Some(cost("parameters", &parameters)),
            Some(cost("time", &|c| (c.seconds, table::seconds(c.seconds)))),
            compared.iter().any(|c| c.peak_bytes > 0).then(|| cost("memory", &memory)),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}
