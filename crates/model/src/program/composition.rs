//! Payload that differs from flow to flow.

use alloc::vec::Vec;

use super::variables::{TextVariable, Variable};

/// Payload that each flow composes: pieces in order, then fill up to `size`. Fields then overwrite
/// parts of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composition {
    /// Pieces, in order.
    pub pieces: Vec<Piece>,
    /// Minimum length in bytes, at most [`Self::LENGTH_MAX`].
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
    Value(Value, ValueFormat),
    /// This many random bytes.
    RandomBytes(u16),
    /// This many random letters and digits.
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
    /// Number of the flow within its side of the template, from 1.
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

/// Format of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFormat {
    /// Numbers in decimal, addresses in their usual notation, texts unchanged.
    Plain,
    /// Numbers in decimal with leading zeros, at least this many digits. Other values as in
    /// [`Self::Plain`].
    Digits(u8),
    /// Bytes in decimal, separated by commas. Of a number, only its lowest two bytes.
    DecimalBytes,
    /// Hexadecimal. Numbers have no leading zeros; other values have two digits per byte.
    Hex,
    /// Addresses in network byte order, texts unchanged, numbers in 8 bytes, big-endian.
    Bytes,
    /// As [`Self::Bytes`], in this many bytes. Of a number, its lowest bytes; other values are
    /// truncated or padded with zeros.
    Width(u8),
}

impl Composition {
    /// Maximum length in bytes.
    pub const LENGTH_MAX: usize = 1 << 20;

    /// Creates a composition of the same bytes for all flows.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self { pieces: alloc::vec![Piece::Bytes(bytes.into())], ..Self::default() }
    }

    /// Returns the bytes of the pieces if they are the same for all flows and there are no fields.
    pub fn fixed_bytes(&self) -> Option<Vec<u8>> {
        let bytes = self.pieces.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        let bytes = bytes.collect::<Option<Vec<_>>>()?.concat();
        self.fields.is_empty().then_some(bytes)
    }

    /// Returns the length in bytes of the pieces that are the same for all flows.
    pub fn length_min(&self) -> usize {
        let of = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.pieces.iter().map(of).sum()
    }

    /// Returns whether any piece differs from flow to flow.
    pub fn has_values(&self) -> bool {
        self.pieces.iter().any(|piece| !matches!(piece, Piece::Bytes(_)))
    }
}
