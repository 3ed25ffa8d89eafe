"""What a page that needs nothing else has inside: data as JSON, scripts by their hash."""

from __future__ import annotations

import base64
import hashlib
import json


def source_hash(text: str) -> str:
    """Return a script's hash as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def data(value: object) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
