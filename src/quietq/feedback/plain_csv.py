"""CSV that is read line by line: no bytes in one person's cells change how another person's line is read.

A reader that takes quotes across lines lets a cell that begins with `"` swallow the rows behind it. Here a line break
always ends a row, and every line is checked before it is parsed: a cell has no quote at all, or is `"`, then text in
which quotes are doubled, then `"`; and there are as many cells as in the header. A file with any other line is refused
by the line's number, never by what it says. Lines that pass mean the same to every parser, so Polars may split them;
then the rows must be as many as the lines. Cells stay text: what is a number is decided cell by cell.

A file has a header, cells separated by commas (tabs in .tsv), quoted with `"`, in UTF-8. The text that is checked is
the text that is parsed: blocks of whole lines, each behind a header of our own, so that nothing in a block is taken for
the header, for a byte-order mark or for the first bytes of a compressed file.
"""

import csv
import io
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl

from quietq.privacy.errors import InvalidInput

BLOCK = 1 << 24  # bytes read at a time
LONGEST = 1 << 20  # bytes in a line
SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t"}


def names(path: Path) -> list[str]:
    """The names of the columns, which are the first line."""
    with path.open("rb") as file:
        line = file.readline(LONGEST + 1).removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
    text = line.decode(errors="replace")
    if not text or any(c == "\ufffd" or (unicodedata.category(c) == "Cc" and c != "\t") for c in text):
        raise InvalidInput(
            f"{str(path)!r} could not be read: its first line must name the columns, in plain UTF-8 text; "
            "unpack a file that is compressed."
        )
    _check(path, pl.Series([text]), 1, None)
    return next(csv.reader([text], delimiter=_separator(path), strict=True))


def pieces(path: Path, columns: Sequence[str]) -> Iterator[Callable[[], pl.DataFrame]]:
    """Functions that check some lines each, and give these columns of them as text."""
    header = names(path)
    with path.open("rb") as file:
        file.readline()
        line = 2
        while block := file.read(BLOCK) + file.readline(LONGEST + 1):
            yield partial(_parse, path, block, line, header, columns)
            line += block.count(b"\n")


def _separator(path: Path) -> str:
    return SEPARATORS[path.suffix.lower()]


def _parse(path: Path, block: bytes, first: int, header: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    text = block.replace(b"\r\n", b"\n").decode(errors="replace").removesuffix("\n")
    lines = pl.Series([text]).str.split("\n").explode()
    _check(path, lines, first, len(header))
    lines = lines.filter(lines != "")
    rows = str(lines.str.join("\n").item())
    separator = _separator(path)
    try:
        frame = pl.read_csv(
            io.BytesIO(f"{separator.join(map(str, range(len(header))))}\n{rows}".encode()),
            separator=separator,
            quote_char='"' if '"' in rows else None,
            infer_schema=False,
        )
    except pl.exceptions.PolarsError:
        frame = pl.DataFrame()  # the error may quote a cell
    if frame.shape != (len(lines), len(header)):
        raise InvalidInput(f"The lines of {str(path)!r} from {first} on could not be read as CSV.")
    return frame.select(frame.to_series(header.index(name)).alias(name) for name in columns)


def _check(path: Path, lines: pl.Series, first: int, cells: int | None) -> None:
    """Refuses the first line that is not plain CSV with this number of cells, unless it is empty."""
    separator = _separator(path)
    quoted = lines.str.contains('"', literal=True)
    wrong = {f"has more than {LONGEST} bytes": lines.str.len_bytes() > LONGEST}
    bare = lines
    if quoted.any():
        cell = f'([^"{separator}]*|"([^"]|"")*")'
        unquoted = ~lines.str.contains(f"^{cell}({separator}{cell})*$")
        wrong = {"has a quote that does not open or close its cell": quoted & unquoted} | wrong
        bare = lines.str.replace_all('"[^"]*"', "")  # what is between quotes does not separate
    if cells is not None:
        other = bare.str.count_matches(separator, literal=True) != cells - 1
        wrong[f"does not have {cells} cells, as many as the first line"] = other & (lines != "")
    found = {what: bad.arg_max() or 0 for what, bad in wrong.items() if bad.any()}
    if found:
        what = min(found, key=lambda one: found[one])
        raise InvalidInput(
            f"Line {first + found[what]} of {str(path)!r} {what}: every row must be one line, with quotes around a "
            "cell that holds a separator or a quote, and quotes in it doubled; nothing was spent."
        )
