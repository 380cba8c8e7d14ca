"""CSV that is read line by line: no bytes in one person's cells change how another person's line is read.

A reader that takes quotes across lines lets a cell that begins with `"` swallow the rows behind it. Here a line break
always ends a row, and every line is checked before it is parsed: a cell has no quote at all, or is `"`, then text in
which quotes are doubled, then `"`; and there are as many cells as in the header. A file with any other line is refused
by the line's number, never by what it says. Lines that pass mean the same to every parser, so Polars may split them;
then the rows must be as many as the lines. Cells stay text: what is a number is decided cell by cell.

The bytes that are checked are the bytes that are parsed: blocks of whole lines, each behind a header of our own, so
that nothing in a block is taken for the header, for a byte-order mark or for the first bytes of a compressed file.
"""

import csv
import io
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from quietq.privacy.errors import InvalidInput

BLOCK = 1 << 24  # bytes read at a time
LONGEST = 1 << 20  # bytes in a line
SEPARATORS = {".csv": ",", ".txt": ",", ".tsv": "\t"}
_NEW_LINE, _QUOTE = 10, 34


@dataclass(frozen=True)
class PlainCsv:
    """A file with a header, cells separated by commas (tabs in .tsv), quoted with `"`, in UTF-8."""

    path: Path

    def names(self) -> list[str]:
        with self.path.open("rb") as file:
            return self._names(next(self._blocks(file))[0])

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """These columns as text, some rows at a time."""
        with self.path.open("rb") as file:
            blocks = self._blocks(file)
            names = self._names(next(blocks)[0])
            for block, first in blocks:
                frame = self._parse(block, first, len(names))
                yield frame.select(frame.to_series(names.index(name)).alias(name) for name in columns)

    @property
    def _separator(self) -> str:
        return SEPARATORS[self.path.suffix.lower()]

    def _blocks(self, file: io.BufferedReader) -> Iterator[tuple[bytes, int]]:
        """The first line, then whole lines, each with a line feed at its end; and the number of their first."""
        head = file.readline(LONGEST + 1)
        if len(head) > LONGEST:
            raise self._refusal(1, _TOO_LONG)
        yield head.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n") + b"\n", 1
        line, rest = 2, b""
        while block := file.read(BLOCK):
            end = block.rfind(b"\n") + 1
            if end:
                whole = (rest + block[:end]).replace(b"\r\n", b"\n")
                yield whole, line
                line, rest = line + whole.count(b"\n"), b""
            rest += block[end:]
            if len(rest) > LONGEST + 1:
                raise self._refusal(line, _TOO_LONG)
        if rest:
            yield rest + b"\n", line

    def _names(self, line: bytes) -> list[str]:
        text = line[:-1].decode(errors="replace")
        if not text or any(c == "\ufffd" or (unicodedata.category(c) == "Cc" and c != "\t") for c in text):
            raise InvalidInput(
                f"{str(self.path)!r} could not be read: its first line must name the columns, in plain UTF-8 text; "
                "unpack a file that is compressed."
            )
        self._check(np.frombuffer(line, np.uint8), 1, None)
        return next(csv.reader([text], delimiter=self._separator, strict=True))

    def _parse(self, block: bytes, first: int, columns: int) -> pl.DataFrame:
        array = np.frombuffer(block, np.uint8)
        ends = self._check(array, first, columns)
        blank = ends[np.diff(ends, prepend=-1) == 1]
        if len(blank):
            block = np.delete(array, blank).tobytes()
        try:
            frame = pl.read_csv(
                io.BytesIO(self._separator.join(map(str, range(columns))).encode() + b"\n" + block),
                separator=self._separator,
                quote_char='"' if b'"' in block else None,
                infer_schema=False,
                encoding="utf8-lossy",
            )
        except pl.exceptions.PolarsError:
            frame = None  # the error may quote a cell
        if frame is None or frame.shape != (len(ends) - len(blank), columns):
            last = first + len(ends) - 1
            raise InvalidInput(f"Lines {first} to {last} of {str(self.path)!r} could not be read as CSV.")
        return frame

    def _check(self, block: np.ndarray, first: int, columns: int | None) -> np.ndarray:
        """Where lines end, if every one of them is plain CSV with so many cells, or is empty."""
        separator = ord(self._separator)
        ends = np.flatnonzero(block == _NEW_LINE)
        separators = np.flatnonzero(block == separator)
        quotes = np.flatnonzero(block == _QUOTE)
        found = [(_badly_quoted(block, ends, quotes, separator), "has a quote that does not open or close its cell")]
        if len(quotes):  # behind an odd number of quotes it does not separate
            separators = separators[np.searchsorted(quotes, separators) % 2 == 0]
        if columns is not None:
            many = f"does not have {columns} cells, as many as the first line"
            found += [(_ragged(ends, separators, columns - 1), many), (_too_long(ends), _TOO_LONG)]
        bad = [(line, what) for line, what in found if line is not None]
        if bad:
            line, what = min(bad, key=lambda pair: pair[0])
            raise self._refusal(first + line, what)
        return ends

    def _refusal(self, line: int, what: str) -> InvalidInput:
        return InvalidInput(
            f"Line {line} of {str(self.path)!r} {what}: every row must be one line, with quotes around a cell that "
            "holds a separator or a quote, and quotes in it doubled; nothing was spent."
        )


_TOO_LONG = f"has more than {LONGEST} bytes"


def _badly_quoted(block: np.ndarray, ends: np.ndarray, quotes: np.ndarray, separator: int) -> int | None:
    """The first line whose quotes are no pairs, or whose pairs do not begin and end at the edge of a cell.

    A doubled quote is the end of one pair and the beginning of the next.
    """
    if not len(quotes):
        return None
    line = np.searchsorted(ends, quotes)
    if len(quotes) % 2:  # the last one has no partner
        quotes, line = np.append(quotes, len(block) - 1), np.append(line, len(ends))
    opening, closing = quotes[::2], quotes[1::2]
    before = np.where(opening == 0, _NEW_LINE, block[opening - 1])
    after = block[np.minimum(closing + 1, len(block) - 1)]
    edges = [_NEW_LINE, _QUOTE, separator]
    bad = (line[::2] != line[1::2]) | ~np.isin(before, edges) | ~np.isin(after, edges)
    return int(line[::2][np.argmax(bad)]) if bad.any() else None


def _ragged(ends: np.ndarray, separators: np.ndarray, needed: int) -> int | None:
    """The first line that is not empty and has another number of separators."""
    if needed and len(separators) == needed * len(ends):  # as a rule all of them are good
        table = separators.reshape(-1, needed)
        if (table[1:, 0] > ends[:-1]).all() and (table[:, -1] < ends).all():
            return None
    count = np.diff(np.searchsorted(separators, ends), prepend=0)
    bad = (count != needed) & (np.diff(ends, prepend=-1) > 1)
    return int(np.argmax(bad)) if bad.any() else None


def _too_long(ends: np.ndarray) -> int | None:
    bad = np.diff(ends, prepend=-1) > LONGEST + 1
    return int(np.argmax(bad)) if bad.any() else None
