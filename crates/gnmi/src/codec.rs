//! Codec of the messages for tonic.

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Encodes messages of type `E`, and decodes messages of type `D`.
#[derive(Debug)]
pub struct MessageCodec<E, D> {
    types: PhantomData<(E, D)>,
}

impl<E, D> Default for MessageCodec<E, D> {
    fn default() -> Self {
        Self { types: PhantomData }
    }
}

impl<E, D> Codec for MessageCodec<E, D>
where
    E: Message + Send + 'static,
    D: Message + Default + Send + 'static,
{
    type Encode = E;
    type Decode = D;
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

impl<E, D: Message + Default> Decoder for MessageCodec<E, D> {
    type Item = D;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
        let message = D::decode(buffer);
        message.map(Some).map_err(|error| Status::invalid_argument(error.to_string()))
    }
}
