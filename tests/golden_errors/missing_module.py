"""An import that is not there."""

import wanlab_has_no_such_module
