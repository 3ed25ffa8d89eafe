"""Engines: where a point runs. They never import each other; `lab.engines.base` names them."""
