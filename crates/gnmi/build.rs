//! Generates from the published proto files:
//!
//! - `gnmi.rs`, `gnmi_ext.rs`: Rust types of the messages;
//! - `gnmi.gNMI.rs`: the trait of the gRPC service.

use std::error::Error;
use std::path::PathBuf;

/// Folder of the proto files below `proto`, as their imports name it.
const FILES: &str = "github.com/openconfig/gnmi/proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut set = protox::compile([format!("{FILES}/gnmi/gnmi.proto")], ["proto"])?;
    for file in &mut set.file {
        // Comments, whose examples would become documentation tests.
        file.source_code_info = None;
        for service in &file.service {
            let mut builder =
                tonic_build::manual::Service::builder().name(service.name()).package("gnmi");
            for method in &service.method {
                let rust_type =
                    |name: &str| format!("crate::gnmi::{}", name.trim_start_matches(".gnmi."));
                let mut one = tonic_build::manual::Method::builder()
                    .name(method.name().to_ascii_lowercase())
                    .route_name(method.name())
                    .input_type(rust_type(method.input_type()))
                    .output_type(rust_type(method.output_type()))
                    .codec_path("crate::codec::MessageCodec");
                if method.client_streaming() {
                    one = one.client_streaming();
                }
                if method.server_streaming() {
                    one = one.server_streaming();
                }
                builder = builder.method(one.build());
            }
            tonic_build::manual::Builder::new()
                .build_client(false)
                .out_dir(&out)
                .compile(&[builder.build()]);
        }
        file.service.clear();
    }
    // A map in a fixed order, so that equal messages have equal encodings.
    prost_build::Config::new().out_dir(out).btree_map(["."]).compile_fds(set)?;
    Ok(())
}
