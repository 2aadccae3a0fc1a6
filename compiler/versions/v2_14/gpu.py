"""torch 2.14 keeps every private name of 2.13."""

from v2_13.gpu import *  # noqa: F403
