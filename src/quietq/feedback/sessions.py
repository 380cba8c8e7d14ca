"""Sessions are people's logged episodes: states, actions, rewards and ends, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from quietq.feedback.feedback import (
    Engine,
    EngineName,
    Feedback,
    Items,
    box_of,
    columns_of,
    is_list,
    named,
    numbers_in,
    read_people,
)
from quietq.feedback.spaces import Spaces
from quietq.noise.box import Domain
from quietq.privacy.account import Once
from quietq.privacy.checks import ends, positive
from quietq.privacy.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sessions(Feedback):
    """People's sessions: any number of episodes each. It is the secret itself: make it private first.

    >>> import polars
    >>> rows = polars.DataFrame({"who": ["a", "a", "b", "b"], "x": [0.0, 0.5, 0.5, 1.0], "go": [1, None, 0, None]})
    >>> Sessions.read(rows, person="who", state=["x"], action="go", actions=[0, 1], box=(0, 1), people=2)
    Sessions(people=2, box=[0, 1], actions=2)
    """

    spaces: Spaces  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    columns: tuple[str, ...]
    """What statistics see of each transition."""
    once: Once = field(default_factory=lambda: Once("What these people did in their sessions"))

    @classmethod
    def read(
        cls,
        source: object,
        *,
        person: str = "person",
        episode: str | None = None,
        step: str | tuple[str, float | None] | None = None,
        state: str | Sequence[str] | None = None,
        next_state: str | Sequence[str] | None = None,
        action: str | Sequence[str] | None = None,
        actions: Items | Domain,
        reward: str | None = None,
        low: float = 0.0,
        high: float = 1.0,
        end: str | None = None,
        cut: str | None = None,
        propensity: str | None = None,
        box: Domain,
        people: int,
        engine: EngineName | Engine = "local",
    ) -> "Sessions":
        """Reads sessions. Columns are named; all else is public and declared by you, never taken from the rows.

        A transition of which something is missing is left out, and the rows around it are not joined into another one;
        but a row without a person, an episode or a step is as if it were not there.

        Args:
            source: A data frame (pandas or Polars), a CSV or Parquet file, several of them, or a Minari data set. Of
                the last only `person` has to be named, as its infos or its episodes' metadata call it.
            person: The column that says who.
            episode: The column that distinguishes a person's episodes; without it all rows of a person are one.
            step: The column that orders the rows of an episode, which grows by 1 from one to the next; or that column
                and by how much it grows, ("hour", 4), or ("hour", None) for any. Without it, rows are in order.
            state: The columns of the state.
            next_state: The columns of the next state. Without them it is in the episode's next row; then the last row
                holds the final state, and no action. [] leaves next states out: policies can be evaluated on such
                sessions, but no world learned from them.
            action: The column that says what was done, or one for each number of it.
            actions: The public list of actions, [0, 1] or ["left", "right"], or a file with a name in each line. Where
                actions are numbers, a list of pairs [(low, high), ...]: one for each column, or one for all of them.
            reward: The column that says how good that was.
            low: The smallest reward of a step; what is below counts as this.
            high: The largest reward of a step.
            end: The column that is 1 where an episode came to an end by itself.
            cut: The column that is 1 where it was cut off, by a time limit. Without it, an episode's last step is a cut
                unless it is an end.
            propensity: The column of the probability, or density, with which the action was chosen.
            box: A pair (low, high) for each coordinate of the state, or one for all of them; what lies outside is
                clipped.
            people: How many people there are. Those without a whole step are neutral.
            engine: Where people are added up: "local" or "ray".

        """
        from quietq.feedback.rows import is_minari, minari_columns, minari_frames
        from quietq.feedback.schema import Category, Field, Group, Number, flag
        from quietq.feedback.transitions import Counts, Steps

        if is_minari(source):
            columns = minari_columns(source, numbers=not is_list(actions, str | int))
            declared = {"actions": actions, "low": low, "high": high, "box": box, "people": people, "engine": engine}
            return cls.read(minari_frames(source, person), person=person, **columns, **declared)
        low, high = ends(low, high)
        fields: dict[str, Field] = {} if episode is None else {"episode": Group(episode, "episode")}
        step, every = step if isinstance(step, tuple) else (step, 1.0)
        if step is not None:
            fields["step"] = Number(step, "step")
        states, nexts = columns_of("state", state), columns_of("next_state", next_state or [])
        region = box_of("box", box, "state", len(states))
        fields |= numbers_in("s", "state", states, region)
        if nexts:
            if len(nexts) != len(states):
                raise InvalidInput(f"state has {len(states)}, but next_state has {len(nexts)} columns.")
            fields |= numbers_in("n", "next_state", nexts, region)
        acts, number, acted = columns_of("action", action), None, None
        if is_list(actions, str | int):
            if not isinstance(action, str):
                raise InvalidInput(f"action must be the one column that names one of the actions, not {action!r}.")
            acts = named("actions", actions)
            number = len(acts)
            fields["action"] = Category(action, "action", acts, optional=True)
        else:
            acted = box_of("actions", actions, "action", len(acts))
            fields |= numbers_in("a", "action", acts, acted)
        if reward is not None:
            fields["reward"] = Number(reward, "reward", low, high, clips=True, scales=True, optional=True)
        if propensity is not None:
            fields["propensity"] = Number(propensity, "propensity", 0.0, optional=True)
        fields |= {name: flag(one, name) for name, one in (("end", end), ("cut", cut)) if one is not None}
        known = {"next": next_state is None or bool(nexts), "reward": reward is not None, "end": end is not None}
        told = tuple(name for name, there in known.items() if there)
        spaces = Spaces(region, number, acted, low, high, told, tuple(states), tuple(acts))
        every = None if every is None else positive("every", every)
        schema = Steps("sessions", person, fields, in_order=step is None, pairs=next_state is None, every=every)
        read = read_people(source, schema, Counts(schema.pairs), people, keep=True, engine=engine)
        return cls(box=region, spaces=spaces, columns=schema.transition, **read)

    def __repr__(self) -> str:
        actions = self.spaces.actions or self.spaces.action_box
        return f"Sessions(people={self.people}, box={self.box}, actions={actions})"
