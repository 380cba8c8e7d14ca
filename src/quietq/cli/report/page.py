"""One self-contained HTML page: words, tables and pictures in a single file that needs no network and no script."""

import base64
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from quietq.cli.folder import write

STYLE = Path(__file__).with_name("page.css")
MOST_NARROW = 2
"""Columns that fit the narrowest screen side by side."""
PAGE = """<!doctype html>
<html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>
<title>{title}</title><style>{style}</style></head>
<body>
{body}
</body></html>
"""


@dataclass(frozen=True)
class Picture:
    """A PNG file, which is put into the page, with words below it and words for those who cannot see it."""

    path: Path
    caption: str
    alternative: str

    def html(self) -> str:
        data = base64.b64encode(self.path.read_bytes()).decode()
        image = f"<img src='data:image/png;base64,{data}' alt='{escape(self.alternative)}'>"
        return f"<figure>{image}<figcaption>{_inline(self.caption)}</figcaption></figure>"


@dataclass(frozen=True)
class Table:
    """Rows of values under headings; a row whose last value is in `strong` stands out."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    strong: frozenset[str] = frozenset()

    def html(self) -> str:
        head = "".join(f"<th scope='col'>{_inline(heading)}</th>" for heading in self.headings)
        kind = " class='many'" if len(self.headings) > MOST_NARROW else ""
        body = ""
        for row in self.rows:
            mark = " class='strong'" if str(row[-1]) in self.strong else ""
            cells = "".join(_cell(*both) for both in zip(row, self.headings, strict=True))
            body += f"<tr{mark}>{cells}</tr>"
        return f"<div class='table'><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


@dataclass(frozen=True)
class Listing:
    """A command, or anything else that is to be read letter by letter."""

    text: str

    def html(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


Part = str | Picture | Table | Listing
"""Strings are paragraphs, in which `backticks` mark code."""


@dataclass(frozen=True)
class Section:
    """A heading, and what comes below it."""

    title: str
    parts: Sequence[Part]

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    def html(self) -> str:
        parts = [f"<p>{_inline(part)}</p>" if isinstance(part, str) else part.html() for part in self.parts]
        return "\n".join([f"<h2 id='{self.anchor}'>{escape(self.title)}</h2>", *parts])


def write_page(
    path: str | os.PathLike[str], title: str, lead: str, sections: Sequence[Section], warning: str | None = None
) -> Path:
    """Writes the page; `warning` is shown in a box before everything else."""
    links = "".join(f"<a href='#{section.anchor}'>{escape(section.title)}</a> " for section in sections)
    body = [] if warning is None else [f"<p class='warning' role='note'>{_inline(warning)}</p>"]
    body += [f"<h1>{_inline(title)}</h1>", f"<p class='lead'>{_inline(lead)}</p>"]
    body += [f"<nav aria-label='Contents'>{links}</nav>"] if len(sections) > 1 else []
    body += [section.html() for section in sections]
    text = PAGE.format(title=escape(title), style=STYLE.read_text(encoding="utf-8"), body="\n".join(body))
    write(Path(path), text)
    return Path(path)


def _cell(value: object, heading: str) -> str:
    named = f" data-heading='{escape(heading)}'"  # shown where the page is too narrow for columns
    if isinstance(value, bool | str) or value is None:
        return f"<td{named}>{'–' if value is None else _inline(str(value))}</td>"
    written = f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    return f"<td class='number'{named}>{escape(written)}</td>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
