"""TwoDGrid30: learn low-, high- and band-pass filters of an image on a 30×30 grid.

The targets are 2-D Fourier filters of a whole 95×95 picture, cut to 30×30 afterwards. They are no
functions of the grid's Laplacian, so no network of the graph alone reaches R² = 1 on all three.
"""

import io
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..archives import read_npz
from ..files import DataFile
from ..graph_set import GraphSet, Target, plain_graphs

Origin = Literal["any", "mat", "image"]
Array = NDArray[np.float64]
FILTERS = ("low", "high", "band")
_FILES = {
    "mat": DataFile(
        *("filtering", "TwoDGrid30.mat", "filtering"),
        "8e3fc2c8fb115f40d3b03d5d38d07e724f2a22100d2a8982dbce3ba1d4613e40",
    ),
    "image": DataFile(
        *("filtering", "grid95_image.npz", "filtering"),
        "71912c35fae069c503753afc5c6e0c0d9bc0cc18e8fe42198bbb4c3049261ca2",
    ),
}
_PICTURE, _SIDE, _BORDER = 95, 30, 2
# Upper left corners in the picture of the training, test and validation image.
_CORNERS = ((49, 4), (14, 29), (49, 39))
_SPLITS = {"train": [0], "test": [1], "validation": [2]}


class Fields(NamedTuple):
    """The numbers of TwoDGrid30; node r + 30 c is the pixel in row r, column c.

    Attributes:
        adjacency: `[900, 900]` of the grid.
        inputs: `[3, 900]` grey values from 0 to 1, an image a row.
        targets: `[3, 900, 3]` each image filtered by `FILTERS`.
        mask: `[900]` true where a node is scored: all but a border of two pixels.
    """

    adjacency: Array
    inputs: Array
    targets: Array
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
    files = {key: file for key, file in _FILES.items() if origin in ("any", key)}
    key = next((key for key, file in files.items() if file.find(data)), None)
    if key is None:
        wanted = DataFile("filtering", " or ".join(f.name for f in files.values()), "filtering")
        reason = "It is in dataset/TwoDGrid30/raw of https://github.com/balcilar/gnn-matlang."
        raise wanted.missing(data, reason)
    path, content = files[key].read(data)
    fields = read_mat(content) if key == "mat" else regenerate_filtering(read_image(content))
    targets = np.where(fields.mask[None, :, None], fields.targets, np.nan)
    unscored = int((~fields.mask).sum())
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
        notes=(f"{unscored} border nodes of each image have no target, not scored",),
        source={"path": str(path), "sha256": files[key].sha256},
    )


def read_mat(content: bytes) -> Fields:
    """The published MATLAB file."""
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise DataError(
            "TwoDGrid30.mat needs scipy: pip install 'g2n2[train]', or take origin='image'"
        ) from error
    arrays: dict[str, Any] = loadmat(io.BytesIO(content))
    columns = arrays["F"].T
    images = columns[:12].reshape(3, 4, -1)  # input, band, low, high
    targets = images[:, [2, 3, 1]].transpose(0, 2, 1)
    return Fields(arrays["A"].astype(np.float64), images[:, 0], targets, columns[12] == 1)


def read_image(content: bytes) -> NDArray[np.uint8]:
    """The picture the set is cut from, `[95, 95]`."""
    image: NDArray[np.uint8] = read_npz(content, name="grid95_image.npz")["image"]
    return image


def regenerate_filtering(image: NDArray[Any]) -> Fields:
    """Filter a picture `[95, 95]` of grey values from 0 to 255, and cut three images out of it."""
    if image.shape != (_PICTURE, _PICTURE):
        raise DataError(
            f"the picture of the filtering set is {_PICTURE}×{_PICTURE}, got {list(image.shape)}"
        )
    planes = [image / 255, *_filtered(image.astype(np.float64))]
    cuts = [np.s_[r : r + _SIDE, c : c + _SIDE] for r, c in _CORNERS]
    crops = np.array([[plane[cut].ravel(order="F") for plane in planes] for cut in cuts])
    inner = np.zeros((_SIDE, _SIDE), dtype=np.bool_)
    inner[_BORDER:-_BORDER, _BORDER:-_BORDER] = True
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(_SIDE, _SIDE))
    targets = crops[:, 1:].transpose(0, 2, 1)
    return Fields(nx.to_numpy_array(grid), crops[:, 0], targets, inner.ravel())


def _filtered(picture: Array) -> list[Array]:
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
