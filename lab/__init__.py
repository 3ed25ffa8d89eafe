"""wanlab: how big must the buffers be, and which congestion control, to fill this long path?

Importing this package starts nothing, opens nothing and needs no privilege.
"""

__version__ = "0.1.0"
