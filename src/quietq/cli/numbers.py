"""Numbers in tables."""


def number(value: float | None) -> str:
    """Four digits, or a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"
