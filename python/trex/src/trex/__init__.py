"""TRex's Python interface on Wirestorm.

The package also finds modules of a TRex tree on the module path, such as `trex.examples`.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
