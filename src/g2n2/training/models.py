"""The best weights of a run: in and out of its folder."""

from __future__ import annotations

from torch import nn

from ..errors import DataError
from .checkpoint import write_announced
from .config import RunConfig
from .manifest import Manifest, refuse_altered
from .run_folder import BEST, RunFolder
from .setup import Parts, make_model


def save_best(files: RunFolder, model: nn.Module) -> None:
    """Write the weights: a grammar's network as a file that stands alone, a baseline's bare."""
    from ..nn.model import GrammarGNN

    if isinstance(model, GrammarGNN):
        from ..nn.files import to_bytes

        content = to_bytes(model)
    else:
        from safetensors.torch import save

        content = save({k: v.contiguous().cpu() for k, v in model.state_dict().items()})
    write_announced(files.path / BEST, content)


def refuse_lost_best(files: RunFolder) -> None:
    """Refuse a run without best weights, saying whether it never had any.

    Raises:
        DataError: There is no file of them.
    """
    if (files.path / BEST).is_file():
        return
    manifest = Manifest.read(files.path)
    if (manifest is None and files.finished_epochs()) or (manifest and BEST in manifest.files):
        raise DataError(
            f"{files.path} has lost {BEST}, its best weights: restore it from a copy, or train "
            f"again: g2n2 train --config {files.path / 'config.json'}"
        )
    raise DataError(
        f"{files.path} has no {BEST}: no epoch was finished; go on: g2n2 train --resume "
        f"{files.path}"
    )


def load_best(files: RunFolder, config: RunConfig, parts: Parts | None) -> nn.Module:
    """The network with the best weights of a run; a baseline is made anew, which needs the parts.

    Raises:
        DataError: There are none, or they are damaged.
    """
    path = files.path / BEST
    refuse_lost_best(files)
    refuse_altered(files.path, BEST, path.read_bytes())
    from ..nn.model import GrammarGNN

    model = make_model(config, parts) if config.baseline and parts is not None else None
    if model is None or isinstance(model, GrammarGNN):
        from ..nn.files import load

        return load(path)
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from ..nn.files import refuse_endless

    try:
        tensors = load_file(path)
        refuse_endless(
            path, {k: v for k, v in tensors.items() if not k.endswith("num_batches_tracked")}
        )
        model.load_state_dict(tensors, assign=True)
    except (SafetensorError, RuntimeError) as error:
        raise DataError(f"{path} is damaged: {str(error).splitlines()[0]}") from None
    return model
