"""TwoDGrid30: learn low-, high- and band-pass filters of an image on a 30×30 grid.

The targets are 2-D Fourier filters of a whole 95×95 picture, cut to 30×30 afterwards. They are no
functions of the grid's Laplacian, so no network of the graph alone reaches R² = 1 on all three.
"""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..archives import read_npz
from ..files import find_file, missing_file, read_checked
from ..graph_set import GraphSet, Target, plain_graphs

Origin = Literal["any", "mat", "image"]

MAT_FILE = "TwoDGrid30.mat"
MAT_SHA256 = "8e3fc2c8fb115f40d3b03d5d38d07e724f2a22100d2a8982dbce3ba1d4613e40"
IMAGE_FILE = "grid95_image.npz"
IMAGE_SHA256 = "71912c35fae069c503753afc5c6e0c0d9bc0cc18e8fe42198bbb4c3049261ca2"

FILTERS = ("low", "high", "band")
_PICTURE, _SIDE, _BORDER = 95, 30, 2
# Upper left corners in the picture of the training, test and validation image.
_CORNERS = ((49, 4), (14, 29), (49, 39))
_SPLITS = {"train": [0], "test": [1], "validation": [2]}


@dataclass(frozen=True, eq=False)
class Fields:
    """The numbers of TwoDGrid30; node r + 30 c is the pixel in row r, column c.

    Attributes:
        adjacency: `[900, 900]` of the grid.
        inputs: `[3, 900]` grey values from 0 to 1, an image a row.
        targets: `[3, 900, 3]` each image filtered by `FILTERS`.
        mask: `[900]` true where a node is scored: all but a border of two pixels.
    """

    adjacency: NDArray[np.float64]
    inputs: NDArray[np.float64]
    targets: NDArray[np.float64]
    mask: NDArray[np.bool_]


def load_filtering(data: str | Path | None = None, *, origin: Origin = "any") -> GraphSet:
    """Load three images on the 30×30 grid, one to train, one to validate, one to test on.

    Targets are NaN outside the mask: those nodes are not scored.

    Args:
        data: Folder searched first.
        origin: `mat` for the published file, `image` to filter the picture again, `any` for
            whichever is found, the published file first.
    """
    if origin not in get_args(Origin):
        raise DataError(f"origin: got {origin!r}, expected one of {', '.join(get_args(Origin))}")
    files = {
        "mat": find_file(MAT_FILE, data, "filtering"),
        "image": find_file(IMAGE_FILE, data, "filtering"),
    }
    chosen = {key: path for key, path in files.items() if path and origin in ("any", key)}
    if not chosen:
        names = {"mat": MAT_FILE, "image": IMAGE_FILE}.get(origin, f"{MAT_FILE} or {IMAGE_FILE}")
        reason = "It is in dataset/TwoDGrid30/raw of https://github.com/balcilar/gnn-matlang."
        raise missing_file("filtering", names, data, "filtering", reason)
    key, path = next(iter(chosen.items()))
    fields = read_mat(path) if key == "mat" else regenerate_filtering(read_image(path))
    targets = np.where(fields.mask[None, :, None], fields.targets, np.nan)
    return plain_graphs(
        "filtering",
        [fields.adjacency] * len(fields.inputs),
        node_features=fields.inputs.reshape(-1, 1).astype(np.float32),
        targets=targets.reshape(-1, len(FILTERS)),
        columns=tuple(Target(name, symbol=f"{name}-pass") for name in FILTERS),
        level="node",
        node_names=("grey",),
        ids=tuple(f"image {k + 1}" for k in range(len(fields.inputs))),
        splits={name: np.array(indices) for name, indices in _SPLITS.items()},
        notes=(
            f"{int((~fields.mask).sum())} border nodes of each image have no target, not scored",
        ),
        source={"path": str(path), "sha256": {"mat": MAT_SHA256, "image": IMAGE_SHA256}[key]},
    )


def read_mat(path: Path) -> Fields:
    """Read the published MATLAB file."""
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise DataError(
            f"{path} needs scipy: pip install 'g2n2[train]', or take origin='image'"
        ) from error
    content: dict[str, Any] = loadmat(io.BytesIO(read_checked(path, MAT_SHA256)))
    columns = content["F"].T
    images = columns[:12].reshape(3, 4, -1)  # input, band, low, high
    return Fields(
        adjacency=content["A"].astype(np.float64),
        inputs=images[:, 0],
        targets=images[:, [2, 3, 1]].transpose(0, 2, 1),
        mask=columns[12] == 1,
    )


def read_image(path: Path) -> NDArray[np.uint8]:
    """Read the picture the set is cut from, `[95, 95]`."""
    image: NDArray[np.uint8] = read_npz(read_checked(path, IMAGE_SHA256), name=str(path))["image"]
    return image


def regenerate_filtering(image: NDArray[Any]) -> Fields:
    """Filter the picture and cut the three images out of it.

    Args:
        image: `[95, 95]` grey values from 0 to 255.
    """
    if image.shape != (_PICTURE, _PICTURE):
        raise DataError(
            f"the picture of the filtering set is {_PICTURE}×{_PICTURE}, got {list(image.shape)}"
        )
    picture = image.astype(np.float64)
    filtered = [picture / 255, *_filtered(picture)]
    crops = np.array(
        [
            [plane[r : r + _SIDE, c : c + _SIDE].ravel(order="F") for plane in filtered]
            for r, c in _CORNERS
        ]
    )
    inner = np.zeros((_SIDE, _SIDE), dtype=np.bool_)
    inner[_BORDER:-_BORDER, _BORDER:-_BORDER] = True
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(_SIDE, _SIDE))
    return Fields(
        adjacency=nx.to_numpy_array(grid),
        inputs=crops[:, 0],
        targets=crops[:, 1:].transpose(0, 2, 1),
        mask=inner.ravel(),
    )


def _filtered(picture: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The whole picture through the `FILTERS`, each scaled to fill 0 to 1."""
    half = _PICTURE // 2
    frequency = 0.5 * (np.arange(_PICTURE) - half) / half
    rho = np.hypot(frequency[:, None], frequency)
    spectrum = np.fft.fftshift(np.fft.fft2(picture))
    high = 1 - np.exp(-10 * rho**2)
    band = np.exp(-1000 * (rho - 0.25) ** 2)
    padded = np.pad(picture, 1)
    # The low-pass filter is the only one made in space: a pixel and its four neighbours.
    cross = picture + padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    passed = [np.fft.ifft2(np.fft.ifftshift(spectrum * response)).real for response in (high, band)]
    return [(plane - plane.min()) / np.ptp(plane) for plane in (cross, *passed)]
