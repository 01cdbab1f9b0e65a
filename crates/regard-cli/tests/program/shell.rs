//! What shells, `man` and terminals are given.

use crate::tasks::{path, said};
use std::fs;
use tempfile::TempDir;

#[test]
fn shells_are_told_every_verb_and_bash_and_zsh_every_task() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = said(&["completions", shell]);
        for word in ["compare", "completions", "dry-run", "n-best"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // The scripts of the others know no words for what is no option.
        if ["bash", "zsh"].contains(&shell) {
            for task in regard_tasks::tasks::tasks() {
                assert!(script.contains(task.name()), "{shell}: {}", task.name());
            }
        }
    }
}

/// Bash takes the script and completes by it.
#[cfg(unix)]
#[test]
fn bash_completes_verbs_and_tasks() {
    let folder = TempDir::new().unwrap();
    let script = path(&folder, "regard.bash");
    fs::write(&script, said(&["completions", "bash"])).unwrap();
    let completed = |words: &str, count: usize| {
        let ask = format!(
            "source {script}; COMP_WORDS=({words}); COMP_CWORD={count}; \
             _regard regard \"${{COMP_WORDS[COMP_CWORD]}}\" regard; echo ${{COMPREPLY[@]}}"
        );
        let output = std::process::Command::new("bash").args(["-c", &ask]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    assert_eq!(completed("regard comp", 1), "compare completions");
    assert_eq!(completed("regard train trans", 2), "translate transcribe");
}

#[test]
fn the_manual_has_a_page_for_every_verb() {
    let folder = TempDir::new().unwrap();
    let pages = path(&folder, "man1");
    let told = said(&["man", &pages]);
    let mut names: Vec<String> = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(told, format!("wrote {} pages into {pages}\n", names.len()));
    for verb in ["regard", "regard-train", "regard-show", "regard-attend", "regard-man"] {
        assert!(names.contains(&format!("{verb}.1")), "{names:?}");
    }
    assert_eq!(names.len(), 22);
    let page = fs::read_to_string(folder.path().join("man1/regard-train.1")).unwrap();
    assert!(page.contains(".TH regard-train 1"), "{page}");
    assert!(page.contains("\\fBregard train\\fR") && page.contains("dry\\-run"), "{page}");
    assert!(said(&["man"]).contains(".TH regard 1"));
    // The lowest line says which version a page is of, and no date; the highest says which manual.
    let version = env!("CARGO_PKG_VERSION");
    for name in names {
        let page = fs::read_to_string(folder.path().join("man1").join(&name)).unwrap();
        let title = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
        let verb = name.strip_suffix(".1").unwrap();
        assert_eq!(title, format!(".TH {verb} 1 \"\" \"regard {version}\" \"Regard Manual\""));
        // Examples stand as they are written, under their own heading.
        assert!(page.contains("\n.SH EXAMPLES\n.nf\n") && !page.contains(".SH EXTRA"), "{page}");
        assert_eq!(page.matches("\n.nf\n").count(), page.matches("\n.fi\n").count(), "{page}");
    }
    let page = fs::read_to_string(folder.path().join("man1/regard-compare.1")).unwrap();
    let notes = page.split_once("\n.fi\n.SH NOTES\n").unwrap().1;
    assert!(notes.starts_with("Variants and runs are measured"), "{notes}");
}

/// A terminal of so many columns, and what the program writes to it.
#[cfg(target_os = "linux")]
fn in_terminal(columns: u16, arguments: &[&str]) -> String {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::FromRawFd;
    let size = libc::winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut near, mut far) = (0, 0);
    // SAFETY: both descriptors are written by the call, and owned by nobody else afterwards.
    let (mut near, far) = unsafe {
        let name = std::ptr::null_mut();
        let ended = libc::openpty(&mut near, &mut far, name, std::ptr::null(), &size);
        assert_eq!(ended, 0);
        (File::from_raw_fd(near), File::from_raw_fd(far))
    };
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_regard"))
        .args(arguments)
        .env_remove("COLUMNS")
        .stdout(far)
        .spawn()
        .unwrap();
    let mut bytes = Vec::new();
    // A terminal whose other side is closed says so by an error.
    let _ = near.read_to_end(&mut bytes);
    assert!(child.wait().unwrap().success());
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

#[cfg(target_os = "linux")]
fn widest(text: &str) -> usize {
    let mut plain = String::new();
    let mut parts = text.split("\u{1b}[");
    plain += parts.next().unwrap();
    parts.for_each(|part| plain += part.split_once('m').unwrap().1);
    plain.lines().map(|line| line.chars().count()).max().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn tables_and_pictures_are_as_wide_as_the_terminal() {
    let folder = TempDir::new().unwrap();
    let run = path(&folder, "run");
    said(&["train", "regress", "size=60", "epochs=1", "--out", &run]);
    for columns in [50, 70, 130] {
        let picture = in_terminal(columns, &["show", &run, "2"]);
        assert_eq!(widest(&picture), usize::from(columns), "{picture}");
    }
    let wide = in_terminal(150, &["compare", &run, &run]);
    let narrow = in_terminal(42, &["compare", &run, &run]);
    assert_eq!(wide.matches("\nrun ").count(), 1, "{wide}");
    assert!(narrow.matches("\nrun ").count() > 1, "{narrow}");
    let table = narrow.lines().take_while(|line| !line.starts_with("p: "));
    let folder_line = run.chars().count();
    for line in table {
        // The first column is as wide as the runs' names, and one more stands beside it.
        assert!(line.chars().count() <= (folder_line + 14).max(42), "{narrow}");
    }
    let told = in_terminal(60, &["options", "regress"]);
    let long = told.lines().filter(|line| line.starts_with("    ") && line.chars().count() > 60);
    assert_eq!(long.count(), 0, "{told}");
}
