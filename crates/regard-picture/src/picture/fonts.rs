//! The fonts of the system: which of them writes what, and what to install where none does.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use resvg::usvg::fontdb::{self, Database};

use super::png::Missing;

/// Families to take for signs that the font of a text has not, the best first: another font may
/// have them too, thin, slanted, or as they are written in another country.
const PREFERRED: [&str; 26] = [
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Microsoft YaHei",
    "Hiragino Sans GB",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Heiti SC",
    "SimHei",
    "Droid Sans Fallback",
    "Noto Sans CJK JP",
    "Noto Sans JP",
    "Noto Sans CJK TC",
    "Noto Serif CJK SC",
    "SimSun",
    "AR PL UMing CN",
    "Noto Sans Arabic",
    "Geeza Pro",
    "Segoe UI",
    "DejaVu Sans",
    "Noto Sans",
    "Noto Color Emoji",
    "Apple Color Emoji",
    "Segoe UI Emoji",
];

/// All fonts of the system, read once: where it keeps them, and where else they are often found.
pub(crate) fn system() -> &'static Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    FONTS.get_or_init(|| {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        for folder in more_folders() {
            fonts.load_fonts_dir(folder);
        }
        // Who looks for a sign takes the first that has it.
        let mut faces: Vec<fontdb::FaceInfo> = fonts.faces().cloned().collect();
        faces.sort_by_key(rank);
        let mut sorted = Database::new();
        for face in faces {
            sorted.push_face_info(face);
        }
        Arc::new(sorted)
    })
}

/// Folders of fonts that a plain look into the system's own leaves out: data folders of the
/// desktop, Homebrew, Nix, TeX.
fn more_folders() -> Vec<PathBuf> {
    let known = ["/usr/share/fonts", "/usr/local/share/fonts"].map(PathBuf::from);
    let shared = std::env::var_os("XDG_DATA_DIRS").unwrap_or_default();
    let own = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let folders = std::env::split_paths(&shared).chain(own).map(|folder| folder.join("fonts"));
    let others = [
        "/usr/share/texmf/fonts/opentype",
        "/usr/share/texlive/texmf-dist/fonts/opentype",
        "/opt/homebrew/share/fonts",
        "/run/current-system/sw/share/X11/fonts",
    ];
    folders
        .chain(others.map(PathBuf::from))
        .filter(|folder| !known.contains(folder) && folder.is_dir())
        .collect()
}

/// Where a face stands among those that may write a sign which the font of a text has not.
fn rank(face: &fontdb::FaceInfo) -> (bool, usize, u16) {
    let is_named = |name: &&str| face.families.iter().any(|(family, _)| family == name);
    let preferred = PREFERRED.iter().position(is_named).unwrap_or(PREFERRED.len());
    let odd = face.style != fontdb::Style::Normal || face.stretch != fontdb::Stretch::Normal;
    // Of one family the weight that looks like the rest of the text.
    (odd, preferred, face.weight.0.abs_diff(400))
}

/// What to install for signs that no font has.
pub(crate) fn advice(missing: &Missing) -> Option<String> {
    if !missing.any() {
        return None;
    }
    let package = |sign: char| match sign {
        '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' => {
            "fonts-noto-cjk"
        }
        '\u{20000}'..='\u{3ffff}' => "fonts-noto-cjk",
        '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}' => "fonts-noto-color-emoji",
        _ => "fonts-noto-core",
    };
    let sign = missing.signs.first().copied().unwrap_or('a');
    let mut packages: BTreeSet<&str> = missing.signs.iter().map(|&sign| package(sign)).collect();
    if missing.font {
        packages.insert("fonts-noto-core");
    }
    let packages = packages.into_iter().collect::<Vec<_>>().join(" ");
    let what = match missing.font {
        true => "this system has no font".to_owned(),
        // Every font has such a letter; what it lacks are marks over or under it.
        false if sign.is_ascii() => format!("no font of this system has `{sign}` with its marks"),
        false => format!("no font of this system has `{sign}`"),
    };
    Some(format!(
        "{what}, so texts are drawn from the bitmaps of GNU Unifont; on Debian and Ubuntu `apt-get \
         install {packages}` brings fonts, elsewhere those called Noto at fonts.google.com do"
    ))
}
