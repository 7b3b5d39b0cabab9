"""The HLTAPI: sessions and streams with named arguments, and the names of `trex.stl.api`."""

from trex.stl.api import *  # noqa: F403
from trex.stl.hlt.arguments import DEFAULTS as traffic_config_kwargs  # noqa: F401
from trex.stl.hlt.results import (  # noqa: F401
    HLT_ERR,
    HLT_OK,
    check_res,
    error,
    is_true,
    print_brief_stats,
    wait_with_progress,
)
from trex.stl.hlt.session import (  # noqa: F401
    CStreamsPerPort,
    CTRexHltApi,
    cleanup_session_kwargs,
    connect_kwargs,
    traffic_control_kwargs,
    traffic_stats_kwargs,
)
from trex.stl.hlt.streams import STLHltStream  # noqa: F401
