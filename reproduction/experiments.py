"""All experiments, by name."""

from reproduction.claims import CLAIMS
from reproduction.comparison import COMPARISON
from reproduction.extensions import EXTENSIONS
from reproduction.figures.figure1 import FIGURE1
from reproduction.figures.figure2 import FIGURE2

EXPERIMENTS = {one.name: one for one in (FIGURE1, FIGURE2, CLAIMS, COMPARISON, EXTENSIONS)}
