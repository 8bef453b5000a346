"""BREC's training: push the embeddings of the two graphs of one pair apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from ...errors import DataError
from ...graphs import Adjacency
from ...nn.expressivity import GRAPHS_PER_CALL, Network, Precision, Style, forward


@dataclass(frozen=True)
class Training:
    """Settings of the contrastive training, BREC's own by default.

    Attributes:
        epochs: At most so many passes over the relabelings.
        learning_rate: Of Adam.
        weight_decay: Of Adam.
        margin: Cosine similarity that is low enough.
        stop_below: Mean loss at which training stops early.
    """

    epochs: int = 20
    learning_rate: float = 1e-4
    weight_decay: float = 1e-4
    margin: float = 0.0
    stop_below: float = 0.2


def train_apart(
    model: Network,
    first: Sequence[Adjacency],
    second: Sequence[Adjacency],
    settings: Training,
    style: Style,
    precision: Precision,
) -> list[float]:
    """Train on the relabelings of one pair, and leave the network in evaluation mode.

    Returns:
        The mean cosine embedding loss of each epoch.

    Raises:
        DataError: If the network has no parameters.
    """
    import torch
    from torch.nn.functional import cosine_embedding_loss

    if not isinstance(model, torch.nn.Module) or not any(True for _ in model.parameters()):
        raise DataError(
            f"{type(model).__name__} has no parameters to train: expected a torch module with "
            "weights; leave out train= to test it as it is"
        )
    # Interleaved as in BREC, so that normalisation layers see both graphs in every batch.
    graphs = list(chain.from_iterable(zip(first, second, strict=True)))
    batches = [graphs[i : i + GRAPHS_PER_CALL] for i in range(0, len(graphs), GRAPHS_PER_CALL)]
    optimizer = torch.optim.Adam(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    losses: list[float] = []
    model.train()
    with torch.enable_grad():
        for _ in range(settings.epochs):
            total = 0.0
            for batch in batches:
                optimizer.zero_grad()
                rows = forward(model, batch, style, precision)
                apart = rows.new_full((len(rows) // 2,), -1)
                loss = cosine_embedding_loss(rows[0::2], rows[1::2], apart, settings.margin)
                torch.autograd.backward(loss)
                optimizer.step()
                total += loss.item() * len(apart)
            losses.append(total / len(first))
            if losses[-1] < settings.stop_below:
                break
            scheduler.step(losses[-1])
    model.eval()
    return losses
