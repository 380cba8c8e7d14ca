"""The paper's figures and claims, the comparison that should have been there, and the engines that run them."""

from quietq.experiments.engine import carry_out
from quietq.experiments.experiment import Claim, Experiment, tables_of
from quietq.experiments.shelf import Shelf
from quietq.experiments.tables import write_tables
from quietq.experiments.task import Row, Task

__all__ = ["Claim", "Experiment", "Row", "Shelf", "Task", "carry_out", "tables_of", "write_tables"]
