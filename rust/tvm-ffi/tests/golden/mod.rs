// SPDX-License-Identifier: Apache-2.0
//! Compares a transcript with the one in `tests/data`. `TVM_FFI_WRITE_GOLDEN=1` writes it.
use std::path::Path;

/// Spaces at the end of lines and empty lines at the end of the text are not told apart.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    if std::env::var_os("TVM_FFI_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (number, (have, want)) in lines.iter().zip(expected.lines()).enumerate() {
        assert_eq!(*have, want, "{name}, line {}", number + 1);
    }
    assert_eq!(lines.len(), expected.lines().count(), "{name}");
}
