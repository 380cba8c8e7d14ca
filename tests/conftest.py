"""Every annotated function of quietq is checked at run time while the tests run, shapes included."""

import os
import sys

from hypothesis import settings
from jaxtyping import install_import_hook

sys.path.insert(0, os.path.dirname(__file__))
install_import_hook("quietq", "typecheck.typecheck")

settings.register_profile("quietq", deadline=None, derandomize=True, max_examples=200, database=None)
settings.load_profile("quietq")
