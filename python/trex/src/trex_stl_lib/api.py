"""What profiles get from `from trex_stl_lib.api import *`: the same as from `trex.stl.api`."""

from trex.stl.api import *
