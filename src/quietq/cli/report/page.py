"""One self-contained HTML page: words, tables and pictures in a single file that needs no network and no script."""

import base64
import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quietq.cli.folder import write

STYLE = """
:root { color-scheme: light; }
body { font: 17px/1.55 Georgia, 'Times New Roman', serif; color: #1a1a1a; background: #fff;
       max-width: 62rem; margin: 2rem auto 4rem; padding: 0 1.2rem; }
h1, h2, h3, th, figcaption, nav, .lead { font-family: system-ui, -apple-system, 'Segoe UI', sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; } h2 { margin-top: 2.6rem; border-top: 2px solid #ddd; padding-top: 1rem; }
.lead { font-size: 1.1rem; color: #333; } nav { font-size: .95rem; } nav a { margin-right: 1rem; }
p, li { max-width: 46rem; }
figure { margin: 1.4rem 0; } figure img { max-width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #444; max-width: 50rem; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem; border-bottom: 1px solid #ddd;
         overflow-wrap: anywhere; min-width: 3.6rem; }
th { border-bottom: 2px solid #999; } td.number { text-align: right; white-space: nowrap; }
tr.strong td:last-child { font-weight: bold; }
code, pre { font: .86em ui-monospace, Menlo, Consolas, monospace; background: #f3f3f3; }
pre { padding: .7rem; overflow-x: auto; white-space: pre-wrap; } code { padding: 0 .2em; }
.warning { border: 3px solid #b00020; padding: .6rem 1rem; font-weight: bold; }
@media print { body { margin: 0; } nav { display: none; } }
"""


@dataclass(frozen=True)
class Picture:
    """A PNG file, which is put into the page, with words below it and words for those who cannot see it."""

    path: Path
    caption: str
    alternative: str


@dataclass(frozen=True)
class Table:
    """Rows of values under headings; a row whose last value is in `strong` stands out."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    strong: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Listing:
    """A command, or anything else that is to be read letter by letter."""

    text: str


Part = str | Picture | Table | Listing
"""Strings are paragraphs, in which `backticks` mark code."""


@dataclass(frozen=True)
class Section:
    """A heading, and what comes below it."""

    title: str
    parts: Sequence[Part]


def write_page(
    path: str | os.PathLike[str], title: str, lead: str, sections: Sequence[Section], warning: str | None = None
) -> Path:
    """Writes the page; `warning` is shown in a box before everything else.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_page(f"{folder}/page.html", "Title", "Lead.", [Section("One & two", ["Say `hello`."])])
    ...     print("<p>Say <code>hello</code>.</p>" in file.read_text())
    True
    """
    links = "".join(f"<a href='#{_anchor(section.title)}'>{html.escape(section.title)}</a> " for section in sections)
    body = [
        "" if warning is None else f"<p class='warning' role='note'>{_inline(warning)}</p>",
        f"<h1>{_inline(title)}</h1>",
        f"<p class='lead'>{_inline(lead)}</p>",
        f"<nav aria-label='Contents'>{links}</nav>" if len(sections) > 1 else "",
        *(_section(section) for section in sections),
    ]
    text = (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body></html>\n"
    )
    target = Path(path)
    write(target, text)
    return target


def _section(section: Section) -> str:
    heading = f"<h2 id='{_anchor(section.title)}'>{html.escape(section.title)}</h2>"
    return "\n".join([heading, *(_part(part) for part in section.parts)])


def _part(part: Part) -> str:
    if isinstance(part, Picture):
        data = base64.b64encode(part.path.read_bytes()).decode()
        image = f"<img src='data:image/png;base64,{data}' alt='{html.escape(part.alternative, quote=True)}'>"
        return f"<figure>{image}<figcaption>{_inline(part.caption)}</figcaption></figure>"
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Listing):
        return f"<pre>{html.escape(part.text)}</pre>"
    return f"<p>{_inline(part)}</p>"


def _table(table: Table) -> str:
    head = "".join(f"<th scope='col'>{_inline(heading)}</th>" for heading in table.headings)
    lines = []
    for row in table.rows:
        mark = " class='strong'" if str(row[-1]) in table.strong else ""
        lines.append(f"<tr{mark}>{''.join(_cell(value) for value in row)}</tr>")
    return f"<div class='table'><table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return f"<td>{'–' if value is None else _inline(str(value))}</td>"
    written = f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    return f"<td class='number'>{html.escape(written)}</td>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
