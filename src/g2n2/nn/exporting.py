"""Networks for other programs: a `torch.export` program, or an ONNX file.

Both take four tensors, `adjacency` `[B, N, N]`, `nodes` `[B, N, F]`, `edges` `[B, N, N, E]` and the
boolean `mask` `[B, N]`, as `GraphBatch` holds them, and give what the network gives. They check
nothing: a batch goes through `model.checked` first, or comes from where that was done.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._dynamo.exc import UserError
from torch.export import Dim, ExportedProgram

from ..data.batch import GraphBatch
from ..errors import DataError, G2N2Error, LoweringError
from .model import GrammarGNN

INPUTS = ("adjacency", "nodes", "edges", "mask")
"""The names of the inputs, in order."""


class OnTensors(nn.Module):
    """`GrammarGNN.network` as the forward pass of a module."""

    def __init__(self, model: GrammarGNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, adjacency: Tensor, nodes: Tensor, edges: Tensor, mask: Tensor) -> Tensor:
        return self.model.network(adjacency, nodes, edges, mask)


def export_program(
    model: GrammarGNN, sizes: tuple[int, int] | GraphBatch = (2, 8), dynamic: bool = True
) -> ExportedProgram:
    """The network as a `torch.export` program.

    Args:
        model: Any network.
        sizes: How many graphs of how many nodes it takes, or a batch of that shape; means nothing
            where dynamic.
        dynamic: Whether the program takes any number of graphs and of nodes.

    Raises:
        DataError: A size below 1.
        LoweringError: torch cannot trace it for any size.
    """
    count, nodes = sizes.mask.shape if isinstance(sizes, GraphBatch) else sizes
    if min(count, nodes) < 1:
        raise DataError(f"a program takes at least 1 graph of 1 node, got {count} of {nodes}")
    if dynamic:
        count, nodes = 2, 8  # a size of 1 while tracing would be kept for good
    inputs, weight = model.plan.inputs, next(model.parameters())
    example = (  # no value is looked at while tracing
        weight.new_zeros(count, nodes, nodes),
        weight.new_zeros(count, nodes, inputs.node_features),
        weight.new_zeros(count, nodes, nodes, inputs.edge_features),
        torch.ones(count, nodes, dtype=torch.bool, device=weight.device),
    )
    shapes = _dynamic_shapes() if dynamic else None
    copies = bool(model.plan.marks or model.plan.scoped)
    try:
        return torch.export.export(
            OnTensors(model),
            example,
            dynamic_shapes=shapes,
            # torch cannot show that sizes of products of many copies are equal: the program checks
            prefer_deferred_runtime_asserts_over_guards=dynamic and copies,
        )
    except UserError as error:
        if dynamic and copies:
            raise LoweringError(
                "torch cannot make a program of these marked copies for any number of graphs and "
                "nodes: say dynamic=False and give sizes"
            ) from error
        raise


def export_onnx(
    model: GrammarGNN,
    path: str | Path,
    sizes: tuple[int, int] | GraphBatch = (2, 8),
    dynamic: bool = True,
) -> None:
    """Write the network as an ONNX file; the arguments are those of `export_program`.

    The inputs are called as in `INPUTS`, features of width 0 among them; the output is `output`.

    Raises:
        G2N2Error: The packages that write ONNX are not installed.
        LoweringError: The network uses something ONNX has no operator for.
        DataError: The file cannot be written.
    """
    if missing := [name for name in ("onnx", "onnxscript") if find_spec(name) is None]:
        raise G2N2Error(
            f"ONNX files need {' and '.join(missing)}: pip install 'g2n2[export]', or use "
            "export_program, which needs only PyTorch"
        )
    if (dtype := next(model.parameters()).dtype) not in (torch.float32, torch.float64):
        raise LoweringError(
            f"runtimes of ONNX take float32 or float64, not {dtype}: use model.float() first"
        )
    if not Path(path).parent.is_dir():
        raise DataError(f"cannot write {str(path)!r}: make the folder first")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the exporter itself, not about the network
            written = torch.onnx.export(
                export_program(model, sizes, dynamic),
                dynamo=True,
                input_names=list(INPUTS),
                output_names=["output"],
                dynamic_shapes=_dynamic_shapes() if dynamic else None,
                custom_translation_table=_exact_numbers(),
                verbose=False,
            )
        assert written is not None, "dynamo=True always returns a program"
        written.save(str(path))
    except torch.onnx.OnnxExporterError as error:
        missing = sorted(set(re.findall(r"op='(.+?)'", str(error))))
        raise LoweringError(
            f"ONNX has no operator for {', '.join(missing) or 'a part of this network'}; use "
            "export_program, or supports defined in the grammar"
        ) from error
    except OSError as error:
        raise DataError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def _exact_numbers() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Operators with a number in them, in the dtype asked for; the exporter's own use float32."""
    import onnx_ir
    from onnxscript import opset18 as onnx

    def scalar(value: float, dtype: int = 1, **unused: object) -> Any:
        return onnx.Constant(value=onnx_ir.tensor(np.array(value, onnx_ir.DataType(dtype).numpy())))

    def full(size: Any, fill_value: float, dtype: int = 1, **unused: object) -> Any:
        return onnx.Expand(scalar(fill_value, dtype), size)

    def full_like(like: Any, fill_value: float, dtype: int = -1, **unused: object) -> Any:
        return full(onnx.Shape(like), fill_value, like.dtype if dtype == -1 else dtype)

    def new_full(like: Any, size: Any, fill_value: float, dtype: int = -1, **unused: object) -> Any:
        return full(size, fill_value, like.dtype if dtype == -1 else dtype)

    aten = torch.ops.aten
    return {
        aten.scalar_tensor.default: scalar,
        aten.full.default: full,
        aten.full_like.default: full_like,
        aten.new_full.default: new_full,
    }


def _dynamic_shapes() -> tuple[dict[int, Dim], ...]:
    """Which axes of the four inputs may have any size."""
    graphs, nodes = Dim("graphs", min=1), Dim("nodes", min=1)
    pairs, columns = {0: graphs, 1: nodes, 2: nodes}, {0: graphs, 1: nodes}
    return pairs, columns, pairs, columns
