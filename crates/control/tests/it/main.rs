//! Runs in memory and over veth pairs, compared with Linux and the reference output of TRex.

mod captured_times;
mod clock_stamps;
mod groups;
mod per_flow_payload;
mod presets;
mod resident;
mod resident_capture;
mod runs;
mod series;
mod sessions;
mod simulation;
mod stateful_goldens;
mod stateful_linux;
mod stateful_sim;
mod stateful_tunables;
mod trex_captures;
