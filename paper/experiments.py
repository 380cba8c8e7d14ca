"""All experiments, by name."""

from paper.claims import CLAIMS
from paper.comparison import COMPARISON
from paper.extensions import EXTENSIONS
from paper.figures.figure1 import FIGURE1
from paper.figures.figure2 import FIGURE2

EXPERIMENTS = {one.name: one for one in (FIGURE1, FIGURE2, CLAIMS, COMPARISON, EXTENSIONS)}
