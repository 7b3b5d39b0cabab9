#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| wirestorm_fuzz_targets::dissect_and_edit::run(input));
