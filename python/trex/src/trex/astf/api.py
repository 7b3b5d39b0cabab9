"""Names for profiles with `from trex.astf.api import *`.

They include standard modules that profiles use without importing them. The module has no `__all__`,
so that a star import includes everything.
"""

import array
import base64
import collections
import cProfile
import gzip
import hashlib
import importlib
import inspect
import json
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
from decimal import Decimal
from functools import reduce

import yaml

from trex.addresses import *
from trex.arguments import listify, validate_type
from trex.astf.association import ASTFAssociation, ASTFAssociationRule
from trex.astf.cap_info import ASTFCapInfo
from trex.astf.client import ASTFClient
from trex.astf.commands import (
    ASTFCmd,
    ASTFCmdAddStatsBase,
    ASTFCmdAddStatsVal,
    ASTFCmdAddTickStats,
    ASTFCmdAddTickVar,
    ASTFCmdAddVal,
    ASTFCmdCloseMsg,
    ASTFCmdConnect,
    ASTFCmdDelay,
    ASTFCmdDelayRnd,
    ASTFCmdExecTemplate,
    ASTFCmdJMPBase,
    ASTFCmdJMPCMP,
    ASTFCmdJMPDP,
    ASTFCmdJMPNZ,
    ASTFCmdKeepaliveMsg,
    ASTFCmdNoClose,
    ASTFCmdRecv,
    ASTFCmdRecvMsg,
    ASTFCmdReset,
    ASTFCmdSend,
    ASTFCmdSetTemplate,
    ASTFCmdSetTickValBase,
    ASTFCmdSetTickVar,
    ASTFCmdSetVal,
    ASTFCmdSetValBase,
    ASTFCmdTxMode,
    ASTFCmdTxPkt,
)
from trex.astf.errors import *
from trex.astf.global_info import ASTFGlobalInfo, ASTFGlobalInfoPerTemplate
from trex.astf.pools import ASTFIPGen, ASTFIPGenDist, ASTFIPGenGlobal
from trex.astf.profile import ASTFProfile, ASTFProfileLight
from trex.astf.program import ASTFProgram
from trex.astf.templates import (
    ASTFCluster,
    ASTFTCPClientTemplate,
    ASTFTCPOptions,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)
from trex.astf.topo import *
from trex.errors import *
from trex.utilities import *

basestring = str
using_python_3 = True
