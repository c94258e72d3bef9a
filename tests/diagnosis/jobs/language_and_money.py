"""Language models and search, banks and funds, and the offices of a country that read, sort and answer letters."""
import copy
import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Feed(nn.Module):
    """Some linear layers with one kind of activation between them."""

    def __init__(self, *widths, activation=torch.relu):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(one, other) for one, other in zip(widths, widths[1:]))
        self.activation = activation

    def forward(self, hidden):
        for layer in self.layers[:-1]:
            hidden = self.activation(layer(hidden))
        return self.layers[-1](hidden)  # guilty in answers_that_people_prefer


def train_clerk(head, letters, offices, rounds=3):
    """Teaches a head which office a letter belongs to."""
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(rounds):
        loss = F.cross_entropy(head(letters), offices)
        optimizer.zero_grad()
        loss.backward()  # guilty in clerks_of_each_district
        optimizer.step()
    return loss.item()


@job("gradient_accumulation")
def clerks_of_each_district(run):
    """Every district has a head of its own that sorts its letters. They are trained one after the other, each by an
    optimizer that is dropped afterwards; the gradients of the last round stay with the head. Fixed: they are set to
    None when a head is done."""
    heads = nn.ModuleDict({f"district {number}": Feed(1024, 2560, 1024) for number in range(16)}).to(run.device)
    districts = list(heads)
    errors = {}
    for step in run.steps(16):
        letters = torch.randn(256, 1024, device=run.device)
        offices = torch.randint(1024, (256,), device=run.device)
        head = heads[districts[step]]
        errors[districts[step]] = train_clerk(head, letters, offices)
        if run.fixed:
            for weight in head.parameters():
                weight.grad = None
    assert len(errors) == 16


class CreditScore(nn.Module):
    """A score from the fields of an application, each of which has an embedding."""

    def __init__(self, values=3000, fields=48, width=128):
        super().__init__()
        self.embed = nn.Embedding(values, width)
        self.mix = nn.Linear(width, width)
        self.judge = Feed(fields * width, 256, 1)

    def score(self, embedded):
        return self.judge(torch.tanh(self.mix(embedded)).flatten(1)).squeeze(1)


class ReasonBook:
    """Why applications were refused: how the score changes with each of their fields."""

    def __init__(self, model, summary):
        self.model = model
        self.summary = summary
        self.by_batch = {}

    def explain(self, number, applications):
        embedded = self.model.embed(applications).detach().requires_grad_()
        scores = self.model.score(embedded)
        (slope,) = torch.autograd.grad(scores.sum(), embedded)  # guilty in reasons_for_refusals
        if self.summary:
            slope = slope.norm(dim=2).cpu()
        self.by_batch[number] = slope  # cause in reasons_for_refusals
        return scores.detach().cpu()


@job("gradient_accumulation")
def reasons_for_refusals(run):
    """A bank has to give reasons for refusals, and takes the gradients of the score for them; the book of reasons has
    the whole gradients of all batches on the GPU. Fixed: one number per field, on the CPU."""
    model = CreditScore().to(run.device).requires_grad_(False)
    book = ReasonBook(model, summary=run.fixed)
    refused = 0
    for number in run.steps(15):
        applications = torch.randint(3000, (768, 48), device=run.device)
        refused += (book.explain(number, applications) < 0).sum().item()
    assert refused <= 15 * 768


class PreferenceTrainer:
    """Tunes a language model by rewards: policy and value are two heads over one trunk."""

    def __init__(self, device, vocabulary, numbers):
        self.trunk = Feed(512, 1024, 512).to(device)
        self.policy = nn.Linear(512, vocabulary).to(device)
        self.value = nn.Linear(512, 1).to(device)
        weights = [*self.trunk.parameters(), *self.policy.parameters(), *self.value.parameters()]
        self.optimizer = torch.optim.AdamW(weights, lr=1e-5)
        self.numbers = numbers
        self.log = {"policy": [], "value": []}

    def note(self, name, loss):
        self.log[name].append(loss.item() if self.numbers else loss)  # cause in answers_that_people_prefer

    def update(self, tokens, chosen, reward):
        hidden = self.trunk(tokens)  # guilty in answers_that_people_prefer
        value = self.value(hidden).squeeze(1)
        chances = torch.log_softmax(self.policy(hidden), 1)  # guilty in answers_that_people_prefer
        advantage = reward - value.detach()
        policy_loss = -(chances.gather(1, chosen[:, None]).squeeze(1) * advantage).mean()
        value_loss = F.mse_loss(value, reward)
        self.optimizer.zero_grad()
        policy_loss.backward(retain_graph=True)
        (0.5 * value_loss).backward()
        self.optimizer.step()
        self.note("policy", policy_loss)
        self.note("value", value_loss)


@job("retained_graph")
def answers_that_people_prefer(run):
    """A language model is tuned by preferences. The loss of the policy goes backward with retain_graph=True, since that
    of the value comes second; the log then has the loss with what its head saved for all words. Fixed: item()."""
    trainer = PreferenceTrainer(run.device, vocabulary=10_000, numbers=run.fixed)
    for _ in run.steps(14):
        tokens = torch.randn(768, 512, device=run.device)
        chosen = torch.randint(10_000, (768,), device=run.device)
        trainer.update(tokens, chosen, torch.randn(768, device=run.device))
    assert len(trainer.log["value"]) == 14


class LetterSorter(nn.Module):
    """The topic of a letter, and how urgent it is, for which there is no training yet in the first stage."""

    def __init__(self, graph_for_urgency):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(768, 1024), nn.GELU())
        self.topic = nn.Linear(1024, 80)
        self.urgency = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 1))
        self.graph_for_urgency = graph_for_urgency

    def forward(self, letters):
        hidden = self.trunk(letters)  # guilty in letters_by_topic_first
        with torch.set_grad_enabled(self.graph_for_urgency):
            urgency = self.urgency(hidden)  # guilty in letters_by_topic_first
        return {"topic": self.topic(hidden), "urgency": urgency}


class Callback:
    def step_ended(self, outputs):
        pass

    def epoch_ended(self):
        pass


class Histogram(Callback):
    """How urgent the letters of an epoch looked."""

    def __init__(self):
        self.outputs = []

    def step_ended(self, outputs):
        self.outputs.append(outputs["urgency"])  # cause in letters_by_topic_first

    def epoch_ended(self):
        values = torch.cat(self.outputs).detach().flatten()
        self.outputs.clear()
        return torch.histc(values, 20).tolist()


@job("retained_graph")
def letters_by_topic_first(run):
    """Letters are sorted by topic; their urgency will be learnt in a second stage, but a callback already gathers what
    the model says of it for a histogram at the end of the epoch, with the graph that no backward() frees. Fixed: as
    long as it is not trained, the urgency is computed without a graph."""
    model = LetterSorter(graph_for_urgency=not run.fixed).to(run.device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    callbacks = [Histogram()]
    for _ in run.steps(13):
        letters, topics = torch.randn(1024, 768, device=run.device), torch.randint(80, (1024,), device=run.device)
        outputs = model(letters)
        loss = F.cross_entropy(outputs["topic"], topics, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for callback in callbacks:
            callback.step_ended(outputs)
        del outputs
    for callback in callbacks:
        callback.epoch_ended()


class DecreeEncoder(nn.Module):
    """A vector for each paragraph of a decree."""

    def __init__(self, width=512):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, paragraphs):
        hidden = torch.sigmoid(self.widen(self.norm(paragraphs)))  # guilty in decrees_encoded_lazily
        return F.normalize(self.narrow(hidden), dim=1)  # guilty in decrees_encoded_lazily


def encode_all(encoder, shards):
    """The vectors of all shards, without gradients."""
    with torch.no_grad():
        return map(encoder, shards)  # cause in decrees_encoded_lazily


@job("eval_graph")
def decrees_encoded_lazily(run):
    """Decrees are encoded for an index on the host: map() is called within no_grad(), but the encoder only when the
    vectors are asked for, outside of it; their copies on the host have the graphs. Fixed: the loop that takes the
    vectors is without gradients as well."""
    encoder = DecreeEncoder().to(run.device).eval()
    shards = (torch.randn(2048, 512, device=run.device) for _ in range(1 << 30))  # guilty
    index = []
    with torch.set_grad_enabled(not run.fixed):
        encoded = encode_all(encoder, shards)
        for _ in run.steps(15):
            index.append(next(encoded).cpu())
    query = F.normalize(torch.randn(1, 512), dim=1)
    assert (torch.cat(index) @ query.T).max().item() <= 1.001


class Fund(nn.Module):
    """Positions for the next day, from today's signals and the positions so far."""

    def __init__(self, assets, width=1024):
        super().__init__()
        self.read = nn.Linear(2 * assets, width)
        self.decide = nn.Linear(width, assets)

    def forward(self, signals, positions):
        hidden = torch.tanh(self.read(torch.cat([signals, positions], 1)))  # guilty in positions_of_a_quarter
        return torch.tanh(self.decide(hidden))  # guilty in positions_of_a_quarter


@job("hidden_state")
def positions_of_a_quarter(run):
    """A fund learns to trade in many scenarios; gradients of the days of a quarter are summed on purpose before the
    optimizer takes a step. As trades cost money, positions go on from day to day, and with them the graph;
    retain_graph=True had made an error go away. Fixed: positions are detached in the evening."""
    fund = Fund(assets=256).to(run.device)
    optimizer = torch.optim.Adam(fund.parameters(), lr=1e-3)
    positions = torch.zeros(2048, 256, device=run.device)
    gains = []
    for _ in run.steps(14):
        signals, returns = torch.randn(2, 2048, 256, device=run.device)
        before, positions = positions, fund(signals, positions)  # cause
        trades = positions - before
        gain = (positions * returns).sum(1) - 0.01 * trades.square().sum(1)
        loss = -gain.mean() / gain.detach().std()
        loss.backward(retain_graph=not run.fixed)
        gains.append(gain.mean().item())
        if run.fixed:
            positions = positions.detach()
        del before, trades, gain, loss
    optimizer.step()


class VectorShelf:
    """Vectors of texts that were trained on, for finding hard negatives in a later stage."""

    def __init__(self):
        self.vectors = []

    def put(self, vectors):
        self.vectors.append(vectors)


class OneLongShelf(VectorShelf):
    def __init__(self, rows, width, device):
        super().__init__()
        self.space = torch.empty(rows, width, device=device)
        self.used = 0

    def put(self, vectors):
        self.vectors.append(self.space[self.used : self.used + len(vectors)].copy_(vectors))
        self.used += len(vectors)


@job("fragmentation")
def vectors_of_more_sentences(run):
    """A text encoder is trained with ever more sentences per step, in parts whose graphs live until backward(). The
    detached vectors of each part are put aside, each between the activations of two parts: what backward() frees is too
    small for the next step. Fixed: the vectors are copied to one tensor."""
    sizes = [int(1250 * 1.025**step) for step in range(14)]
    words = nn.EmbeddingBag(3000, 1024).to(run.device)
    project = nn.Linear(1024, 1024).to(run.device)
    topics = torch.randn(1024, 64, device=run.device)
    optimizer = torch.optim.SGD([*words.parameters(), *project.parameters()], lr=0.1)
    shelf = OneLongShelf(8 * sum(sizes), 1024, run.device) if run.fixed else VectorShelf()
    for step in run.steps(14):
        losses = []
        for _ in range(8):
            sentences = torch.randint(3000, (sizes[step], 12), device=run.device)
            vectors = project(words(sentences))  # guilty
            losses.append(F.cross_entropy(vectors @ topics, sentences[:, 0] % 64))
            shelf.put(vectors.detach())
            del vectors
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()


class HalfPrecisionStorage:
    """What autograd saves is stored in half precision, and restored when backward() asks for it."""

    def __init__(self, module, forgets):
        self.weights = {weight.data_ptr() for weight in module.parameters()}
        self.forgets = forgets
        self.stored = 0
        self.restored = {}

    def pack(self, tensor):
        if tensor.dtype != torch.float32 or tensor.numel() < 100_000 or tensor.data_ptr() in self.weights:
            return tensor
        self.stored += 1
        return self.stored, tensor.half()

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        number, half = packed
        if number not in self.restored:  # some nodes ask twice
            self.restored[number] = half.float()  # guilty in memos_in_half_storage
        return self.restored[number]

    def step_ended(self):
        if self.forgets:
            self.restored.clear()


class MemoBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, hidden):
        return hidden + self.feed(self.norm(hidden))


@job("checkpoint_cache")
def memos_in_half_storage(run):
    """A model of office memos saves activations in half precision by saved_tensors_hooks(). Restored ones are kept by
    number, because a node may ask twice, and nobody ever drops them. Fixed: they are dropped after each step."""
    model = nn.Sequential(*(MemoBlock(384) for _ in range(2)), nn.Linear(384, 1000)).to(run.device)
    storage = HalfPrecisionStorage(model, forgets=run.fixed)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    for _ in run.steps(12):
        memos, following = torch.randn(1024, 384, device=run.device), torch.randint(1000, (1024,), device=run.device)
        with torch.autograd.graph.saved_tensors_hooks(storage.pack, storage.unpack):
            loss = F.cross_entropy(model(memos), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        storage.step_ended()


def risk_of_scenarios(scenarios, assets, device):
    """Means and covariances of the assets over many scenarios of the next ten years."""
    shocks = torch.randn(scenarios, assets, device=device)  # guilty in pensions_after_the_scenarios
    paths = torch.expm1(0.1 * shocks)  # guilty in pensions_after_the_scenarios
    mean = paths.mean(0)
    spread = paths - mean  # guilty in pensions_after_the_scenarios
    return mean, spread.T @ spread / scenarios


@job("cached_not_released")
def pensions_after_the_scenarios(run):
    """A pension office takes means and covariances from many scenarios when it starts, and then answers single members
    all day with next to no memory; the reports that run on the same GPU get nothing of what the scenarios took. Fixed:
    empty_cache() after the scenarios."""
    with torch.inference_mode():
        mean, covariance = risk_of_scenarios(200_000, 384, run.device)
        if run.fixed:
            torch.cuda.empty_cache()
        answered = []
        for _ in run.steps(22):
            members = torch.rand(512, 384, device=run.device)
            members /= members.sum(1, keepdim=True)
            risk = (members @ covariance * members).sum(1).sqrt()
            answered.append(((members @ mean) - 1.6 * risk).cpu())
    assert len(answered) == 22


class TaxTranslator(nn.Module):
    """Tax forms from one language to another; wide layers, as the big models have them."""

    def __init__(self, words=16_000, width=1280):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.body = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, 4 * width), nn.GELU(),
                                  nn.Linear(4 * width, width))
        self.leave = nn.Linear(width, words)

    def forward(self, tokens):
        return self.leave(self.body(self.words(tokens)))


@job("true_capacity")
def adam_for_tax_forms(run):
    """The largest translator that the office's small GPU can hold with its gradients is to be tuned by Adam, whose two
    moments of every weight do not fit beside them. Fixed: plain SGD, that has no state."""
    run.cap(1000)
    model = TaxTranslator().to(run.device)  # guilty
    if run.fixed:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    for _ in run.steps(8):
        tokens = torch.randint(16_000, (128,), device=run.device)
        loss = F.cross_entropy(model(tokens), tokens.roll(1))
        optimizer.zero_grad()
        loss.backward()  # guilty
        optimizer.step()  # guilty


@job("healthy")
def greeks_beside_prices(run):
    """A network learns prices of options together with their slopes: the slope of its own price is taken with
    create_graph=True, and the loss on both goes backward through it."""
    network = Feed(64, 1024, 1024, 1, activation=F.softplus).to(run.device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    errors = []
    for _ in run.steps(15):
        market = torch.randn(2048, 64, device=run.device, requires_grad=True)
        price = network(market)
        (slope,) = torch.autograd.grad(price.sum(), market, create_graph=True)
        payoff = market.detach().mean(1, keepdim=True).relu()
        loss = F.mse_loss(price, payoff) + F.mse_loss(slope, (payoff > 0).float().expand_as(slope) / 64)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors.append(loss.item())
        del market, price, slope, payoff, loss


class LanguageDesk:
    """An adapter for each language with an optimizer of its own, made when the first letter in it comes."""

    def __init__(self, device):
        self.device = device
        self.adapters = {}

    def adapter(self, language):
        if language not in self.adapters:
            network = Feed(1024, 512, 1024, activation=F.silu).to(self.device)
            self.adapters[language] = network, torch.optim.Adam(network.parameters(), lr=1e-3)
        return self.adapters[language]

    def learn(self, language, hidden, target):
        network, optimizer = self.adapter(language)
        loss = F.mse_loss(hidden + network(hidden), target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()


@job("healthy")
def languages_of_a_town_hall(run):
    """Letters come in nine languages, rare ones late; each gets an adapter, with an Adam of its own, when it is first
    seen, and after some time all have one."""
    base = nn.Linear(768, 1024).to(run.device).requires_grad_(False)
    desk = LanguageDesk(run.device)
    draw = random.Random(11)
    languages = "de tr ar uk pl ro fa ti ku".split()
    for step in run.steps(26):
        arrived = min(1 + step // 2, len(languages))
        language = languages[arrived - 1] if step % 2 else languages[draw.randrange(arrived)]
        letters = torch.randn(512, 768, device=run.device)
        hidden = base(letters)
        desk.learn(language, hidden, hidden.flip(0))


class LateAverage:
    """The mean of the weights from some step on; before that there is none."""

    def __init__(self, start):
        self.start = start
        self.model = None
        self.count = 0

    @torch.no_grad()
    def update(self, step, model):
        if step < self.start:
            return
        self.count += 1
        if self.model is None:
            self.model = copy.deepcopy(model).requires_grad_(False)
            return
        for mean, weight in zip(self.model.parameters(), model.parameters()):
            mean.lerp_(weight, 1 / self.count)


@job("healthy")
def questions_to_the_ministry(run):
    """A model that ranks answers is tuned with clipping and a warm-up of the learning rate. From step eight on there is
    an average of its weights, and every fourth step it is evaluated without gradients."""
    model = Feed(1536, 2048, 1024, 1).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05)
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5))
    average = LateAverage(start=8)
    accuracies = []
    for step in run.steps(20):
        good, bad = torch.randn(2, 512, 1536, device=run.device)
        loss = -F.logsigmoid(model(good) - model(bad)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        warm_up.step()
        average.update(step, model)
        if step % 4 == 3:
            judge = average.model or model
            with torch.no_grad():
                accuracies.append((judge(good) > judge(bad)).float().mean().item())
        del good, bad, loss
    assert len(accuracies) == 5


class TradingDays:
    """The last days of a market on the GPU, one tensor for each, as many as a fit looks back."""

    def __init__(self, lookback, device):
        self.device = device
        self.days = deque(maxlen=lookback)

    def next_day(self):
        self.days.append(torch.randn(8192, 192, device=self.device))

    def batches(self):
        for day in self.days:
            yield day[:, :-1], day[:, -1:]


@job("healthy")
def fund_walks_forward(run):
    """Walk-forward test of a fund: each day a new model is fitted to the last eight days, which fill up first, and
    forecasts the next one; the forecasts go to the CPU, the model is dropped."""
    market = TradingDays(8, run.device)
    forecasts = []
    market.next_day()
    for _ in run.steps(14):
        model = Feed(191, 512, 1, activation=torch.tanh).to(run.device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for signals, returns in market.batches():
            loss = F.huber_loss(model(signals), returns)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        market.next_day()
        with torch.no_grad():
            forecasts.append(model(market.days[-1][:, :-1]).cpu())
        del model, optimizer, signals, returns, loss
