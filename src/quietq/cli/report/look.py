"""What all pictures have in common: colours, size, axes, and which files they are written to."""

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quietq.privacy.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".png", ".svg")
# Okabe and Ito's colours, dark first, and a line style each: told apart by colour-blind readers and in grey.
STYLES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#000000", ":"))


def require() -> None:
    """Raises MissingExtra unless Matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra.of("report", "Plots need Matplotlib")


def checked(path: str | os.PathLike[str]) -> Path:
    """The file to write to, if a picture can be written there."""
    require()
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"path must end in .png or .svg, not {target.name!r}.")
    return target


def new_figure(width: float = 8.4, height: float = 5.2) -> Any:
    """An empty figure, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain(panel: "Axes") -> None:
    """A light grid, and no frame but the axes."""
    panel.tick_params(labelsize=11)
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
