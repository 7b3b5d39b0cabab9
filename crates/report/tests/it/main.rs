//! Reports of sample runs in all formats.

#[path = "../../examples/sample/data.rs"]
mod data;
mod formats;
mod methods;
mod over_time;
mod reading;
#[path = "../../examples/sample/services.rs"]
mod services;

use data as sample;
