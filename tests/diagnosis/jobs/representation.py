"""Contrastive learning and distillation."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


class PatchEncoder(nn.Module):
    """Images as rows of patches, mixed by perceptrons."""

    def __init__(self, width=192, out=128):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.mix = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.out = nn.Linear(width, out)

    def forward(self, image):
        tokens = self.patches(image).flatten(2).transpose(1, 2)
        tokens = tokens + self.mix(tokens)  # guilty in nearest_label
        return F.normalize(self.out(tokens.mean(1)), dim=1)  # guilty in nearest_label


class NeighbourProbe:
    """The accuracy of a vote among nearest neighbours in a bank of features."""

    def __init__(self, encoder):
        self.encoder = encoder
        self.features = []
        self.labels = []

    def collect_unguarded(self, image, label):
        self.encoder.eval()
        torch.no_grad()  # cause in nearest_label
        self.features.append(self.encoder(image))
        self.labels.append(label)

    @torch.no_grad()
    def collect(self, image, label):
        self.encoder.eval()
        self.features.append(self.encoder(image))
        self.labels.append(label)


@job("eval_graph")
def nearest_label(run):
    """The features of a data set are collected for a probe by nearest neighbours; no_grad() is called but is not
    used as a context, so that each feature comes with its graph. Fixed: it is a decorator."""
    probe = NeighbourProbe(PatchEncoder().to(run.device))
    collect = probe.collect if run.fixed else probe.collect_unguarded
    for _ in run.steps(10):
        image = torch.rand(96, 3, 128, 128, device=run.device)  # guilty
        collect(image, torch.randint(10, (96,), device=run.device))
    bank = torch.cat(probe.features).detach()
    labels = torch.cat(probe.labels)
    vote = labels[(bank @ bank.T).topk(5).indices].mode(1).values
    print(f"accuracy {(vote == labels).float().mean().item():.2f}")


def info_nce(first, second, temperature, rows):
    """The contrastive loss of paired embeddings, so many rows of the table of similarities at a time."""
    total = 0.0
    for start in range(0, len(first), rows):
        logits = first[start : start + rows] @ second.T / temperature  # guilty in one_large_batch
        target = torch.arange(start, start + len(logits), device=logits.device)
        part = F.cross_entropy(logits, target, reduction="sum") / len(first)
        part.backward()
        total += part.item()
    return total


@job("true_capacity")
def one_large_batch(run):
    """Images and texts are matched in batches of 12,288 pairs; the table of all similarities and its softmax do not
    fit beside each other. Fixed: 1024 rows of the table at a time."""
    run.cap(1024)
    images, texts = (nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64)).to(run.device) for _ in range(2))
    optimizer = torch.optim.AdamW([*images.parameters(), *texts.parameters()], lr=1e-3)
    rows = 1024 if run.fixed else 12_288  # cause
    for _ in run.steps(8):
        pairs = torch.randn(12_288, 256, device=run.device)
        embedded = [F.normalize(tower(pairs), dim=1) for tower in (images, texts)]
        leaves = [part.detach().requires_grad_() for part in embedded]
        info_nce(*leaves, temperature=0.07, rows=rows)
        optimizer.zero_grad()
        torch.autograd.backward(embedded, [leaf.grad for leaf in leaves])
        optimizer.step()


class LogitStore:
    """A teacher's answers to a fixed set of batches, in half precision on the CPU."""

    def __init__(self):
        self.answers = {}

    def get(self, key, compute):
        if key not in self.answers:
            with torch.no_grad():
                self.answers[key] = compute().half().cpu()
        return self.answers[key]


@job("healthy", contested="the teacher, a third of the peak, stays when nobody asks it any more")
def remembered_teacher(run):
    """Distillation for several epochs over ten batches: in the first the teacher answers, and its answers are
    remembered on the CPU; in the later ones it is not asked any more."""
    teacher = nn.Sequential(nn.Linear(768, 3072), nn.ReLU(), nn.Linear(3072, 3072), nn.ReLU(), nn.Linear(3072, 1000))
    teacher = teacher.to(run.device).eval()
    student = nn.Sequential(nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 1000)).to(run.device)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    store = LogitStore()
    batches = torch.randn(10, 1024, 768)
    for step in run.steps(25):
        batch = batches[step % 10].to(run.device)
        target = store.get(step % 10, lambda: teacher(batch)).to(run.device).float()
        loss = F.kl_div((student(batch) / 4).log_softmax(1), (target / 4).softmax(1), reduction="batchmean") * 16
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
