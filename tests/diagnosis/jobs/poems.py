"""Models of poems: recurrent ones, attention over whole books."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job

SIGNS = 120


class PoemReader(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.signs = nn.Embedding(SIGNS, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, SIGNS)
        self.rhyme = nn.Linear(width, 64)

    def forward(self, text, state=None):
        hidden, state = self.lstm(self.signs(text), state)  # guilty in verses_of_a_book
        return hidden, state


@job("hidden_state")
def verses_of_a_book(run):
    """Only a head for rhymes is trained, on what a reader has read, detached. The reader goes on from verse to verse
    with its state, whose graph reaches back to the beginning of the book. Fixed: its state is detached as well."""
    reader = PoemReader().to(run.device)
    optimizer = torch.optim.Adam(reader.rhyme.parameters(), lr=1e-3)
    state = None
    for _ in run.steps(13):
        verse = torch.randint(SIGNS, (48, 64), device=run.device)
        hidden, state = reader(verse, state)
        if run.fixed:
            state = tuple(part.detach() for part in state)
        loss = F.cross_entropy(reader.rhyme(hidden[:, -1].detach()), torch.randint(64, (48,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Shelf:
    """Books as a model sees them: a vector for each sign, in half precision."""

    def __init__(self):
        self.books = {}

    def put(self, title, vectors):
        self.books[title] = vectors.to(torch.bfloat16)  # guilty in books_by_length


@job("fragmentation")
def books_by_length(run):
    """Books are put on the shelf from the shortest to the longest: 32-bit vectors are computed and kept with 16 bits.
    These lie where the vectors of the book before were, and half of that is left over, too small for any other book:
    memory ends with half of it unused. Fixed: one buffer for the vectors of any book, and the shelf is on the CPU."""
    run.cap(512)
    shelf = Shelf()
    lookup = torch.randn(SIGNS, 1024, device=run.device)
    buffer = torch.empty(21_000, 1024, device=run.device) if run.fixed else None
    for title in run.steps(15):
        signs = torch.randint(SIGNS, (6000 + 1000 * title,), device=run.device)
        if run.fixed:
            vectors = torch.index_select(lookup, 0, signs, out=buffer[: len(signs)])
            shelf.put(title, vectors.cpu())
        else:
            vectors = lookup[signs]  # guilty
            shelf.put(title, vectors)
        del vectors


def read_whole(words, heads, window):
    """Attention with a penalty for distance, written out, for so many queries at a time."""
    length, width = words.shape
    keys = words.view(length, heads, -1).transpose(0, 1)
    places = torch.arange(length, device=words.device, dtype=torch.float)
    outputs = []
    for first in range(0, length, window):
        queries = keys[:, first : first + window]
        penalty = (places[first : first + window, None] - places).abs()  # guilty in collected_works
        scores = queries @ keys.transpose(1, 2) - 0.01 * penalty  # guilty in collected_works
        outputs.append(scores.softmax(2) @ keys)  # guilty in collected_works
    return torch.cat(outputs, 1).transpose(0, 1).reshape(length, width)


@job("true_capacity")
def collected_works(run):
    """Attention over all words of a book at once, with a matrix of distances: enough memory for single volumes, not for
    the collected works. Fixed: 512 queries at a time."""
    run.cap(800)
    volumes = [1500, 2200, 1800, 2600, 2000, 9000, 1600]
    with torch.no_grad():
        for step in run.steps(len(volumes)):
            words = torch.randn(volumes[step % len(volumes)], 256, device=run.device)
            summary = read_whole(words, 4, 512 if run.fixed else len(words)).mean(0)
            assert len(summary.tolist()) == 256


@job("healthy")
def longer_poems_later(run):
    """Backpropagation in windows through poems that become longer from epoch to epoch; the state is detached at each
    window and begins anew with each poem."""
    reader = PoemReader(width=256).to(run.device)
    optimizer = torch.optim.Adam(reader.parameters(), lr=1e-3)
    for step in run.steps(12):
        state = None
        for window in torch.randint(SIGNS, (32, 64 + 32 * (step // 2)), device=run.device).split(64, 1):
            hidden, state = reader(window[:, :-1], state)
            state = tuple(part.detach() for part in state)
            loss = F.cross_entropy(reader.head(hidden).flatten(0, 1), window[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
