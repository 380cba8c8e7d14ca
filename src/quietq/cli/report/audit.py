"""What audits found: a picture of promises and measurements, and a file beside the release that was attacked."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quietq.audit.finding import Finding
from quietq.cli.folder import write_json
from quietq.cli.options import kinds
from quietq.cli.report.look import checked, new_figure, save
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.relations import relation_in_words
from quietq.publishing import open_release
from quietq.publishing.server.audits import audit_beside
from quietq.registry import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLAIMED, CERTIFIED, MEASURED = "#D55E00", "#0072B2", "#000000"
REFUTED = "REFUTED"


class Line(NamedTuple):
    """What is drawn of a finding."""

    standing: str
    promised: float
    measured: float
    verdict: str


def plot_findings(findings: Mapping[str, Finding], path: str | os.PathLike[str]) -> None:
    """Draws what was promised, and what was measured of it, to PNG or SVG."""
    lines = {
        name: Line(one.promise.standing, one.promise.epsilon, one.epsilon_lower, one.verdict)
        for name, one in findings.items()
    }
    plot_lines(lines, path, next(iter(findings.values())).confidence)


def plot_lines(lines: Mapping[str, Line], path: str | os.PathLike[str], confidence: float) -> None:
    """A line per method: its promise as a bar's end, and the measured lower bound as a mark."""
    target = checked(path)
    figure = new_figure(9.6, 1.9 + 0.42 * len(lines))
    axes = figure.subplots()
    for row, line in enumerate(lines.values()):
        _line(axes, len(lines) - 1 - row, line)
    axes.set_yticks(range(len(lines)), list(lines)[::-1], fontsize=11)
    axes.set_ylim(-0.7, len(lines) - 0.3)
    axes.set_xlim(0, 1.2 * max(max(line.promised, line.measured) for line in lines.values()))
    axes.set_xlabel("epsilon", fontsize=12)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    kept = dict(zip(labels, handles, strict=True))
    order = [label for label in ("claimed", "certified", "measured: at least this") if label in kept]
    shown = [kept[label] for label in order]
    figure.legend(shown, order, loc="outside upper center", ncols=3, fontsize=11, frameon=False)
    bounds = (
        f"Measured: lower bounds, each at confidence {confidence:.3g}. They rise with the number of runs, and cannot"
    )
    save(figure, target, "", f"{bounds} prove a promise, only break it.")


def _line(axes: "Axes", height: int, found: Line) -> None:
    standing, promise, measured, verdict = found
    color, line = (CLAIMED, "--") if standing == "claimed" else (CERTIFIED, "-")
    axes.barh(height, promise, height=0.34, color=color, alpha=0.28)
    ends = [height - 0.3, height + 0.3]
    axes.plot([promise] * 2, ends, color=color, linewidth=3, linestyle=line, label=standing)
    mark = {"color": MEASURED, "marker": ">", "markersize": 9, "linestyle": "none", "clip_on": False}
    axes.plot(measured, height, label="measured: at least this", **mark)
    if measured > promise:
        axes.plot([promise, measured], [height] * 2, color=color, linewidth=1, linestyle=":")
    if verdict == "refuted":
        words = {"textcoords": "offset points", "va": "center", "fontsize": 10, "fontweight": "bold"}
        axes.annotate(REFUTED, (max(measured, promise), height), (10, 0), **words)


def write_beside(finding: Finding, file: Path) -> Path:
    """Writes the finding with the release's hash, for `quietq serve`, if the release promises what was attacked."""
    release = open_release(file)
    difference = _difference(finding, release.certificate)
    if difference is not None:
        raise InvalidInput(f"The release {str(file)!r} promises something else than what was audited: {difference}.")
    flat = {name: value for name, value in finding.to_dict().items() if not isinstance(value, dict)}
    beside = audit_beside(file)
    write_json(beside, {"release": release.hash, **flat})
    return beside


def _difference(finding: Finding, certificate: Certificate) -> str | None:
    """In what the release's promise differs from the one that was attacked."""
    promise, hidden = finding.promise, relation_in_words(certificate.relation or {})
    for name in ("standing", "epsilon", "delta", "mu"):
        mine, theirs = getattr(promise, name), getattr(certificate, name)
        if mine != theirs:
            return f"its {name} is {theirs!r}, not {mine!r}"
    if finding.attack.relation != hidden:
        return f"it hides {hidden}, not {finding.attack.relation}"
    if not _is_of(finding.attack.method, certificate.method):
        return f"its method is {certificate.method!r}, not {finding.attack.method!r}"
    return None


def _is_of(attacked: str, method: str) -> bool:
    """Whether an attack was on this method; one on a training with a private reward is on any kind of such a reward."""
    kind = {"gaussian-process": "reward/path", "independent-gaussian": "reward/observed"}.get(method, method)
    if attacked in METHODS and kinds(attacked)[0]:
        return kind.startswith("reward/")
    return attacked in (kind, kind.partition("/")[0])
