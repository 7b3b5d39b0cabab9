//! What all packet views have in common.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::Range;

use super::MacAddress;

/// Why bytes cannot be viewed as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The bytes end inside the header.
    #[error("{header}: {found} bytes, expected at least {expected}")]
    Truncated {
        /// The header's name.
        header: &'static str,
        /// Bytes that are there.
        found: usize,
        /// Bytes that the header has.
        expected: usize,
    },
    /// The version is another one.
    #[error("{header}: version {found}, expected {expected}")]
    BadVersion {
        /// The header's name.
        header: &'static str,
        /// The version found.
        found: u8,
        /// The version that is viewed.
        expected: u8,
    },
    /// The header claims to be shorter than its fixed fields.
    #[error("{header}: a header length of {found} bytes, expected at least {minimum}")]
    BadHeaderLength {
        /// The header's name.
        header: &'static str,
        /// The length it claims.
        found: usize,
        /// The length of the fixed fields.
        minimum: usize,
    },
    /// Addresses of other lengths than those of Ethernet and IPv4.
    #[error("ARP: addresses of {hardware} and {protocol} bytes, expected 6 and 4")]
    BadAddressLengths {
        /// The length of hardware addresses.
        hardware: u8,
        /// The length of protocol addresses.
        protocol: u8,
    },
}

/// A value that a field of fixed size can hold, in network byte order.
pub(super) trait FieldValue: Copy {
    /// From the bytes of the field; a default where they are of another number.
    fn from_field(bytes: &[u8]) -> Self;
    /// To the bytes of the field; nothing where they are of another number.
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

/// The value of the field `range`; a default where that is outside.
#[inline]
pub(super) fn read<V: FieldValue>(bytes: &[u8], range: Range<usize>) -> V {
    V::from_field(bytes.get(range).unwrap_or_default())
}

/// Writes the field `range`; nothing where that is outside.
#[inline]
pub(super) fn write<V: FieldValue>(bytes: &mut [u8], range: Range<usize>, value: V) {
    value.to_field(bytes.get_mut(range).unwrap_or_default());
}

/// Errs where `bytes` are fewer than `expected`.
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

/// Declares a view: its type, its constructor, and an accessor and a setter for each field that
/// is whole bytes. `check` gives an error where the bytes cannot be viewed.
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
            /// Views `buffer`, which begins with the header.
            ///
            /// # Errors
            /// Where the header is not all there, or its end cannot be told.
            #[inline]
            pub fn new(buffer: T) -> Result<Self, $crate::packet::PacketError> {
                $check(buffer.as_ref())?;
                Ok(Self { buffer })
            }

            /// The bytes back.
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
                #[doc = concat!("Sets what [`Self::", stringify!($getter), "`] gives.")]
                #[inline]
                pub fn $setter(&mut self, value: $type) {
                    $crate::packet::view::write(self.buffer.as_mut(), $range, value);
                }
            )*
        }
    };
}

pub(super) use view;
