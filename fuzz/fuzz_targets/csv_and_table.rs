#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_targets::check("csv_and_table", input));
