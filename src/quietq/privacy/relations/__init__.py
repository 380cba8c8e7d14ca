"""Neighbouring relations: which two reward functions, or which two sets of what people gave, must look alike.

All are of the kind "replace", but for those of the weaker kind "presence", which are asked for by their name: one
person against the neutral middle, half as far apart.
"""

from quietq.privacy.relations.balls import (
    LipschitzBall as LipschitzBall,
    LipschitzPresence as LipschitzPresence,
    RkhsBall as RkhsBall,
    RkhsPresence as RkhsPresence,
    SupBall as SupBall,
    people as people,
)
from quietq.privacy.relations.one_person import (
    Arrivals as Arrivals,
    OnePerson as OnePerson,
    Trajectories as Trajectories,
)
from quietq.privacy.relations.relation import (
    RELATIONS as RELATIONS,
    NoiseKernel as NoiseKernel,
    Presence as Presence,
    Relation as Relation,
    guessed_in_words as guessed_in_words,
    is_presence as is_presence,
    one_of_many as one_of_many,
    relation_in_words as relation_in_words,
    sup_radius as sup_radius,
    unit_of as unit_of,
)
