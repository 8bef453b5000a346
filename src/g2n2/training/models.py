"""The best weights of a run: in and out of its folder."""

from __future__ import annotations

from torch import nn

from ..errors import DataError
from .building import Parts, make_model
from .config import RunConfig
from .run_folder import BEST, RunFolder


def save_best(files: RunFolder, model: nn.Module) -> None:
    """Write the weights: a grammar's network as a file that stands alone, a baseline's bare."""
    from ..nn.model import GrammarGNN

    path = files.path / BEST
    if isinstance(model, GrammarGNN):
        from ..nn.files import save

        save(model, path)
        return
    from safetensors.torch import save as to_bytes

    from .checkpoints import write_whole

    content = to_bytes({k: v.contiguous().cpu() for k, v in model.state_dict().items()})
    write_whole(path, content)


def load_best(files: RunFolder, config: RunConfig, parts: Parts | None) -> nn.Module:
    """The network with the best weights of a run; a baseline is made anew, which needs the parts.

    Raises:
        DataError: There are none, or they are damaged.
    """
    path = files.path / BEST
    if not path.is_file():
        raise DataError(f"{files.path} has no {BEST}: no epoch was finished; resume the run")
    from ..nn.model import GrammarGNN

    model = make_model(config, parts) if config.baseline and parts is not None else None
    if model is None or isinstance(model, GrammarGNN):
        from ..nn.files import load

        return load(path)
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        model.load_state_dict(load_file(path), assign=True)
    except (SafetensorError, RuntimeError) as error:
        raise DataError(f"{path} is damaged: {str(error).splitlines()[0]}") from None
    return model
