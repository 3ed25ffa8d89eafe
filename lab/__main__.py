"""`python -m lab` is `wanlab`."""

import sys

from lab.cli import main

sys.exit(main())
