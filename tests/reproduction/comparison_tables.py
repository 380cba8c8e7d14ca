"""Made-up tables for the tests of the comparison at equal promises."""


def table(**by_method):
    """Rows of made-up scores on the walk: {method: {people: scores}}."""
    return [
        {"world": "walk", "method": method, "noise": None, "people": people, "draw": draw, "score": score}
        for method, by in by_method.items()
        for people, scores in by.items()
        for draw, score in enumerate(scores)
    ]
