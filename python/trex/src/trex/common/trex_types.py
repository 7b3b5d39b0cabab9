"""Older location of results, identifiers and checks."""

from trex.arguments import (
    is_integer,
    listify,
    listify_if_int,
    validate_type,
    verify_exclusive_arg,
)
from trex.client.profile_id import ALL_PROFILES as ALL_PROFILE_ID
from trex.client.profile_id import DEFAULT_PROFILE_ID, PortProfileID
from trex.client.rc import RC, RC_ERR, RC_OK, RC_WARN
from trex.errors import TRexArgumentError, TRexError, TRexTimeoutError, TRexTypeError

__all__ = [
    "ALL_PROFILE_ID",
    "DEFAULT_PROFILE_ID",
    "PortProfileID",
    "is_integer",
    "listify",
    "listify_if_int",
    "RC",
    "RC_ERR",
    "RC_OK",
    "RC_WARN",
    "TRexArgumentError",
    "TRexError",
    "TRexTimeoutError",
    "TRexTypeError",
    "validate_type",
    "verify_exclusive_arg",
]
