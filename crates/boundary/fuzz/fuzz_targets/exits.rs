//! Any bytes as an exit record: refused, or read so that what is written of it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_model::ExitRecord;

fuzz_target!(|data: &[u8]| {
    let Ok(record) = serde_json::from_slice::<ExitRecord>(data) else { return };
    let written = serde_json::to_vec(&record).expect("what was read can be written");
    let again: ExitRecord = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, record);
});
