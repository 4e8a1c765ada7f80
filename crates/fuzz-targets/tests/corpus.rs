//! Every input of the corpus, one test per target.

#![cfg(test)]

use std::path::Path;

use fuzz_targets::TARGETS;

/// Runs every input of a target's corpus. Inputs that once broke something are among them.
fn run(name: &str) {
    let (_, check) = TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut inputs = 0;
    for entry in std::fs::read_dir(folder.join(name)).unwrap() {
        let input = std::fs::read(entry.unwrap().path()).unwrap();
        check(&input);
        // What is cut off somewhere is bad input of the likeliest kind.
        for end in (0..input.len()).step_by(input.len() / 16 + 1) {
            check(&input[..end]);
        }
        inputs += 1;
    }
    assert!(inputs >= 3, "{name} has {inputs} inputs");
}

macro_rules! corpora {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })+

        #[test]
        fn every_target_has_a_test_and_a_program() {
            let tested = [$(stringify!($name)),+];
            let known: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(known, tested);
            let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
            for name in tested {
                assert!(programs.join(format!("{name}.rs")).exists(), "{name}");
            }
        }
    };
}

corpora! {
    jsonrpc_frame
    sse
    tool_definition
    intent
    config_file
    client_files
    csv_and_table
    cursor
    journal_frame
    redactor
}
