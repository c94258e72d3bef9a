"""Job adverts and who looks for a job: encoders of texts (BERT of the transformers library), rankings, clicks."""
import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, BertModel

from job import job

WORDS = 6000


class AdvertScorer(nn.Module):
    """How well an advert suits: a number for each text."""

    def __init__(self, width=256, layers=2):
        super().__init__()
        config = BertConfig(vocab_size=WORDS, hidden_size=width, num_hidden_layers=layers, num_attention_heads=4,
                            intermediate_size=2 * width, max_position_embeddings=256)
        self.encoder = BertModel(config, add_pooling_layer=False)
        self.head = nn.Linear(width, 1)

    def forward(self, texts):
        hidden = self.encoder(input_ids=texts).last_hidden_state  # guilty in best_epoch_of_a_scorer
        return self.head(hidden[:, 0]).squeeze(1)


def adverts(count, device, length=96):
    return torch.randint(WORDS, (count, length), device=device)


def train_epoch(model, optimizer, device):
    model.train()
    loss = F.binary_cross_entropy_with_logits(model(adverts(16, device)), torch.rand(16, device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def validate(model, device):
    """Scores of the adverts that nobody has learned from."""
    model.eval()
    return torch.cat([model(adverts(24, device)) for _ in range(2)])


@job("eval_graph")
def best_epoch_of_a_scorer(run):
    """After each short epoch the scores of a validation set are computed and kept, so that the best epoch can be chosen
    by any measure later. Gradients are on: all epochs keep the graph of their validation. Fixed: no_grad()."""
    model = AdvertScorer().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    epochs = []
    for _ in run.steps(10):
        train_epoch(model, optimizer, run.device)
        with torch.set_grad_enabled(not run.fixed):
            epochs.append(validate(model, run.device))  # cause
    assert torch.stack([scores.detach() for scores in epochs]).shape == (10, 48)


@job("cached_not_released", fixed_contested="213 of 268 MiB reserved lie free beside a block, never needed again")
def all_adverts_before_the_first_request(run):
    """A service encodes all adverts of the day in large batches as it starts, and answers then one request at a time,
    which needs little. What the batches needed stays reserved. Fixed: empty_cache() when it has started."""
    model = AdvertScorer(width=384).to(run.device).eval()
    with torch.no_grad():
        vectors = []
        for _ in range(2):
            hidden = model.encoder(input_ids=adverts(1024, run.device, 160)).last_hidden_state  # guilty
            vectors.append(hidden[:, 0].clone())
            del hidden
        vectors = torch.cat(vectors)
        if run.fixed:
            torch.cuda.empty_cache()
        for _ in run.steps(15):
            wish = model.encoder(input_ids=adverts(1, run.device, 48)).last_hidden_state[:, 0]
            assert len((wish @ vectors.T).topk(10).indices.tolist()[0]) == 10


def rank_of_clicks(sessions, adverts_known, clicked, part):
    """The rank that the advert got which was clicked next, for so many of the places in sessions at a time."""
    ranks = []
    for places, right in zip(sessions.split(part), clicked.split(part)):
        scores = places @ adverts_known.T  # guilty in clicks_of_the_largest_country
        chances = scores.log_softmax(1)  # guilty in clicks_of_the_largest_country
        ranks.append((chances > chances.gather(1, right[:, None])).sum(1))  # guilty in clicks_of_the_largest_country
        del scores, chances
    return torch.cat(ranks)


@job("true_capacity")
def clicks_of_the_largest_country(run):
    """Chances of all adverts of a country at all places of sessions, to see at which rank the next click is. They fit
    for small countries; the largest one has too many adverts. Fixed: 128 places at a time."""
    run.cap(700)
    countries = [9000, 14_000, 11_000, 20_000, 8000, 60_000, 12_000]
    with torch.no_grad():
        for step in run.steps(len(countries)):
            count = countries[step % len(countries)]
            known = torch.randn(count, 64, device=run.device)
            sessions = torch.randn(1600, 64, device=run.device)
            clicked = torch.randint(count, (1600,), device=run.device)
            ranks = rank_of_clicks(sessions, known, clicked, 128 if run.fixed else 1600)
            assert ranks.float().mean().item() < count


@job("healthy")
def clicks_with_two_optimizers(run):
    """Embeddings of people and adverts with sparse gradients and an optimizer for them, dense layers with another one;
    both skip a batch whose loss is not finite."""
    people = nn.Embedding(60_000, 64, sparse=True).to(run.device)
    offers = nn.Embedding(30_000, 64, sparse=True).to(run.device)
    dense = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1)).to(run.device)
    sparse_steps = torch.optim.SparseAdam([*people.parameters(), *offers.parameters()], lr=1e-3)
    dense_steps = torch.optim.Adagrad(dense.parameters(), lr=0.01)
    for _ in run.steps(16):
        who = torch.randint(60_000, (4096,), device=run.device)
        what = torch.randint(30_000, (4096,), device=run.device)
        logits = dense(torch.cat([people(who), offers(what)], 1)).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logits, torch.rand(4096, device=run.device))
        sparse_steps.zero_grad()
        dense_steps.zero_grad()
        if not torch.isfinite(loss):
            continue
        loss.backward()
        sparse_steps.step()
        dense_steps.step()
