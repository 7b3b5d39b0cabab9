"""TRex's Python interface, on Wirestorm.

What a tree of TRex's on the module path has beside it is found as well, such as `trex.examples`.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
