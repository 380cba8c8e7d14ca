"""`quietq calibrate`, `limits` and `worlds`: what a budget costs and what there is to spend it on."""

import dataclasses
import math
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

import quietq as qq
from quietq.cli.app import AsJson, Delta, Epsilon, High, Low, People, Slope, answer, app, number, show_table

if TYPE_CHECKING:
    from quietq.mechanisms.mechanism import Task

SENTENCES = {
    "mu": "Gaussian-DP parameter that the budget allows",
    "radius": "most that one person moves the mean reward",
    "lipschitz": "most that one person moves its slope",
    "beta": "roughness of the noise that fits best",
    "sensitivity": "most that one person moves the reward, in the noise's own norm",
    "sigma": "standard deviation of the noise, per release",
    "error": "the same about the noise's own mean, which changes no policy unless episodes can end early",
}


@app.command()
def calibrate(
    epsilon: Epsilon,
    delta: Delta,
    people: People,
    low: Low,
    high: High,
    slope: Slope,
    rounds: Annotated[int, typer.Option(help="Releases that share the budget.")] = 1,
    level: Annotated[
        bool, typer.Option("--level", help="Episodes can end early, so that a constant counts: less noise in it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell how much noise a reward needs as a path: mu, sensitivity, sigma, and what other theorems would charge.

    It is what `quietq reward --noise path` and `privatise` draw: with the least noise about its mean or, with --level,
    with the least noise. What they take by default where it is less is told too.
    """
    from quietq.mechanisms.mechanism import Task
    from quietq.mechanisms.privatise import choose
    from quietq.paper.theorem import compare
    from quietq.privacy import PrivacyWarning, weak_promise
    from quietq.privacy.words import plural

    budget = qq.Budget(epsilon, delta)
    relation = qq.people(people, low=low, high=high, slope=slope)
    charges = compare(budget, rounds)
    task = Task(relation, budget, slope=slope, largest=max(abs(low), abs(high)), level=level, fewest=True)
    mechanism: Any = choose("path", task)
    if weak := weak_promise(budget, people):
        warnings.warn(weak, PrivacyWarning, stacklevel=1)
    sensitivity, share = mechanism.sensitivity, math.sqrt(rounds)
    result = {
        "epsilon": budget.epsilon, "delta": budget.delta, "mu": budget.mu, "people": people,
        "radius": relation.radius, "lipschitz": relation.lipschitz, "beta": mechanism.kernel.beta,
        "sensitivity": sensitivity, "rounds": rounds, "level": level, "sigma": mechanism.sigma * share,
        "error": mechanism.expected_error() * share, "auto": _default(task) if rounds == 1 else None,
        "comparison": [{**dataclasses.asdict(charge), "protects": charge.protects} for charge in charges],
        "warnings": [weak] if weak else [],
    }  # fmt: skip
    if as_json:
        return answer(True, result)
    counts = f"{plural(people, 'person', 'people')}, {plural(rounds, 'release')}"
    rows = [(name, f"{result[name]:.5g}", sentence) for name, sentence in SENTENCES.items()]
    title = f"Noise for ({budget.epsilon:g}, {budget.delta:g})-DP, {counts}"
    show_table(title, ("", "value", "what it is"), rows, ("", "what it is"))
    if result["auto"] is not None and result["auto"]["noise"] != "path":
        noise, pieces, error = result["auto"].values()
        print(f"Noise {noise!r} with {pieces} pieces is less: error {error:.5g}, lines between knots included.")
        print("'auto' takes it.")
    rows = [
        (
            charge.theorem,
            "does not apply" if charge.epsilon is None else f"epsilon {charge.epsilon:.4g}",
            number(None if charge.noise_multiplier is None else charge.noise_multiplier * sensitivity),
            number(charge.ratio),
        )
        for charge in charges
    ]
    headings = ("theorem", "charges for this noise", "noise it asks for", "ratio")
    show_table("The same promise by other theorems", headings, rows, ("theorem",))
    if any(charge.epsilon is None or charge.ratio is None for charge in charges):
        print("Does not apply: the classical theorem and those built on it need an epsilon below 1 in each release.")
    if any(charge.protects is False for charge in charges):
        print("A ratio below 1 means that the theorem's noise does not protect at this budget.")


def _default(task: "Task") -> dict[str, object]:
    """What a release takes where no noise was asked for."""
    from quietq.mechanisms.privatise import choose

    taken = choose("auto", task)
    return {"noise": taken.name, "pieces": getattr(taken, "pieces", None), "error": taken.expected_error()}


@app.command()
def limits(
    epsilon: Epsilon,
    delta: Delta,
    radius: Annotated[float, typer.Option(help="Most that neighbouring rewards differ, e.g. (high - low)/people.")],
    distance: Annotated[float, typer.Option(help="How far two rewards with opposite preferences are apart.")],
    score: Annotated[float, typer.Option(help="Score (0 worst, 1 best policy) that you hope for.")] = 0.9,
    width: Annotated[float | None, typer.Option(help="Range of one person's reward; default: the distance.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what any private algorithm can reach at all, and how many people a score takes at the least."""
    from quietq.privacy import cap_any_dp, cap_gdp, people_needed, steps_between
    from quietq.privacy.limits import guess_right, of_hundred

    budget = qq.Budget(epsilon, delta)
    steps = steps_between(distance, radius)
    width = distance if width is None else width
    needed = {"distance": distance, "width": width}
    gdp = None if budget.is_pure else cap_gdp(budget.mu, steps)
    people_gdp = None if budget.is_pure else people_needed(score, budget, **needed, gaussian=True)
    any_dp = cap_any_dp(budget, steps)
    people_any_dp = people_needed(score, budget, **needed, gaussian=False)
    if as_json:
        record = {"epsilon": budget.epsilon, "delta": budget.delta, "radius": radius, **needed, "steps": steps}
        record |= {"cap_gdp": gdp, "cap_any_dp": any_dp, "score": score}
        return answer(True, record | {"people_gdp": people_gdp, "people_any_dp": people_any_dp})
    rows = [
        (kind, ">0.9999" if cap is not None and cap > 0.9999 else number(cap), people or "-")
        for kind, cap, people in (("Gaussian noise", gdp, people_gdp), ("any", any_dp, people_any_dp))
    ]
    title = f"Best possible at ({epsilon:g}, {delta:g})-DP, radius {radius:g}, distance {distance:g}"
    headings = ("algorithms", "score under both rewards, at most", f"people for a score of {score:g}, at least")
    show_table(title, headings, rows, ("algorithms",))
    print(f"The people follow from score, distance and width ({width:g}), and do not depend on the radius.")
    if not budget.is_pure:
        right = [of_hundred(guess_right(epsilon, delta, mu)) for mu in (budget.mu, None)]
        print(
            f"They do not protect alike: a guesser is right in at most {right[0]} of 100 cases with Gaussian noise, in "
            f"{right[1]} with any."
        )


@app.command()
def worlds(
    people: Annotated[int, typer.Option(help="So many people stand behind the reward, in what is promised.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the worlds to train in, and what must stay hidden there; any Gymnasium id will do too."""
    from quietq.privacy.words import plural
    from quietq.worlds import WORLDS, find_world
    from quietq.worlds.environment import gymnasium_id

    records, lines = [], []
    for name in WORLDS:
        world = find_world(name)
        dimension, actions, relation = world.box.dimension, list(world.action_names), str(world.relation(people))
        records.append({"name": name, "gymnasium_id": gymnasium_id(name), "dimension": dimension, "actions": actions,
                        "relation": relation})  # fmt: skip
        lines.append(f"{name} ({gymnasium_id(name)}): {plural(dimension, 'dimension')}; actions {', '.join(actions)}")
        lines.append(f"    promised to look alike: {relation}")
    answer(as_json, {"worlds": records}, *lines)
