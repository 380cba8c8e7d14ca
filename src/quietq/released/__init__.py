"""What can be published: functions, models, networks, worlds and policies made of released numbers, and their file."""

from quietq.released.private_function import (
    PrivateFunction as PrivateFunction,
    PrivateKnots as PrivateKnots,
    PrivateTable as PrivateTable,
)
from quietq.released.private_network import PrivateNetwork as PrivateNetwork, PrivatePolicy as PrivatePolicy
from quietq.released.private_world import PrivateWorld as PrivateWorld
from quietq.released.publishable import InvalidRelease as InvalidRelease
from quietq.released.release_file import OpenedFile as OpenedFile, load as load, open_release as open_release
from quietq.released.world_model import WorldModel as WorldModel
