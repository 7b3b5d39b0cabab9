//! Engine tests with hand-made frames, random frames and the reference output of tcpreplay.

mod common;
mod edit;
mod edit_goldens;
mod edit_properties;
mod impairment;
mod measure;
mod measure_properties;
mod members;
mod sides_goldens;
mod stream;
mod tunnel;
mod worker;
