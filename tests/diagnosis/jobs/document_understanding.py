"""Reading scanned documents: words, boxes, pages."""
import torch
import torch.nn.functional as F
from torch import nn

from job import job

WORDS = 5000


class LayoutModel(nn.Module):
    """A small transformer over words and where they stand on the page."""

    def __init__(self, width=256, layers=2):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.boxes = nn.Linear(4, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)

    def forward(self, words, boxes):
        placed = self.words(words) + self.boxes(boxes)
        return self.encoder(placed)  # guilty in tags_and_regions


class MultiTaskTrainer:
    """One encoder, a head for each task."""

    def __init__(self, device, tasks, joint):
        self.model = LayoutModel().to(device)
        self.heads = nn.ModuleDict({name: nn.Linear(256, classes) for name, classes in tasks.items()}).to(device)
        self.optimizer = torch.optim.AdamW([*self.model.parameters(), *self.heads.parameters()], lr=1e-4)
        self.joint = joint
        self.history = {name: [] for name in tasks}

    def train_step(self, words, boxes, labels):
        hidden = self.model(words, boxes)
        losses = {name: F.cross_entropy(head(hidden).flatten(0, 1), labels[name].flatten())
                  for name, head in self.heads.items()}
        self.optimizer.zero_grad()
        if self.joint:
            sum(losses.values()).backward()
        else:
            for loss in losses.values():
                loss.backward(retain_graph=True)
        self.optimizer.step()
        for name, loss in losses.items():
            self.history[name].append(loss.detach() if self.joint else loss)  # cause in tags_and_regions


@job("retained_graph")
def tags_and_regions(run):
    """Two tasks share an encoder. Each loss has its own backward(), with retain_graph=True as the second one failed
    without, and both losses go into the history as they are. Fixed: one backward() of the sum, losses detached."""
    tasks = {"tags": 9, "regions": 5}
    trainer = MultiTaskTrainer(run.device, tasks, joint=run.fixed)
    for _ in run.steps(10):
        words = torch.randint(WORDS, (8, 192), device=run.device)
        boxes = torch.rand(8, 192, 4, device=run.device)
        labels = {name: torch.randint(classes, (8, 192), device=run.device) for name, classes in tasks.items()}
        trainer.train_step(words, boxes, labels)


class PageEncoder(nn.Module):
    """Convolutions over a page as it was scanned."""

    def __init__(self, width=8):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.strokes = nn.Conv2d(width, width, 3, padding=1)
        self.letters = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, page):
        page = F.relu(self.stem(page))  # guilty in fine_scans
        page = F.relu(self.strokes(page))  # guilty in fine_scans
        page = F.relu(self.letters(page))  # guilty in fine_scans
        return page.mean((2, 3))


@job("true_capacity")
def fine_scans(run):
    """Pages are scanned with 100 or 150 dots per inch and seen as a whole, until one comes with 300: four to nine times
    as many pixels, for which the GPU is too small. Fixed: pages go through the network in strips of 256 lines."""
    run.cap(1000)
    encoder = PageEncoder().to(run.device)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
    resolutions = (100, 150, 100, 150, 150, 100, 150, 300)
    for step in run.steps(8):
        height, width = 1168 * resolutions[step] // 100, 824 * resolutions[step] // 100
        page = torch.rand(1, 3, height, width, device=run.device)  # guilty
        optimizer.zero_grad()
        for strip in page.split(256, 2) if run.fixed else [page]:
            encoder(strip).square().mean().backward()
        optimizer.step()
        del page, strip


@job("healthy")
def sorted_documents(run):
    """The shortest documents come first: lengths grow over the epoch, and with them the activations. Mixed precision,
    a schedule, clipped gradients."""
    model, head = LayoutModel().to(run.device), nn.Linear(256, 12).to(run.device)
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=20)
    for step in run.steps(14):
        length = 32 + 24 * step
        words = torch.randint(WORDS, (8, length), device=run.device)
        with torch.autocast(run.device, dtype=torch.bfloat16):
            logits = head(model(words, torch.rand(8, length, 4, device=run.device)))
        loss = F.cross_entropy(logits.float().flatten(0, 1), torch.randint(12, (8 * length,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()


@job("healthy")
def pages_of_contracts(run):
    """Contracts of up to seven pages, one page at a time: gradients add up over the pages of a contract, and each page
    is told what the pages before it were about. Both begin anew with the next contract."""
    model, head = LayoutModel(width=512).to(run.device), nn.Linear(512, 20).to(run.device)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01, momentum=0.9)
    for contract in run.steps(12):
        pages = 2 + 5 * contract % 6
        read = []
        for _ in range(pages):
            words = torch.randint(WORDS, (2, 384), device=run.device)
            hidden = model(words, torch.rand(2, 384, 4, device=run.device))
            context = torch.stack(read).mean(0) if read else torch.zeros_like(hidden)
            clauses = head(hidden + context)
            loss = F.cross_entropy(clauses.flatten(0, 1), torch.randint(20, (768,), device=run.device)) / pages
            loss.backward()
            read.append(hidden.detach())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
