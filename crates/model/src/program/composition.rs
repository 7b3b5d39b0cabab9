//! Payload that differs from flow to flow.

use alloc::vec::Vec;

use super::variables::{TextVariable, Variable};

/// Payload that each flow composes: pieces one after the other, then fill up to `size`; then
/// fields overwrite parts of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composition {
    /// Pieces, one after the other.
    pub pieces: Vec<Piece>,
    /// Length at least, in bytes, at most [`Self::LENGTH_MAX`].
    pub size: u32,
    /// Bytes that repeat up to `size`; empty: bytes that count from 0 to 255.
    pub fill: Vec<u8>,
    /// Fields, written in this order. A field that ends after the payload is not written.
    pub fields: Vec<Field>,
}

/// A part of a composition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The same bytes for all flows.
    Bytes(Vec<u8>),
    /// A value of the flow.
    Value(Value, Form),
    /// Random bytes, this many.
    RandomBytes(u16),
    /// Random letters and digits, this many.
    RandomText(u16),
}

/// A value at a fixed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset in bytes, from 0.
    pub offset: u32,
    /// Width in bytes.
    pub width: u16,
    /// Value to write.
    pub value: Value,
}

/// A value of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Number of the flow among those of its template, from 1.
    Flow,
    /// Address of the client.
    Client,
    /// Port of the client.
    ClientPort,
    /// Address of the server.
    Server,
    /// Port of the server.
    ServerPort,
    /// A numeric variable.
    Number(Variable),
    /// A text variable.
    Text(TextVariable),
    /// Length of a text variable in bytes.
    Length(TextVariable),
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Numbers in decimal, addresses in their usual notation, texts unchanged.
    Plain,
    /// Numbers in decimal with leading zeros, at least this many digits; others as
    /// [`Self::Plain`].
    Digits(u8),
    /// Bytes in decimal, separated by commas; of a number the last two.
    Octets,
    /// Hexadecimal: numbers without leading zeros, two digits for each byte of others.
    Hex,
    /// Addresses in network byte order, texts unchanged, numbers in 8 bytes, big-endian.
    Bytes,
    /// As [`Self::Bytes`] in this many bytes: the last bytes of a number; others are cut or padded
    /// with zeros.
    Width(u8),
}

impl Composition {
    /// Length in bytes, at most.
    pub const LENGTH_MAX: usize = 1 << 20;

    /// The same bytes for all flows.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { pieces: alloc::vec![Piece::Bytes(bytes.into())], ..Self::default() }
    }

    /// Returns the bytes of the pieces if all flows have the same.
    pub fn fixed_bytes(&self) -> Option<Vec<u8>> {
        let bytes = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        let bytes = bytes.collect::<Option<Vec<_>>>()?.concat();
        self.fields.is_empty().then_some(bytes)
    }

    /// Length of the pieces in bytes if all values are empty.
    pub fn length_min(&self) -> usize {
        let of = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.pieces.iter().map(of).sum()
    }

    /// Whether a piece differs from flow to flow.
    pub fn has_values(&self) -> bool {
        self.pieces.iter().any(|piece| !matches!(piece, Piece::Bytes(_)))
    }
}
