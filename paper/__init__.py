"""The paper's figures and claims, the comparison that should have been there, and the engines that run them."""

from paper.engine import carry_out
from paper.experiment import Claim, Experiment, tables_of
from paper.results import Shelf
from paper.tables import write_tables
from paper.task import Row, Task

__all__ = ["Claim", "Experiment", "Row", "Shelf", "Task", "carry_out", "tables_of", "write_tables"]
