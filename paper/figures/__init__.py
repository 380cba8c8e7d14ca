"""The paper's two figures: learning curves by noise level, and its comparison with other methods."""

from paper.figures.figure1 import Figure1
from paper.figures.figure2 import Figure2

__all__ = ["Figure1", "Figure2"]
