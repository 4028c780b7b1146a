//! Twelve faulty files, each with what is said about it: the lines of its head that begin with `#! `.

use std::fs;
use std::path::{MAIN_SEPARATOR, Path};

use steadfast::config::Loader;

#[test]
fn each_faulty_file_is_refused_in_its_words() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/faulty");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 12);
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let expected: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#! ")).collect();
        // Through the file system, as a user does; the folder is cut off what is said.
        let folder = format!("{}{MAIN_SEPARATOR}", path.parent().unwrap().display());
        let said = Loader::new().file(&path).load().unwrap_err().to_string().replace(&folder, "");
        assert_eq!(said, expected.join("\n"), "{name} is refused with\n{said}\n");
    }
}
