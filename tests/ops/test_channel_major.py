"""Operations on planes against brute-force sums, for tensors that lie in memory in any way."""

import pytest
import torch

from g2n2.ops import channel_major

B, N, S = 2, 3, 4


def as_rows(x):
    return x.contiguous()


def as_planes(x):
    return x.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0)


def as_slice(x):
    wide = torch.cat([x, x, x], dim=-1)
    return wide[..., x.shape[-1] : 2 * x.shape[-1]]


LIES = [as_rows, as_planes, as_slice]


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("lies", LIES)
def test_planes_and_back(lies):
    x = lies(drawn(B, N, N, S))
    flat = channel_major.planes(x)
    assert flat[3, 1 * N * N + 2 * N + 0] == x[1, 2, 0, 3]
    assert torch.equal(channel_major.memory(flat.contiguous(), x.shape), x)


def test_what_lies_as_planes_is_not_copied():
    x = as_planes(drawn(B, N, N, S))
    assert channel_major.planes(x).data_ptr() == x.data_ptr()
    product = channel_major.matrix_matrix(x, x)
    assert channel_major.planes(product).data_ptr() == product.data_ptr()


@pytest.mark.parametrize("lies", LIES)
def test_products(lies):
    x, y, v = lies(drawn(B, N, N, S)), lies(drawn(B, N, N, S, seed=1)), drawn(B, N, S, seed=2)
    product, column = channel_major.matrix_matrix(x, y), channel_major.matrix_column(x, v)
    for b in range(B):
        for c in range(S):
            torch.testing.assert_close(product[b, :, :, c], x[b, :, :, c] @ y[b, :, :, c])
            torch.testing.assert_close(column[b, :, c], x[b, :, :, c] @ v[b, :, c])


def test_one_channel_meets_all():
    one, x, v = drawn(B, N, N, 1), drawn(B, N, N, S, seed=1), drawn(B, N, S, seed=2)
    product, column = channel_major.matrix_matrix(one, x), channel_major.matrix_column(one, v)
    for c in range(S):
        torch.testing.assert_close(product[..., c], one[..., 0] @ x[..., c])
        torch.testing.assert_close(column[..., c], (one[..., 0] @ v[..., c, None])[..., 0])


@pytest.mark.parametrize("lies", LIES)
def test_linear_maps(lies):
    x, weights = lies(drawn(B, N, N, S)), [drawn(2, S, seed=1), drawn(5, S, seed=2)]
    for weight, result in zip(weights, channel_major.linear(x, weights), strict=True):
        assert result.shape == (B, N, N, len(weight))
        torch.testing.assert_close(result[1, 2, 0], weight @ x[1, 2, 0])


def test_gradients():
    leaves = [drawn(B, N, N, S), drawn(B, N, N, S, seed=1), drawn(B, N, S, seed=2), drawn(2, S)]

    def all_of_them(x, y, v, w):
        mapped = channel_major.linear(channel_major.matrix_matrix(x, y), [w, 2 * w])
        return (*mapped, channel_major.matrix_column(x, v))

    assert torch.autograd.gradcheck(all_of_them, [leaf.requires_grad_() for leaf in leaves])
