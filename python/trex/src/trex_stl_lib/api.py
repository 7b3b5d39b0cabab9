"""Names for profiles with `from trex_stl_lib.api import *`: those of `trex.stl.api`."""

from trex.stl.api import *
