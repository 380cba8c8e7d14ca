"""People's data, clipped as it is read: one file per kind of feedback, and the reader that all kinds share."""

from quietq.feedback.comparisons import Comparisons as Comparisons
from quietq.feedback.ratings import Ratings as Ratings
from quietq.feedback.sessions import Sessions as Sessions

FEEDBACK: dict[str, type[Ratings | Comparisons | Sessions]] = {
    "ratings": Ratings,
    "comparisons": Comparisons,
    "sessions": Sessions,
}
"""The kinds of feedback by name."""
