"""Reading and writing by hand: recognition of lines, synthesis of strokes, search in scanned letters."""
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class WordSpotter:
    """Finds a word in the pages that were scanned last."""

    def __init__(self, device, pages, on_host):
        self.encoder = nn.Sequential(nn.Linear(256, 2048), nn.GELU(), nn.Linear(2048, 1152)).to(device)
        self.encoder.requires_grad_(False)
        self.on_host = on_host
        self.pages = deque(maxlen=pages)

    def add(self, windows):
        found = self.encoder(windows)  # guilty in scanned_letters
        self.pages.append(found.cpu() if self.on_host else found)  # cause in scanned_letters

    def search(self, word):
        return max((page @ word.to(page.device)).max().item() for page in self.pages)


@job("fragmentation")
def scanned_letters(run):
    """Pages of slightly different widths: the features of the last ten stay, each in a segment that a larger
    intermediate result left, and what is left of that is too small for anything that comes. Fixed: they are kept on
    the host."""
    spotter = WordSpotter(run.device, pages=10, on_host=run.fixed)
    word = torch.randn(1152, device=run.device)
    for page in run.steps(22):
        positions = 11600 + 377 * page % 120
        spotter.add(torch.randn(positions, 256, device=run.device))
        spotter.search(word)


class StrokeWriter(nn.Module):
    """The next movement of the pen from the last one."""

    def __init__(self, width=512):
        super().__init__()
        self.width = width
        self.recurrent = nn.Linear(3 + width, width)
        self.movement = nn.Linear(width, 3)

    def forward(self, point, hidden):
        joined = torch.cat([point, hidden], dim=1)  # guilty in letter_after_letter
        hidden = torch.tanh(self.recurrent(joined))  # guilty in letter_after_letter
        return self.movement(hidden), hidden


def train_on_strokes(model, strokes, hidden, keep_graph, rate=0.005):
    """Teacher forcing over a few points; the state after the last one is where the next call goes on."""
    loss = 0
    for point, following in zip(strokes, strokes[1:]):
        guess, hidden = model(point, hidden)
        loss = loss + F.mse_loss(guess, following)
    model.zero_grad()
    loss.backward(retain_graph=keep_graph)
    for parameter in model.parameters():
        parameter.data.add_(parameter.grad, alpha=-rate)
    return hidden, loss.item()


@job("hidden_state")
def letter_after_letter(run):
    """A letter follows on the letter before with its state; as backward() complained about that, it got
    retain_graph=True. Fixed: the state is detached between letters."""
    model = StrokeWriter().to(run.device)
    hidden = torch.zeros(2048, model.width, device=run.device)
    for _ in run.steps(12):
        strokes = torch.randn(5, 2048, 3, device=run.device)
        hidden, _ = train_on_strokes(model, strokes, hidden, keep_graph=not run.fixed)  # cause
        if run.fixed:
            hidden = hidden.detach()


class LineReader(nn.Module):
    def __init__(self, letters=80):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU())
        self.letters = nn.Linear(64, letters)

    def forward(self, images):
        columns = self.layers(images)  # guilty in examples_of_each_epoch
        return self.letters(columns.mean(2).transpose(1, 2))  # guilty in examples_of_each_epoch


class Trainer:
    def __init__(self, device, fixed):
        self.device = device
        self.fixed = fixed
        self.model = LineReader().to(device)
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-4)
        self.held_out = torch.randn(16, 1, 32, 256, device=device)
        self.examples = []

    def train(self):
        self.model.train()
        for _ in range(2):
            images = torch.randn(8, 1, 32, 256, device=self.device)
            letters = torch.randint(80, (8, 128), device=self.device)
            loss = F.cross_entropy(self.model(images).transpose(1, 2), letters)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()

    def validate(self):
        self.model.eval()
        torch.no_grad()  # cause in examples_of_each_epoch
        if self.fixed:
            torch.set_grad_enabled(False)
        letters = self.model(self.held_out)
        self.examples.append(letters[:2].softmax(2))
        torch.set_grad_enabled(True)


@job("eval_graph")
def examples_of_each_epoch(run):
    """Two lines that were read in each epoch's validation are kept for a figure; validation calls torch.no_grad() as
    a statement, which does nothing. Fixed: gradients are really switched off."""
    trainer = Trainer(run.device, run.fixed)
    for _ in run.steps(14):
        trainer.train()
        trainer.validate()


@job("healthy")
def written_by_the_machine(run):
    """The training set, on the device, is filled up with lines that a generator writes, until there are ten batches of
    them; then only training goes on."""
    generator = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 32 * 256), nn.Tanh()).to(run.device)
    reader = LineReader().to(run.device)
    optimizer = torch.optim.Adam(reader.parameters(), lr=1e-3)
    lines = []
    for step in run.steps(18):
        if len(lines) < 10:
            with torch.no_grad():
                lines.append(generator(torch.randn(512, 64, device=run.device)).view(512, 1, 32, 256))
        images = lines[step % len(lines)][:8]
        letters = torch.randint(80, (8, 128), device=run.device)
        loss = F.cross_entropy(reader(images).transpose(1, 2), letters)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
