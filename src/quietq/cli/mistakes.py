"""What was typed wrongly, in one sentence that says what would be right."""

import re
import sys
from typing import Any

from quietq.privacy.checks import did_you_mean, shown


def usage_sentence(error: Any) -> str:
    """Of one of typer's usage errors, which have no public base class; what they lack is added."""
    sentence, context = " ".join(error.format_message().split()), getattr(error, "ctx", None)
    param, command = getattr(error, "param", None), "quietq" if context is None else context.command_path
    if options := getattr(error, "option_name", None) if hasattr(error, "possibilities") else None:
        near = did_you_mean(options, [] if context is None else _names(context))
        return f"No such option: {options}.{near or f' `{command} --help` lists them.'}"
    if sentence.startswith("No such command") and "Did you mean" not in sentence:
        return f"{sentence} `{command} --help` lists them."
    if sentence.startswith("Missing argument") and (wanted := getattr(param, "help", None)):
        return f"{sentence.rstrip('.')}: {wanted}"
    if param is None or not sentence.startswith("Invalid value"):
        return sentence
    value, name = find_offender(param), max(param.opts, key=len)
    if choices := re.search(r" is not one of (.*?)\.?$", sentence):
        known = re.findall(r"'(.*?)'", choices[1])
        return f"{name} must be one of {', '.join(known)}, not {shown(value)}.{did_you_mean(value, known)}"
    for word, right in (("integer", "a whole number"), ("number", "a number"), ("float", "a number")):
        if value and word in sentence:
            return f"{name} must be {right}, not {shown(value)}."
    return f"{sentence.rstrip('.')}: {shown(value)}." if value else sentence


def find_offender(param: Any) -> str:
    """The value that could not be read, which typer's own message may leave out; the last one given is the one read."""
    found = ""
    for place, word in enumerate(sys.argv):
        name, equals, value = word.partition("=")
        if name in param.opts:
            found = value if equals else " ".join(sys.argv[place + 1 : place + 2])
    return found


def _names(context: Any) -> list[str]:
    """All options of the command that was typed."""
    return [name for param in context.command.get_params(context) for name in (*param.opts, *param.secondary_opts)]
