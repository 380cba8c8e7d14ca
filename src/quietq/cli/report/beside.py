"""What an audit found, laid beside the release whose promise it attacked, for `quietq serve` to show."""

import json
import os
from pathlib import Path

from quietq.audit.finding import Finding
from quietq.cli.options import kinds
from quietq.privacy.certificate import Certificate
from quietq.privacy.errors import InvalidInput
from quietq.privacy.words import relation_in_words
from quietq.publishing import open_release
from quietq.publishing.server.audits import audit_beside
from quietq.registry import METHODS


def write_beside(finding: Finding, file: Path) -> Path:
    """Writes the finding with the release's hash, if the release promises what was attacked."""
    release = open_release(file)
    difference = _difference(finding, release.certificate)
    if difference is not None:
        raise InvalidInput(f"The release {str(file)!r} promises something else than what was audited: {difference}.")
    flat = {name: value for name, value in finding.to_dict().items() if not isinstance(value, dict)}
    beside = audit_beside(file)
    unfinished = beside.with_name(f".{beside.name}.part")
    unfinished.write_text(json.dumps({"release": release.hash, **flat}, indent=2, allow_nan=False) + "\n")
    os.replace(unfinished, beside)
    return beside


def _difference(finding: Finding, certificate: Certificate) -> str | None:
    """In what the release's promise differs from the one that was attacked."""
    promise = finding.promise
    for name in ("standing", "epsilon", "delta", "mu"):
        mine, theirs = getattr(promise, name), getattr(certificate, name)
        if mine != theirs:
            return f"its {name} is {theirs!r}, not {mine!r}"
    if finding.attack.relation != relation_in_words(certificate.relation or {}):
        return f"it hides {relation_in_words(certificate.relation or {})}, not {finding.attack.relation}"
    if not _is_of(finding.attack.method, certificate.method):
        return f"its method is {certificate.method!r}, not {finding.attack.method!r}"
    return None


def _is_of(attacked: str, method: str) -> bool:
    """Whether an attack was on this method; one on a training with a private reward is on any kind of such a reward."""
    kind = {"gaussian-process": "reward/path", "independent-gaussian": "reward/observed"}.get(method, method)
    if attacked in METHODS and kinds(attacked)[0]:
        return kind.startswith("reward/")
    return attacked in (kind, kind.partition("/")[0])
