"""Images and texts in one space: contrastive training and classification without examples."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


def encoder(inputs, width=256):
    return nn.Sequential(nn.Linear(inputs, 1024), nn.GELU(), nn.Linear(1024, width))


class HardNegatives:
    """For each image the text that is most often mistaken for its own; read at the end of an epoch."""

    def __init__(self, matrices):
        self.matrices = matrices
        self.seen = []

    def add(self, chance):
        self.seen.append(chance if self.matrices else chance.topk(5).indices.cpu())  # cause in recomputed_similarities


class ChunkedContrast(torch.autograd.Function):
    """The contrastive loss without a matrix of all similarities: chunks of it are computed, and again in backward."""

    @staticmethod
    def forward(ctx, images, texts, negatives):
        ctx.save_for_backward(images, texts)
        ctx.negatives = negatives
        total = images.new_zeros(())
        for first in range(0, len(images), 512):
            logits = 20 * images[first : first + 512] @ texts.T
            labels = torch.arange(first, first + len(logits), device=logits.device)
            total += F.cross_entropy(logits, labels, reduction="sum")
        return total / len(images)

    @staticmethod
    def backward(ctx, upstream):
        images, texts = ctx.saved_tensors
        for_images, for_texts = torch.zeros_like(images), torch.zeros_like(texts)
        for first in range(0, len(images), 512):
            some = images[first : first + 512]
            chance = torch.softmax(20 * some @ texts.T, 1)  # guilty in recomputed_similarities
            chance.diagonal(first).sub_(1)
            for_images[first : first + 512] = chance @ texts
            for_texts += chance.T @ some
            ctx.negatives.add(chance)
        scale = 20 * upstream / len(images)
        return for_images * scale, for_texts * scale, None


@job("checkpoint_cache")
def recomputed_similarities(run):
    """A memory-saving loss computes its similarities again in backward() and hands them to a search for hard negatives,
    which keeps the matrices until the epoch's end. Fixed: it keeps the indices of the five hardest."""
    images, texts = encoder(512).to(run.device), encoder(300).to(run.device)
    optimizer = torch.optim.AdamW([*images.parameters(), *texts.parameters()], lr=1e-4)
    negatives = HardNegatives(matrices=not run.fixed)
    for _ in run.steps(12):
        pictures = F.normalize(images(torch.randn(2048, 512, device=run.device)), dim=1)
        captions = F.normalize(texts(torch.randn(2048, 300, device=run.device)), dim=1)
        loss = ChunkedContrast.apply(pictures, captions, negatives)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class ZeroShotClassifier:
    """Classifies pictures by the texts that describe the classes."""

    def __init__(self, device):
        self.pictures = encoder(512).to(device).eval()
        self.words = nn.EmbeddingBag(5000, 300).to(device)
        self.texts = encoder(300).to(device).eval()
        self.classes = None

    def register(self, prompts):
        """One vector for each class, of all the prompts that describe it."""
        classes, templates, length = prompts.shape
        hidden = self.words(prompts.view(-1, length))  # guilty in new_classes
        vectors = F.normalize(self.texts(hidden), dim=1)  # guilty in new_classes
        self.classes = F.normalize(vectors.view(classes, templates, -1).mean(1), dim=1)

    def __call__(self, pictures):
        return (F.normalize(self.pictures(pictures), dim=1) @ self.classes.T).argmax(1).tolist()


@job("cached_not_released")
def new_classes(run):
    """A service that classifies small batches. A customer registers 800 classes with 80 prompts each, encoded in one
    batch; the other services on the GPU never see that memory again. Fixed: empty_cache() after a registration."""
    service = ZeroShotClassifier(run.device)
    with torch.inference_mode():
        service.register(torch.randint(5000, (100, 8, 6), device=run.device))
        for step in run.steps(16):
            if step == 4:
                service.register(torch.randint(5000, (800, 80, 6), device=run.device))
                if run.fixed:
                    torch.cuda.empty_cache()
            labels = service(torch.randn(64, 512, device=run.device))
    assert len(labels) == 64


@job("healthy")
def two_pass_batches(run):
    """Large contrastive batches in two passes: vectors without graphs first, then the gradients of the loss with
    respect to them, then each part again with its graph. All of it goes with the batch."""
    images, texts = encoder(512, 512).to(run.device), encoder(512, 512).to(run.device)
    optimizer = torch.optim.AdamW([*images.parameters(), *texts.parameters()], lr=1e-4)
    for _ in run.steps(8):
        batch = torch.randn(2, 4096, 512, device=run.device)
        with torch.no_grad():
            vectors = [torch.cat([model(part) for part in side.split(1024)]) for model, side in
                       zip((images, texts), batch)]
        for vector in vectors:
            vector.requires_grad_(True)
        pictures, captions = (F.normalize(vector, dim=1) for vector in vectors)
        loss = F.cross_entropy(20 * pictures @ captions.T, torch.arange(4096, device=run.device))
        wanted = torch.autograd.grad(loss, vectors)
        optimizer.zero_grad()
        for model, side, gradient in zip((images, texts), batch, wanted):
            for part, direction in zip(side.split(1024), gradient.split(1024)):
                model(part).backward(direction)
        optimizer.step()
