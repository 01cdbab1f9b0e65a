//! The files of the page, inside the program.

use crate::refusal::Refusal;
use std::borrow::Cow;
use std::path::Path;

macro_rules! file {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../page/", $name)) as &[u8])
    };
}

/// All files of the page, by their names below `/`.
const FILES: &[(&str, &[u8])] = &[
    file!("api.js"),
    file!("app.js"),
    file!("card.js"),
    file!("chart.js"),
    file!("chinese.js"),
    file!("difference.js"),
    file!("dom.js"),
    file!("drawn.js"),
    file!("explain.js"),
    file!("head.js"),
    file!("help.js"),
    file!("icon.svg"),
    file!("index.html"),
    file!("input.js"),
    file!("keys.js"),
    file!("menu.js"),
    file!("pulse.js"),
    file!("refusals.js"),
    file!("scene.js"),
    file!("session.js"),
    file!("share.js"),
    file!("state.js"),
    file!("style.css"),
    file!("theme.js"),
    file!("told.js"),
    file!("verdict.js"),
    file!("views.css"),
    file!("views/answer.js"),
    file!("views/ask.js"),
    file!("views/attribution.js"),
    file!("views/beam.js"),
    file!("views/cell.js"),
    file!("views/change.js"),
    file!("views/compare.js"),
    file!("views/curve.js"),
    file!("views/errors.js"),
    file!("views/gallery.js"),
    file!("views/graph.js"),
    file!("views/headmap.js"),
    file!("views/heads.js"),
    file!("views/lines.js"),
    file!("views/matrix.js"),
    file!("views/matters.js"),
    file!("views/more.js"),
    file!("views/numbers.js"),
    file!("views/patches.js"),
    file!("views/ribbons.js"),
    file!("views/residuals.js"),
    file!("views/sound.js"),
    file!("views/stage.js"),
    file!("views/text.js"),
    file!("views/training.js"),
    file!("views/versus.js"),
    file!("views/winners.js"),
    file!("words.js"),
    ("draw.js", regard_picture::picture::DRAW_MODULE.as_bytes()),
];

/// A file of the page and its type. `folder` is read instead of what is inside the program, and only
/// for names that are there too: for whoever works on the page.
pub(crate) fn file(
    path: &str,
    folder: Option<&Path>,
) -> Result<(&'static str, Cow<'static, [u8]>), Refusal> {
    let name = path.trim_start_matches('/');
    let name = if name.is_empty() { "index.html" } else { name };
    let found = FILES.iter().find(|(known, _)| *known == name);
    let (name, bytes) = found.ok_or_else(|| Refusal::not_found("there is no such page"))?;
    let fresh = folder.and_then(|folder| std::fs::read(folder.join(name)).ok());
    let bytes = fresh.map_or(Cow::Borrowed(*bytes), Cow::Owned);
    Ok((kind(name), bytes))
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}
