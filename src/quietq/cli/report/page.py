"""One self-contained HTML page: words, tables and pictures in a single file that needs no network and no script.

A section is a title and its parts; `paragraph`, `picture`, `table` and `listing` make the parts, and escape what they
are given. `write_release_report` is the page for the person who signs off a release: pictures, the promise, its cost,
the audit, assumptions. All of that comes from what was released, its certificate, and an audit of the mechanism on
synthetic functions; so the page can be published with the release.
"""

import base64
import os
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.explain import Audience, explain
from quietq.released.release_file import write_whole

if TYPE_CHECKING:
    from quietq.audit.finding import Finding

WORDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("release_page.toml").read_text(encoding="utf-8"))
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


def paragraph(text: str) -> str:
    """Returns a paragraph, in which `backticks` mark code."""
    return f"<p>{_inline(text)}</p>"


def picture(path: Path, caption: str, alternative: str) -> str:
    """Returns a PNG file with words below it, and words for those who cannot see it."""
    data = base64.b64encode(path.read_bytes()).decode()
    image = f"<img src='data:image/png;base64,{data}' alt='{escape(alternative)}'>"
    return f"<figure>{image}<figcaption>{_inline(caption)}</figcaption></figure>"


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], strong: Collection[str] = ()) -> str:
    """Returns rows of values under headings; a row whose last value is in `strong` stands out."""
    head = "".join(f"<th scope='col'>{_inline(heading)}</th>" for heading in headings)
    kind = " class='many'" if len(headings) > MOST_NARROW else ""
    body = ""
    for row in rows:
        mark = " class='strong'" if str(row[-1]) in strong else ""
        cells = "".join(_cell(*both) for both in zip(row, headings, strict=True))
        body += f"<tr{mark}>{cells}</tr>"
    return f"<div class='table'><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def listing(text: str) -> str:
    """Returns a command, or anything else that is to be read letter by letter."""
    return f"<pre>{escape(text)}</pre>"


def write_page(path: str | os.PathLike[str], title: str, lead: str, sections: Mapping[str, Sequence[str]]) -> Path:
    """Writes the page: title and lead, links to the sections, and their parts, by title."""
    anchors = {name: re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") for name in sections}
    links = "".join(f"<a href='#{anchor}'>{escape(name)}</a> " for name, anchor in anchors.items())
    body = [f"<h1>{_inline(title)}</h1>", f"<p class='lead'>{_inline(lead)}</p>"]
    body += [f"<nav aria-label='Contents'>{links}</nav>"] if len(sections) > 1 else []
    for name, parts in sections.items():
        body += [f"<h2 id='{anchors[name]}'>{escape(name)}</h2>", *parts]
    text = PAGE.format(title=escape(title), style=STYLE.read_text(encoding="utf-8"), body="\n".join(body))
    write_whole(Path(path), text.encode())
    return Path(path)


def _cell(value: object, heading: str) -> str:
    named = f" data-heading='{escape(heading)}'"  # shown where the page is too narrow for columns
    if isinstance(value, bool | str) or value is None:
        return f"<td{named}>{'–' if value is None else _inline(str(value))}</td>"
    written = f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    return f"<td class='number'{named}>{escape(written)}</td>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def write_release_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    lead: str,
    certificate: Certificate,
    range_of_one: float,
    finding: "Finding",
    pictures: Sequence[str],
) -> Path:
    """Writes the page of a certified release.

    Args:
        path: The file.
        title: The heading.
        lead: What the release is of, in a few sentences.
        certificate: That of the release.
        range_of_one: The width of the range in which one person's reward lies, which is public.
        finding: What an audit of the mechanism found.
        pictures: Parts of a page that show what was released.

    """
    if certificate.standing != "certified":
        raise InvalidInput("A release report is for a certified release.")
    sections = {
        "What was released": pictures,
        "What is promised": [paragraph(str(line)) for line in explain(certificate, "everybody")],
        "What it costs": _costs(certificate, range_of_one),
        "What the audit found": _audit(finding),
        "What it rests on": _assumptions(certificate),
    }
    return write_page(path, title, lead, sections)


def _costs(certificate: Certificate, range_of_one: float) -> list[str]:
    told = [WORDS["no_outcome"], WORDS["again"]]
    if (sigma := certificate.sigma) is not None:
        told.insert(0, WORDS["noise"].format(sigma=sigma, range=range_of_one, share=sigma / range_of_one))
    return [paragraph(words) for words in told]


def _audit(finding: "Finding") -> list[str]:
    promise = finding.promise
    row = (promise.epsilon, finding.epsilon_lower, promise.mu, finding.mu_lower, finding.runs, finding.verdict)
    verdict = "broke the promise" if finding.verdict == "refuted" else "did not break the promise"
    headings = "epsilon promised", "epsilon at least", "mu promised", "mu at least", "releases each", "verdict"
    told = {"runs": finding.runs, "view": finding.attack.view, "confidence": finding.confidence, "verdict": verdict}
    found = table(headings, [row], strong=["refuted"])
    return [paragraph(WORDS["audit"].format(**told)), found, paragraph(WORDS["mu"])]


def _assumptions(certificate: Certificate) -> list[str]:
    """Each assumption once, what is trusted first."""
    audiences: tuple[Audience, ...] = ("signer", "engineer")
    stated = [line for audience in audiences for line in explain(certificate, audience)]
    assumptions = dict.fromkeys(
        (line.text, mark) for mark in ("trusted", "enforced") for line in stated if line.mark == mark
    )
    return [
        paragraph(WORDS["assumptions"]),
        table((f"assumption of {certificate.method}", "by"), list(assumptions)),
        *(paragraph(f"Note: {remark}") for remark in certificate.remarks),
    ]
