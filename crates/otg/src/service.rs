//! The gRPC service `otg.Openapi`: the trait for a server, and its codec.
//!
//! A client-streaming method receives a message in parts: the `datum` of all [`Data`] together is
//! its encoding.
//!
//! [`Data`]: crate::proto::Data

use std::marker::PhantomData;

use prost::bytes::Buf;
use prost::{Message, Name};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::decode::{Warning, from_protobuf};

/// The trait `Openapi`, and `OpenapiServer`, which makes a tonic service of it.
#[expect(non_camel_case_types, reason = "the names of the methods are those of the models")]
pub mod server {
    include!(concat!(env!("OUT_DIR"), "/otg.Openapi.rs"));

    pub use openapi_server::{Openapi, OpenapiServer};
}

/// A message with the fields that have no effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Received<T> {
    /// The message, with the defaults of the models.
    pub message: T,
    /// Fields without effect.
    pub warnings: Vec<Warning>,
}

/// The message `google.protobuf.Empty`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Empty {}

impl Name for Empty {
    const NAME: &'static str = "Empty";
    const PACKAGE: &'static str = "google.protobuf";
}

/// Encodes messages of type `E`, and decodes messages of type `D` with [`from_protobuf`].
#[derive(Debug)]
pub struct MessageCodec<E, D> {
    types: PhantomData<(E, D)>,
}

impl<E, D> Default for MessageCodec<E, D> {
    fn default() -> Self {
        Self { types: PhantomData }
    }
}

impl<E, D> Codec for MessageCodec<E, Received<D>>
where
    E: Message + Send + 'static,
    D: Message + Name + Default + Send + 'static,
{
    type Encode = E;
    type Decode = Received<D>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self {
        Self::default()
    }
}

impl<E: Message, D> Encoder for MessageCodec<E, D> {
    type Item = E;
    type Error = Status;

    fn encode(&mut self, message: E, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl<E, D: Message + Name + Default> Decoder for MessageCodec<E, Received<D>> {
    type Item = Received<D>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Received<D>>, Status> {
        let bytes = buffer.copy_to_bytes(buffer.remaining());
        let decoded = match D::PACKAGE {
            "otg" => from_protobuf(&bytes).map_err(|error| error.to_string()),
            _ => D::decode(bytes).map(|it| (it, Vec::new())).map_err(|error| error.to_string()),
        };
        let (message, warnings) = decoded.map_err(Status::invalid_argument)?;
        Ok(Some(Received { message, warnings }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{SetConfigRequest, SetConfigResponse};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// Decodes a request as a server does. The bytes must be ASCII, which needs no other body type.
    fn decode(message: &[u8]) -> Result<Received<SetConfigRequest>, Status> {
        let mut frame = vec![0, 0, 0, 0, message.len() as u8];
        frame.extend(message);
        let body = tonic::body::Body::new(String::from_utf8(frame).unwrap());
        let decoder =
            MessageCodec::<SetConfigResponse, Received<SetConfigRequest>>::default().decoder();
        let mut stream = tonic::Streaming::new_request(decoder, body, None, None);
        let mut future = pin!(stream.message());
        loop {
            // The whole body is there, so that no waiting is needed.
            if let Poll::Ready(message) =
                future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            {
                return message.map(|message| message.unwrap());
            }
        }
    }

    #[test]
    fn unknown_fields_of_a_request_are_warnings() {
        // The configuration with a port "p", which has a field 15.
        let received = decode(&[10, 7, 10, 5, 18, 1, b'p', 15 << 3, 7]).unwrap();
        assert_eq!(received.message.config.unwrap().ports[0].name(), "p");
        assert_eq!(
            received.warnings[0].to_string(),
            "config.ports[0]: unknown field number 15, ignored"
        );
        let error = decode(&[10, 2, 10, 0]).unwrap_err();
        assert_eq!(error.code(), tonic::Code::InvalidArgument);
        assert_eq!(error.message(), "config.ports[0].name: found nothing, expected a value");
    }
}
