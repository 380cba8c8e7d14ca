"""Tells Schemathesis what bytes are states, which an OpenAPI document cannot say."""

import struct

import schemathesis
from hypothesis import strategies as st

states = st.lists(st.floats(0, 1), min_size=1, max_size=8)
schemathesis.openapi.media_type(
    "application/octet-stream", states.map(lambda found: struct.pack(f"<{len(found)}d", *found))
)
