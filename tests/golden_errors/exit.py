"""A script that leaves."""

import sys

sys.exit("nothing to do")
