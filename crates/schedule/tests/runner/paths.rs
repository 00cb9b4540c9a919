//! Examples of patterns, and what they make of real pushes.

use schedule::glob::Globs;
use serde_json::Value;

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn patterns_take_the_files_of_the_examples() {
    let examples: Value = serde_json::from_str(include_str!("../vectors/path_vectors.json")).unwrap();
    let rows = examples["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 27);
    for row in rows {
        let globs = Globs::parse(texts(&row[0])).unwrap();
        let taken = texts(&row[1]).iter().any(|file| globs.take(file));
        assert_eq!(taken, row[2].as_bool().unwrap(), "{row}");
    }
}
