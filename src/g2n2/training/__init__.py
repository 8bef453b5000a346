"""From a GraphSet to a trained model: recipes, the loop, checkpoints, run folders, predictions.

`train` goes from graphs and plain arguments to a `Run`; `session.train_config` is the same for a
`RunConfig`, with everything that can be watched.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import RunConfig as RunConfig
    from .run import Run as Run
    from .session import train as train
    from .session import train_config as train_config

_HOMES = {"Run": "run", "RunConfig": "config", "train": "session", "train_config": "session"}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'g2n2.training' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
