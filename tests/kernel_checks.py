"""How close an op and its reference twin must be, and what they are tried on."""

import torch

TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 2e-6,
    torch.float16: 0.04,
    torch.bfloat16: 0.15,
}
"""Largest error of a whole tensor in parts of its size. Half precision is this far off because it
turns a share of the ReLUs near zero on or off, and gradients differ by the root of that share."""

LOW = (torch.float32, torch.bfloat16, torch.float16)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def unequal_mask(nodes, device=DEVICE):
    """`[2, nodes]`: a full graph, and one half as large."""
    sizes = torch.tensor([nodes, (nodes + 1) // 2], device=device)
    return torch.arange(nodes, device=device) < sizes[:, None]


def pairs_of(mask):
    return (mask[:, :, None] & mask[:, None]).unsqueeze(-1)


def drawn(*shape, dtype, mask=None, device=DEVICE):
    """Normal numbers that need a gradient, zero outside the mask."""
    value = torch.randn(*shape, device=device, dtype=torch.float64)
    if mask is not None:
        value = value * mask
    return value.to(dtype).requires_grad_()


def assert_near(name, got, expected, dtype, factor=1.0):
    """Within the dtype's tolerance of what float64 gives."""
    assert got.shape == expected.shape, name
    assert got.dtype == dtype, f"{name} is {got.dtype}"
    got, expected = got.detach().double(), expected.detach().double()
    assert bool(torch.isfinite(got).all()), f"{name} has NaN or infinity"
    error = float((got - expected).norm())
    size = max(float(expected.norm()), 1e-3)
    assert error <= factor * TOLERANCE[dtype] * size, f"{name}: {error / size:.2e}"


def gradients(op, leaves):
    """An op's value, and the gradients of a random functional of it."""
    value = op(*leaves)
    torch.manual_seed(11)
    weights = torch.randn(value.shape, dtype=torch.float64, device=value.device)
    used = [leaf for leaf in leaves if leaf is not None]
    return value, torch.autograd.grad((value.double() * weights).sum(), used)


def assert_twins(op, reference, leaves, dtype, factor=1.0):
    """An op gives what its reference gives in float64, forward and backward."""
    value, found = gradients(op, leaves)
    wide = [None if x is None else x.detach().double().requires_grad_() for x in leaves]
    expected, slopes = gradients(reference, wide)
    assert_near("value", value, expected, dtype, factor)
    for number, (got, want) in enumerate(zip(found, slopes, strict=True)):
        assert_near(f"gradient {number}", got, want, dtype, factor)
    return value
