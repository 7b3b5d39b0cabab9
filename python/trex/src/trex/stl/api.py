"""Names for profiles and scripts with `from trex.stl.api import *`.

They include all of scapy and standard modules that profiles use without importing them. The module
has no `__all__`, so that a star import includes everything.
"""

import array
import base64
import binascii
import calendar
import collections
import copy
import cProfile
import ctypes
import datetime
import functools
import getopt
import glob
import gzip
import hashlib
import hmac
import importlib
import inspect
import io
import itertools
import json
import logging
import math
import operator
import os
import pstats
import random
import re
import socket
import string
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
import warnings
from collections import OrderedDict, defaultdict, namedtuple
from decimal import Decimal
from functools import reduce
from random import choice
from socket import inet_aton, inet_ntoa
from time import gmtime, strftime

import scapy
import yaml
from scapy.all import *

from trex.addresses import *
from trex.arguments import is_integer, listify, listify_if_int, validate_type, verify_exclusive_arg
from trex.client.ns_commands import NSCmdResult, NSCmds
from trex.client.packet_buffer import PacketBuffer
from trex.client.rc import RC, RC_ERR, RC_OK, RC_WARN
from trex.errors import *
from trex.stl import scapy_defaults as _scapy_defaults
from trex.stl.client import STLClient, stl_map_ports
from trex.stl.instructions import (
    CTRexVmInsBase,
    CTRexVmInsFixHwCs,
    CTRexVmInsFixIcmpv6,
    CTRexVmInsFixIpv4,
    CTRexVmInsFlowVar,
    CTRexVmInsFlowVarRandLimit,
    CTRexVmInsTrimPktSize,
    CTRexVmInsTupleGen,
    CTRexVmInsWrFlowVar,
    CTRexVmInsWrMaskFlowVar,
)
from trex.stl.modes import STLTXCont, STLTXMode, STLTXMultiBurst, STLTXSingleBurst
from trex.stl.packet_builder import CTrexPktBuilderInterface, STLPktBuilder
from trex.stl.packet_operations import (
    STLVmFixChecksumHw,
    STLVmFixIcmpv6,
    STLVmFixIpv4,
    STLVmTrimPktSize,
    STLVmWrFlowVar,
    STLVmWrMaskFlowVar,
)
from trex.stl.pcap import Graph, PCAPReader
from trex.stl.profile import STLProfile
from trex.stl.ranges import (
    CTRexScFieldRangeBase,
    CTRexScFieldRangeValue,
    CTRexScIpv4SimpleRange,
    CTRexScIpv4TupleGen,
    CTRexScTrimPacketSize,
)
from trex.stl.statistics import (
    STLFlowLatencyStats,
    STLFlowStats,
    STLFlowStatsInterface,
    STLTaggedPktGroup,
)
from trex.stl.streams import (
    STLStream,
    STLStreamDstMAC_ARP,
    STLStreamDstMAC_CFG_FILE,
    STLStreamDstMAC_PKT,
)
from trex.stl.tags import STLTaggedPktGroupTagConf
from trex.stl.variables import (
    CTRexVmDescBase,
    STLVmFlowVar,
    STLVmFlowVarRepeatableRandom,
    STLVmTupleGen,
    check_for_int,
    convert_val,
    convert_val_list,
    get_max_by_size,
    valid_fv_cycle,
    valid_fv_init,
    valid_fv_min_max,
    valid_fv_ops,
    valid_fv_size,
    valid_fv_var_sizes,
)
from trex.stl.vm import STLVM, CTRexScriptsBase, STLIPRange, STLScVmRaw
from trex.utilities import *

_scapy_defaults.install()

default_STLStream = STLStream()
basestring = str
using_python_3 = True
