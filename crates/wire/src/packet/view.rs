//! Common parts of all packet views.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::Range;

use super::MacAddress;

/// Error if bytes cannot be viewed as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The bytes end within the header.
    #[error("{header}: {found} bytes, expected at least {expected}")]
    Truncated {
        /// Name of the header.
        header: &'static str,
        /// Number of bytes.
        found: usize,
        /// Length of the header in bytes.
        expected: usize,
    },
    /// The version is wrong.
    #[error("{header}: version {found}, expected {expected}")]
    BadVersion {
        /// Name of the header.
        header: &'static str,
        /// Version in the header.
        found: u8,
        /// Version of the view.
        expected: u8,
    },
    /// The header length field is less than the fixed fields.
    #[error("{header}: a header length of {found} bytes, expected at least {minimum}")]
    BadHeaderLength {
        /// Name of the header.
        header: &'static str,
        /// Header length, as the header states it.
        found: usize,
        /// Length of the fixed fields.
        minimum: usize,
    },
    /// Address lengths other than those of Ethernet and IPv4.
    #[error("ARP: addresses of {hardware} and {protocol} bytes, expected 6 and 4")]
    BadAddressLengths {
        /// Length of hardware addresses.
        hardware: u8,
        /// Length of protocol addresses.
        protocol: u8,
    },
}

/// A value of a fixed-size field in network byte order.
pub(super) trait FieldValue: Copy {
    /// Reads the value from the field; returns a default if `bytes` has another length.
    fn from_field(bytes: &[u8]) -> Self;
    /// Writes the value to the field; does nothing if `bytes` has another length.
    fn to_field(self, bytes: &mut [u8]);
}

macro_rules! field_values {
    ($($type:ty, $from:expr, $to:expr;)*) => {$(
        impl FieldValue for $type {
            #[inline]
            fn from_field(bytes: &[u8]) -> Self {
                $from(<[u8; size_of::<Self>()]>::try_from(bytes).unwrap_or_default())
            }

            #[inline]
            fn to_field(self, bytes: &mut [u8]) {
                if let Ok(bytes) = <&mut [u8; size_of::<Self>()]>::try_from(bytes) {
                    *bytes = $to(self);
                }
            }
        }
    )*};
}

field_values! {
    u8, u8::from_be_bytes, u8::to_be_bytes;
    u16, u16::from_be_bytes, u16::to_be_bytes;
    u32, u32::from_be_bytes, u32::to_be_bytes;
    MacAddress, MacAddress, |address: Self| address.0;
    Ipv4Addr, Ipv4Addr::from, |address: Self| address.octets();
    Ipv6Addr, Ipv6Addr::from, |address: Self| address.octets();
}

/// Returns the value of the field `range`; a default if it is out of bounds.
#[inline]
pub(super) fn read<V: FieldValue>(bytes: &[u8], range: Range<usize>) -> V {
    V::from_field(bytes.get(range).unwrap_or_default())
}

/// Writes the field `range`; does nothing if it is out of bounds.
#[inline]
pub(super) fn write<V: FieldValue>(bytes: &mut [u8], range: Range<usize>, value: V) {
    value.to_field(bytes.get_mut(range).unwrap_or_default());
}

/// Returns an error if `bytes` is shorter than `expected`.
pub(super) fn expect_length(
    header: &'static str,
    bytes: &[u8],
    expected: usize,
) -> Result<(), PacketError> {
    match bytes.len() {
        found if found < expected => Err(PacketError::Truncated { header, found, expected }),
        _ => Ok(()),
    }
}

/// Declares a view: its type, its constructor, and a getter and a setter for each field of whole
/// bytes. `check` returns an error if the bytes cannot be viewed.
macro_rules! view {
    (
        $(#[$attribute:meta])*
        $name:ident, $check:path;
        $($(#[$field_attribute:meta])* $getter:ident, $setter:ident: $type:ty = $range:expr;)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<T: AsRef<[u8]>> {
            buffer: T,
        }

        impl<T: AsRef<[u8]>> $name<T> {
            /// Creates a view of `buffer`, which begins with the header.
            ///
            /// # Errors
            /// If the header is truncated or its length is invalid.
            #[inline]
            pub fn new(buffer: T) -> Result<Self, $crate::packet::PacketError> {
                $check(buffer.as_ref())?;
                Ok(Self { buffer })
            }

            /// Returns the buffer.
            pub fn into_inner(self) -> T {
                self.buffer
            }

            #[inline]
            fn bytes(&self) -> &[u8] {
                self.buffer.as_ref()
            }

            $(
                $(#[$field_attribute])*
                #[inline]
                pub fn $getter(&self) -> $type {
                    $crate::packet::view::read(self.bytes(), $range)
                }
            )*
        }

        impl<T: AsRef<[u8]> + AsMut<[u8]>> $name<T> {
            #[inline]
            #[allow(dead_code, reason = "not every view has bit fields")]
            fn bytes_mut(&mut self) -> &mut [u8] {
                self.buffer.as_mut()
            }

            $(
                #[doc = concat!("Sets [`Self::", stringify!($getter), "`].")]
                #[inline]
                pub fn $setter(&mut self, value: $type) {
                    $crate::packet::view::write(self.buffer.as_mut(), $range, value);
                }
            )*
        }
    };
}

pub(super) use view;
