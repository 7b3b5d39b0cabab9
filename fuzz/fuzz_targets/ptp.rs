#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| wirestorm_fuzz_targets::ptp::run(input));
