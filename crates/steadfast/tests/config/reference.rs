//! The reference page is the table of keys.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use steadfast::config::{KEYS, Loader, reference};

use crate::load;

const BEGIN: &str = "<!-- keys: made from the table of keys; `UPDATE_DOCS=1 cargo test -p steadfast` writes it -->\n";
const END: &str = "<!-- end of keys -->\n";

#[test]
fn the_pages_show_the_table() {
    let _one_at_a_time = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    for page in ["docs/configuration.md", "README.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
        let text = fs::read_to_string(&path).unwrap();
        let (head, rest) = text.split_once(BEGIN).expect("the page has the begin mark");
        let (table, tail) = rest.split_once(END).expect("the page has the end mark");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, format!("{head}{BEGIN}{}{END}{tail}", reference())).unwrap();
        } else {
            assert_eq!(table, reference(), "{page} is out of date: run with UPDATE_DOCS=1");
        }
    }
}

/// Two tests write into one page.
static WRITING: Mutex<()> = Mutex::new(());

/// The keys that a guard has, as a list.
#[test]
fn the_page_lists_the_keys_of_guards() {
    let _one_at_a_time = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- keys of guards -->\n", "\n<!-- end of keys of guards -->\n");
    let (head, rest) = text.split_once(begin).expect("the page has the begin mark");
    let (shown, tail) = rest.split_once(end).expect("the page has the end mark");
    let keys: Vec<String> = KEYS.iter().filter(|key| key.is_of_guards()).map(|key| format!("`{}`", key.name)).collect();
    let mut list = String::new();
    for line in keys.chunks(5) {
        list.push_str(&format!("{}{}", if list.is_empty() { "" } else { ",\n" }, line.join(", ")));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{head}{begin}{list}{end}{tail}")).unwrap();
    } else {
        assert_eq!(shown, list, "docs/configuration.md is out of date: run with UPDATE_DOCS=1");
    }
}

/// The policies' pages name a few keys each, with their defaults in the second column.
#[test]
fn the_policies_pages_name_the_same_defaults() {
    let table = reference();
    let known: Vec<_> = table.lines().skip(2).map(cells).map(|row| (row[0], row[2])).collect();
    let mut compared = 0;
    for page in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")).unwrap() {
        let text = fs::read_to_string(page.unwrap().path()).unwrap();
        let Some((_, rest)) = text.split_once("\n## Defaults\n") else { continue };
        let (section, _) = rest.split_once("\n## ").expect("a section follows");
        for row in section.lines().filter(|line| line.starts_with("| `")).map(cells) {
            assert!(known.contains(&(row[0], row[1])), "{row:?}");
            compared += 1;
        }
    }
    assert!(compared > 30, "only {compared} rows were found");
}

fn cells(row: &str) -> Vec<&str> {
    row.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect()
}

#[test]
fn every_key_has_a_row_without_holes() {
    let page = reference();
    let rows: Vec<&str> = page.lines().skip(2).collect();
    assert_eq!(rows.len(), KEYS.len());
    for (row, key) in rows.iter().zip(KEYS) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 5, "{row}");
        assert!(cells.iter().all(|cell| !cell.is_empty()), "{row}");
        assert_eq!(cells[0], format!("`{}`", key.name));
    }
}

/// The texts of the page's blocks of `kind`.
fn blocks(kind: &str) -> Vec<String> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md")).unwrap();
    let begin = format!("```{kind}\n");
    page.split(&begin).skip(1).map(|rest| rest.split_once("```").unwrap().0.to_owned()).collect()
}

/// As they stand, and as an editor sees them.
#[test]
fn the_pages_examples_load_without_a_warning() {
    let schema = steadfast::config::schema("").unwrap();
    let examples = blocks("toml");
    for example in &examples {
        let config = load(example).unwrap();
        let defined = config.upstreams().count() + config.guards().count();
        assert!(defined > 0 && config.warnings().is_empty(), "{example}");
        assert!(crate::schema::passes(&schema, example), "{example}");
    }
    assert_eq!(examples.len(), 5);
}

#[test]
fn the_pages_mistakes_are_said_in_these_words() {
    let file = "[upstreams.billing]\nbase_url = \"http://billing:8010\"\n\nretrys = 1\nread_timeout = 0\n";
    let variable = ("STEADFAST_UPSTREAMS__BILLING__GZIP", "yes");
    let said = Loader::new().text("app.toml", file).env([variable]).load().unwrap_err().to_string();
    assert_eq!([said + "\n"], blocks("text")[..]);
}
