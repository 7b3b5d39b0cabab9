"""What profiles get from `from trex_astf_lib.api import *`: the same as from `trex.astf.api`."""

from trex.astf.api import *
