"""tlint: finds where torch.compile breaks, recompiles or falls back to eager, and proves it with the real compiler."""

__version__ = "0.1.0"
