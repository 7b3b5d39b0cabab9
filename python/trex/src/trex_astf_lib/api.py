"""Names for profiles with `from trex_astf_lib.api import *`: those of `trex.astf.api`."""

from trex.astf.api import *
