"""What differs from torch 2.12 up to torch 2.11: a setting's name. torch 2.8 lacks another, which tracing needs."""

from v2_12 import gpu as later
from v2_12.gpu import *  # noqa: F403

later.INDUCTOR["use_static_cuda_launcher"] = later.INDUCTOR.pop("use_static_triton_launcher")
