"""The page at `/`: the files of this package that it is made of, read once; no other name leads to a file."""

from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "page"
_SCRIPTS = (
    "axes.js", "certificate.js", "cursor.js", "elements.js", "legend.js", "line_plot.js", "map_plot.js", "page.js",
    "plot.js", "query.js", "release.js", "server.js", "view.js",
)  # fmt: skip
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    **{f"/{name}": (name, "text/javascript; charset=utf-8") for name in _SCRIPTS},
}


@dataclass(frozen=True)
class PageFile:
    """One of the files: where it is asked for, and what is answered."""

    path: str
    content: bytes
    kind: str


def read_page() -> list[PageFile]:
    """All files of the page."""
    return [PageFile(path, (_FOLDER / name).read_bytes(), kind) for path, (name, kind) in _FILES.items()]
