"""Image models: segmentation, retrieval, self-supervision, detection."""
import copy
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


def convolutions(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers)


def embedder(features=128):
    return nn.Sequential(convolutions(3, 32, 64, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, features))


def pixels(run, count, size):
    return torch.randn(count, 3, size, size, device=run.device)


@job("gradient_accumulation")
def frozen_backbone(run):
    """Segmentation head on a backbone that is "frozen" by leaving it out of the optimizer: it gets gradients in each
    backward pass, and nothing ever clears them. Fixed: requires_grad_(False)."""
    backbone = convolutions(3, 256, 512, 1024, 1024).to(run.device)
    head = nn.Conv2d(1024, 21, 1).to(run.device)
    if run.fixed:
        backbone.requires_grad_(False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9)
    for _ in run.steps(10):
        images = pixels(run, 2, 32)
        masks = torch.randint(21, (2, 32, 32), device=run.device)
        optimizer.zero_grad()
        loss = F.cross_entropy(head(backbone(images)), masks)
        loss.backward()  # guilty
        optimizer.step()


@job("retained_graph")
def dice_history(run):
    """Segmentation that logs a Dice score of each batch as a tensor: its branch of the graph keeps the
    probabilities of the batch. Fixed: .item()."""
    model = convolutions(3, 32, 32, 8).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history = []
    for _ in run.steps(14):
        images = pixels(run, 4, 192)
        masks = torch.rand(4, 8, 192, 192, device=run.device).round()  # guilty
        logits = model(images)
        loss = F.binary_cross_entropy_with_logits(logits, masks)
        dice = (2 * torch.sigmoid(logits) * masks).sum() / (masks.sum() + 1)  # guilty
        run.middle()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(dice.item() if run.fixed else dice)  # cause


@job("retained_graph")
def embedding_bank(run):
    """Metric learning with a list of all embeddings of the epoch, made in a second forward pass whose graph comes
    along. Fixed: .detach() before it is stored."""
    model = embedder().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    bank = []
    for _ in run.steps(10):
        images = pixels(run, 16, 64)
        anchor, positive = model(images).chunk(2)
        loss = F.cosine_embedding_loss(anchor, positive, torch.ones(8, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        embeddings = model(images.flip(3))  # guilty
        bank.append(embeddings.detach() if run.fixed else embeddings)  # cause


@job("eval_graph")
def validation_loss(run):
    """A U-shaped model whose validation sums the loss tensors of all batches without no_grad(): each batch's graph
    stays. Fixed: torch.no_grad()."""
    model = convolutions(3, 32, 64, 32, 3).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        images = pixels(run, 4, 96)
        optimizer.zero_grad()
        F.mse_loss(model(images), images).backward()
        optimizer.step()
    model.eval()
    total = 0
    with torch.set_grad_enabled(not run.fixed):
        for _ in run.steps(12):
            images = pixels(run, 4, 96)
            output = model(images)  # guilty
            total += F.mse_loss(output, images)  # cause


@job("eval_graph")
def pseudo_labels(run):
    """A teacher labels each batch for a student, in eval() but with gradients enabled: the teacher's graph lives
    while the student trains. Nothing grows; each iteration peaks higher. Fixed: no_grad() around the teacher."""
    teacher = convolutions(3, 64, 64, 64, 64, 64, 10).to(run.device).eval()
    student = convolutions(3, 32, 10).to(run.device)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9)
    for _ in run.steps(10):
        images = pixels(run, 8, 128)
        with torch.set_grad_enabled(not run.fixed):
            logits = teacher(images)  # guilty
        loss = F.cross_entropy(student(images), logits.argmax(1))
        run.middle()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class SkipBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GELU(),
                                  nn.Conv2d(width, width, 3, padding=1))

    def forward(self, image):
        return image + self.body(image)  # guilty in feature_hooks


@job("checkpoint_cache")
def feature_hooks(run):
    """Hooks queue the blocks' features for a style loss, which takes as many as there are blocks. The blocks are
    checkpointed: the hooks run again as they are recomputed, and the queue becomes longer by as many. Fixed: the
    queue is emptied after backward()."""
    blocks = nn.ModuleList(SkipBlock(48) for _ in range(4)).to(run.device)
    stem = nn.Conv2d(3, 48, 3, padding=1).to(run.device)
    optimizer = torch.optim.SGD([*stem.parameters(), *blocks.parameters()], lr=1e-4)
    features = deque()
    for block in blocks:
        block.register_forward_hook(lambda module, inputs, output: features.append(output.detach()))
    for _ in run.steps(8):
        hidden = stem(pixels(run, 4, 128))
        for block in blocks:
            hidden = checkpoint(block, hidden, use_reentrant=True)
        style = sum(features.popleft().mean() for _ in blocks)  # cause
        loss = (hidden.mean() - style) ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if run.fixed:
            features.clear()


@job("cached_not_released")
def batch_size_finder(run):
    """The largest batch size that fits is looked for before training with a small one: its segments stay cached
    for as long as the job runs. Fixed: torch.cuda.empty_cache() after the search."""
    model = convolutions(3, 64, 64, 10).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in (8, 16, 32, 64):
        model(pixels(run, batch, 128)).square().mean().backward()  # guilty
        optimizer.zero_grad()
    if run.fixed:
        torch.cuda.empty_cache()
    for _ in run.steps(8):
        images = pixels(run, 2, 128)
        loss = model(images).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("true_capacity")
def vision_transformer(run):
    """A small vision transformer whose batch does not fit on a GPU of 1 GiB: the first forward pass fails. Fixed: a
    quarter of the batch, gradients accumulated over four of them."""
    run.cap(1024)
    layers = [nn.TransformerEncoderLayer(384, 6, 1536, dropout=0.0, batch_first=True) for _ in range(4)]
    model = nn.Sequential(*layers).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parts = 4 if run.fixed else 1
    for _ in run.steps(3):
        for _ in range(parts):
            patches = torch.randn(96 // parts, 197, 384, device=run.device)
            loss = model(patches).square().mean() / parts  # guilty
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@job("fragmentation", fixed_contested="what is kept stays, on purpose: memory grows for as long as features are made")
def progressive_resolution(run):
    """Features of images whose resolution rises are kept for all resolutions; each piece stays in the segment that
    its image had, and the rest is too small for the next one. The job fails with half of its memory free. Fixed:
    from the largest resolution to the smallest, which fits in what larger ones left."""
    run.cap(1950)
    sizes = [int(5300 * 1.26**k) for k in range(10)]
    kept = []
    for step in run.steps(len(sizes)):
        rows = sizes[len(sizes) - 1 - step] if run.fixed else sizes[step]
        image = torch.randn(rows, 3000, device=run.device)  # guilty
        scale = image.amax()
        del image
        kept.append(torch.full((rows, 1400), float(scale), device=run.device))  # guilty


@job("healthy")
def ema_weights(run):
    """A second copy of the weights, an exponential moving average, for evaluation."""
    model = embedder(512).to(run.device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in run.steps(12):
        loss = model(pixels(run, 32, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters()):
                mean.lerp_(weight, 0.01)


@job("healthy")
def contrastive_queue(run):
    """Momentum contrast: the keys of the last 16 batches in a queue, which fills and then stays as it is."""
    model = embedder().to(run.device)
    momentum = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    queue = deque(maxlen=6)
    for _ in run.steps(14):
        images = pixels(run, 32, 64)
        query = F.normalize(model(images), dim=1)
        with torch.no_grad():
            feature_map = momentum[0](images)
            key = F.normalize(momentum[1:](feature_map), dim=1)
        queue.append((key, feature_map))
        logits = query @ torch.cat([key for key, _ in queue]).T
        loss = F.cross_entropy(logits, torch.arange(32, device=run.device) + 32 * (len(queue) - 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, weight in zip(momentum.parameters(), model.parameters()):
                slow.lerp_(weight, 0.01)


@job("healthy")
def checkpointed_blocks(run):
    """Activation checkpointing as it should be: each block is recomputed, nothing is left after backward()."""
    blocks = nn.ModuleList(SkipBlock(48) for _ in range(4)).to(run.device)
    stem = nn.Conv2d(3, 48, 3, padding=1).to(run.device)
    optimizer = torch.optim.SGD([*stem.parameters(), *blocks.parameters()], lr=1e-4, momentum=0.9)
    for _ in run.steps(8):
        hidden = stem(pixels(run, 4, 128))
        for block in blocks:
            hidden = checkpoint(block, hidden, use_reentrant=False)
        loss = hidden.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def mixed_precision(run):
    """Automatic mixed precision: half-precision copies of the weights within each iteration, a scaled loss."""
    model = convolutions(3, 64, 128, 64, 10).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(run.device)
    for _ in run.steps(8):
        images = pixels(run, 8, 96)
        with torch.autocast(run.device, torch.float16):
            loss = model(images).float().square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        run.middle()
        scaler.step(optimizer)
        scaler.update()


@job("healthy")
def train_and_validate(run):
    """Epochs of training, each with an evaluation under no_grad() and the best weights kept."""
    model = embedder(10).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    best, best_state = float("inf"), None
    for _ in run.steps(6):
        model.train()
        for _ in range(2):
            loss = F.cross_entropy(model(pixels(run, 16, 64)), torch.randint(10, (16,), device=run.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            error = model(pixels(run, 64, 64)).square().mean().item()
        if error < best:
            best, best_state = error, copy.deepcopy(model.state_dict())


@job("healthy")
def nearest_neighbours(run):
    """Features of a whole data set are gathered for a nearest-neighbour score in each epoch, and dropped."""
    model = embedder(256).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in run.steps(5):
        loss = model(pixels(run, 16, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            bank = torch.cat([model(pixels(run, 64, 64)) for _ in range(5)])
            distances = torch.cdist(bank, bank)
            score = distances.topk(5, largest=False).values.mean().item()
        del bank, distances
        assert score >= 0


@job("healthy")
def dataset_on_gpu(run):
    """A data set that is small enough to stay on the GPU; batches are slices of it."""
    data = torch.randn(4000, 3, 64, 64, device=run.device)
    labels = torch.randint(10, (4000,), device=run.device)
    model = embedder(10).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in run.steps(12):
        picked = torch.randint(4000, (32,), device=run.device)
        loss = F.cross_entropy(model(data[picked]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def compiled_model(run):
    """torch.compile with the eager back end of AOTAutograd: compiled forward and backward, no new kernels."""
    model = convolutions(3, 32, 64, 10).to(run.device)
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in run.steps(8):
        loss = compiled(pixels(run, 8, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
