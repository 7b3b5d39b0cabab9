"""Answers, identifiers and checks by their older place."""

from trex.arguments import listify, validate_type
from trex.astf.profiles import ALL_PROFILE_ID, DEFAULT_PROFILE_ID
from trex.client.answers import RC, RC_ERR, RC_OK, RC_WARN
from trex.errors import TRexArgumentError, TRexError, TRexTimeoutError, TRexTypeError

__all__ = [
    "ALL_PROFILE_ID",
    "DEFAULT_PROFILE_ID",
    "listify",
    "RC",
    "RC_ERR",
    "RC_OK",
    "RC_WARN",
    "TRexArgumentError",
    "TRexError",
    "TRexTimeoutError",
    "TRexTypeError",
    "validate_type",
]
