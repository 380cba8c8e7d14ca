"""`python -m quietq.cli`, the same as `quietq`."""

from quietq.cli import main

main()
