"""TwoDGrid30: learn low-, high- and band-pass filters of an image on a 30×30 grid.

The targets are 2-D Fourier filters of a whole 95×95 picture, cut to 30×30 afterwards. They are no
functions of the grid's Laplacian, so no network of the graph alone reaches R² = 1 on all three.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from ..files import DataFile
from ..graph_set import GraphSet, Target, plain_graphs

FILTERS = ("low", "high", "band")
_FILE = DataFile(
    *("filtering", "TwoDGrid30.mat", "filtering"),
    "8e3fc2c8fb115f40d3b03d5d38d07e724f2a22100d2a8982dbce3ba1d4613e40",
    hint="It is in dataset/TwoDGrid30/raw of https://github.com/balcilar/gnn-matlang.",
)
_SPLITS = {"train": [0], "test": [1], "validation": [2]}


def load_filtering(data: str | Path | None = None) -> GraphSet:
    """Load three images on the 30×30 grid, one to train, one to validate, one to test on.

    Node r + 30 c is the pixel in row r, column c. Targets are NaN where a node is not scored, on a
    border of two pixels.
    """
    path, content = _FILE.read(data)
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise DataError("TwoDGrid30.mat needs scipy: pip install 'g2n2[train]'") from error
    arrays: dict[str, Any] = loadmat(io.BytesIO(content))
    columns = arrays["F"].T
    images = columns[:12].reshape(3, 4, -1)  # input, band, low, high
    scored = columns[12] == 1
    targets = np.where(scored[None, :, None], images[:, [2, 3, 1]].transpose(0, 2, 1), np.nan)
    return plain_graphs(
        "filtering",
        [arrays["A"]] * len(images),
        node_features=images[:, 0].reshape(-1, 1).astype(np.float32),
        targets=targets.reshape(-1, len(FILTERS)),
        columns=tuple(Target(name, symbol=f"{name}-pass") for name in FILTERS),
        level="node",
        node_names=("grey",),
        ids=tuple(f"image {k + 1}" for k in range(len(images))),
        splits={name: np.array(indices) for name, indices in _SPLITS.items()},
        notes=(f"{(~scored).sum()} border nodes of each image have no target, not scored",),
        source={"path": str(path), "sha256": _FILE.sha256},
    )
