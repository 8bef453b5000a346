"""A read-out solved by ridge regression, and the gradient of what it leaves."""

import numpy as np
import pytest
import torch

from g2n2_paper.filter_runs import ridge


def columns_and_truth(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Columns of different sizes, one of them constant, and numbers near a linear map of them."""
    random = np.random.default_rng(seed)
    columns = random.normal(size=(40, 5)) * [1.0, 30.0, 0.02, 0.0, 2.0] + [5.0, 0.0, 1.0, 7.0, -3.0]
    truth = columns @ [1.0, 0.1, 20.0, 0.0, -0.5] + 0.3 * random.normal(size=40) + 4.0
    return torch.from_numpy(columns), torch.from_numpy(truth)


def bordered(columns: np.ndarray, truth: np.ndarray, shrink: float) -> tuple[np.ndarray, float]:
    """The same by least squares with a row for each penalty and a column for the offset.

    Returned are the fitted values and the mean squared error with the penalty.
    """
    deviation = columns.std(0)
    kept = columns[:, deviation > 0]
    rows, width = len(truth), kept.shape[1]
    penalty = np.diag(np.sqrt(shrink * rows) * kept.std(0))
    top = np.column_stack([kept, np.ones(rows)])
    matrix = np.vstack([top, np.column_stack([penalty, np.zeros(width)])])
    right = np.concatenate([truth, np.zeros(width)])
    solution = np.linalg.lstsq(matrix, right, rcond=None)[0]
    left = ((matrix @ solution - right) ** 2).sum() / rows
    return top @ solution, float(left)


@pytest.mark.parametrize("shrink", [1e-8, 1e-2, 1.0])
def test_ridge_is_least_squares_with_rows_for_the_penalty(shrink: float) -> None:
    columns, truth = columns_and_truth()
    fit = ridge(columns, truth, shrink)
    values, left = bordered(columns.numpy(), truth.numpy(), shrink)
    assert fit.of(columns).numpy() == pytest.approx(values, abs=1e-9)
    assert float(fit.loss) == pytest.approx(left / truth.numpy().var(), rel=1e-9)
    assert fit.weights[3] == 0.0  # the constant column


@pytest.mark.parametrize("shrink", [1e-6, 0.3])
def test_the_gradient_is_that_of_solving_again(shrink: float) -> None:
    columns, truth = columns_and_truth()
    columns.requires_grad_(True)
    ridge(columns, truth, shrink).loss.backward()
    assert columns.grad is not None
    variance = truth.numpy().var()
    for row, column in ((0, 0), (7, 1), (11, 2), (39, 4)):
        step = 1e-4 * float(columns[:, column].detach().std())
        ends = []
        for sign in (1.0, -1.0):
            moved = columns.detach().numpy().copy()
            moved[row, column] += sign * step
            ends.append(bordered(moved, truth.numpy(), shrink)[1] / variance)
        slope = (ends[0] - ends[1]) / (2 * step)
        assert float(columns.grad[row, column]) == pytest.approx(slope, rel=1e-4, abs=1e-9)


def test_columns_that_are_not_finite_leave_no_number() -> None:
    columns, truth = columns_and_truth()
    columns[0, 0] = float("nan")
    assert not torch.isfinite(ridge(columns, truth, 1e-6).loss)
