"""What all pictures have in common: colours, size, axes, headings, and which files they are written to."""

import importlib.util
import io
import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from quietq.cli.folder import write
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, dark first, and a line style each: told apart by colour-blind readers and in grey.
STYLES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#000000", ":"))
FAMILY = "DejaVu Sans"
"""The letters of all pictures, which come with Matplotlib, and of the reports (page.css)."""


def require() -> None:
    """Raises MissingExtra unless Matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra.of("report", "Plots need Matplotlib")


def checked(path: str | os.PathLike[str]) -> Path:
    """Refuses a file that is no picture, before anything is drawn."""
    require()
    target = Path(path)
    if target.suffix.lower() not in (".png", ".svg"):
        raise InvalidInput(f"path must end in .png or .svg, not {target.name!r}.")
    return target


def new_figure(width: float = 8.4, height: float = 5.2) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain(panel: "Axes", horizontal: str = "", vertical: str = "") -> None:
    """A light grid, and no frame but the axes."""
    panel.tick_params(labelsize=11)
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)
    if horizontal:
        panel.set_xlabel(horizontal, fontsize=12)
    if vertical:
        panel.set_ylabel(vertical, fontsize=12)


def save(figure: "Figure", target: Path, heading: str = "", below: str = "") -> None:
    """Adds the words above and below, and writes the picture, whole or not at all."""
    from matplotlib import rc_context
    from matplotlib.text import Text

    width = figure.get_size_inches()[0]
    if heading:
        figure.suptitle(textwrap.fill(heading, 76), fontsize=14)
    if below:
        figure.supxlabel(textwrap.fill(below, int(14.5 * width)), fontsize=9)
    # Whatever the reader's own Matplotlib is set to: words that are there, and those that drawing adds.
    for words in figure.findobj(Text):
        words.set_fontfamily(FAMILY)
    picture = io.BytesIO()
    with rc_context({"font.family": [FAMILY]}):
        figure.savefig(picture, format=target.suffix.lower()[1:])
    try:
        write(target, picture.getvalue())
    except OSError as error:
        raise InvalidInput(f"path must be a file that can be written to, not {str(target)!r}.") from error


def save_released(figure: "Figure", target: Path, heading: str, certificate: Certificate) -> None:
    """With the promise below it; marked if there is none."""
    marked = certificate.standing != "certified"
    save(figure, target, f"NOT PRIVATE: {heading}" if marked else heading, promise(certificate))


def promise(certificate: Certificate) -> str:
    """What the certificate promises, and to whom, in one line."""
    line = str(certificate).splitlines()[0]
    number = None if certificate.relation is None else certificate.relation.people
    if certificate.standing != "none" and number is not None:
        line += f" It protects each of {number} people."
    return line
