"""What changed in Dynamo's private names from torch 2.13 to 2.14: none that the worker uses."""

from v2_13.adapter import *  # noqa: F403
