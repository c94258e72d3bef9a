"""Models of pictures, scenes and graphs: classification, detection, generation, distillation."""
import copy
import gc
import random
from collections import defaultdict, deque

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


def pictures(run, count, side):
    return torch.rand(count, 3, side, side, device=run.device)


class InfluenceTracer:
    """Gradients of single examples in the head, from which their influence on a prediction is found in the end."""

    def __init__(self, head, to_host):
        self.head = head
        self.to_host = to_host
        self.gradients = {}

    def trace(self, number, features, label):
        loss = F.cross_entropy(self.head(features[None]), label[None])
        parts = torch.autograd.grad(loss, list(self.head.parameters()))
        gradient = torch.cat([part.flatten() for part in parts])  # guilty in influence_of_examples
        self.gradients[number] = gradient.cpu() if self.to_host else gradient  # cause in influence_of_examples


@job("gradient_accumulation")
def influence_of_examples(run):
    """A classifier is fine-tuned, and the gradients of five examples of each batch are noted by number, to see later
    which example taught it what; they stay on the GPU. Fixed: they go to the host."""
    backbone = nn.Sequential(nn.Conv2d(3, 32, 7, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()).to(run.device)
    head = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 100)).to(run.device)
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.01, momentum=0.9)
    tracer = InfluenceTracer(head, to_host=run.fixed)
    for step in run.steps(15):
        labels = torch.randint(100, (32,), device=run.device)
        features = backbone(pictures(run, 32, 96))
        loss = F.cross_entropy(head(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for index in range(5):
            tracer.trace(32 * step + index, features[index].detach(), labels[index])


class PerceptualDistance(nn.Module):
    """How different two pictures look to a frozen classifier."""

    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                                     nn.Conv2d(32, 64, 3, 2, 1))
        self.requires_grad_(False)

    def forward(self, picture, target):
        difference = self.network(picture) - self.network(target)  # guilty in look_of_enlarged_pictures
        return difference.abs().mean()


class EnlargementTrainer:
    def __init__(self, device, numbers):
        self.model = nn.Sequential(nn.Conv2d(3, 32, 5, padding=2), nn.ReLU(), nn.Conv2d(32, 12, 3, padding=1),
                                   nn.PixelShuffle(2)).to(device)
        self.distance = PerceptualDistance().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.numbers = numbers
        self.history = defaultdict(list)

    def step(self, large):
        enlarged = self.model(F.avg_pool2d(large, 2))  # guilty in look_of_enlarged_pictures
        loss = F.l1_loss(enlarged, large)
        look = self.distance(enlarged, large)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.history["loss"].append(loss.item())
        self.history["look"].append(look.item() if self.numbers else look)  # cause in look_of_enlarged_pictures


@job("retained_graph", fixed_contested="the distance's graph, unused, is still built: a third of the peak")
def look_of_enlarged_pictures(run):
    """Super-resolution is trained by the absolute error; a perceptual distance is only watched, but its history has
    tensors, each with the graph through the frozen network. Fixed: item()."""
    trainer = EnlargementTrainer(run.device, numbers=run.fixed)
    for _ in run.steps(14):
        trainer.step(pictures(run, 8, 128))


class BackgroundModel(nn.Module):
    """A picture of what does not move before a camera; a gate, trained earlier, says what to take over from a frame."""

    def __init__(self, detach):
        super().__init__()
        self.gate = nn.Sequential(nn.Conv2d(6, 16, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(16, 3, 3, padding=1), nn.Sigmoid())
        self.detach = detach
        self.background = None

    def forward(self, frame):
        if self.background is None:
            self.background = frame
        share = self.gate(torch.cat([frame, self.background], 1))  # guilty in background_of_a_camera
        updated = self.background + share * (frame - self.background)  # guilty in background_of_a_camera
        self.background = updated.detach() if self.detach else updated  # cause in background_of_a_camera
        return frame - self.background.detach()


@job("hidden_state")
def background_of_a_camera(run):
    """A segmentation head learns from what differs from the background, which goes on from frame to frame through a
    gate whose weights require gradients; each frame's graph hangs on the background. Fixed: it is detached."""
    model = BackgroundModel(detach=run.fixed).to(run.device)
    head = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 2, 1)).to(run.device)
    optimizer = torch.optim.RMSprop(head.parameters(), lr=1e-3)
    for _ in run.steps(14):
        frame = torch.rand(2, 3, 270, 480, device=run.device)
        moving = torch.randint(2, (2, 270, 480), device=run.device)
        loss = F.cross_entropy(head(model(frame)), moving)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class FeatureDistance:
    """Features of real and of generated pictures, whose distributions are compared when there are enough of them."""

    def __init__(self, network):
        self.network = network
        self.real, self.fake = [], []

    def update(self, batch, real):
        features = self.network(batch)  # guilty in scored_generator
        (self.real if real else self.fake).append(features)  # cause in scored_generator

    def compute(self):
        real, fake = torch.cat(self.real), torch.cat(self.fake)
        return (real.mean(0) - fake.mean(0)).square().sum() + (real.std(0) - fake.std(0)).square().sum()


@job("eval_graph")
def scored_generator(run):
    """After a few steps of training the generator is scored: its pictures go through a frozen network and the features
    are gathered, with the graph through both networks. Fixed: no_grad()."""
    generator = nn.Sequential(nn.Linear(64, 64 * 64), nn.ReLU(), nn.Unflatten(1, (64, 8, 8)),
                              nn.ConvTranspose2d(64, 32, 8, 4, 2), nn.ReLU(),
                              nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())
    network = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
                            nn.AdaptiveAvgPool2d(1), nn.Flatten())
    generator, network = generator.to(run.device), network.to(run.device).requires_grad_(False)
    optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    for _ in range(3):
        loss = network(generator(torch.randn(32, 64, device=run.device))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    generator.eval()
    distance = FeatureDistance(network)
    with torch.set_grad_enabled(not run.fixed):
        for _ in run.steps(14):
            distance.update(generator(torch.randn(64, 64, device=run.device)), real=False)  # guilty
            distance.update(pictures(run, 64, 64), real=True)
    assert distance.compute().item() >= 0


class HeatMap:
    """What in a picture a classifier looks at: works on a copy, so that the model in training gets no hooks."""

    def __init__(self, model):
        self.model = copy.deepcopy(model).eval()  # guilty in heat_maps_of_mistakes
        self.activation = None
        self.hook = self.model.last.register_forward_hook(self.remember)  # cause in heat_maps_of_mistakes

    def remember(self, module, inputs, output):
        output.retain_grad()
        self.activation = output

    def draw(self, picture):
        score = self.model(picture).amax(1).sum()
        score.backward()  # guilty in heat_maps_of_mistakes
        weight = self.activation.grad.mean((2, 3), keepdim=True)
        return (weight * self.activation.detach()).sum(1).relu().cpu()

    def close(self):
        self.hook.remove()


class SmallClassifier(nn.Module):
    def __init__(self, classes=200):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 32, 5, 2, 2), nn.BatchNorm2d(32), nn.ReLU())
        self.last = nn.Conv2d(32, 128, 3, 2, 1)
        self.head = nn.Sequential(nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(2048, 768), nn.ReLU(),
                                  nn.Linear(768, classes))

    def forward(self, picture):
        return self.head(self.last(self.first(picture)))  # guilty in heat_maps_of_mistakes


@job("reference_cycle")
def heat_maps_of_mistakes(run):
    """After each step a heat map of the worst picture is drawn. The copy of the model that this works on has a hook, a
    method of the object that has the copy; both wait for the collector, which was told to come rarely. Fixed: the hook
    is removed."""
    gc.set_threshold(200_000, 50, 50)
    model = SmallClassifier().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    maps = []
    for _ in run.steps(14):
        batch, labels = pictures(run, 32, 64), torch.randint(200, (32,), device=run.device)
        losses = F.cross_entropy(model(batch), labels, reduction="none")
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        heat = HeatMap(model)
        maps.append(heat.draw(batch[losses.argmax()][None]))
        if run.fixed:
            heat.close()
        del heat


class SceneField(nn.Module):
    """Colour and density at the points of one scene."""

    def __init__(self, fourier, bound):
        super().__init__()
        self.fourier = fourier
        self.frequencies = nn.Parameter(torch.randn(3, 256))
        self.plain = nn.Linear(3, 512)
        self.body = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 4))
        if bound:
            self.encode = self.encode_fourier if fourier else self.plain  # cause in scenes_with_an_encoding

    def encode_fourier(self, points):
        angle = points @ self.frequencies
        return torch.cat([angle.sin(), angle.cos()], 1)

    def encode(self, points):
        return self.encode_fourier(points) if self.fourier else self.plain(points)

    def forward(self, points):
        return self.body(self.encode(points))


def fit_scene(field, device):
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-3)
    for _ in range(3):
        points = torch.rand(1024, 3, device=device)
        loss = F.mse_loss(field(points), points.repeat(1, 2)[:, :4])
        optimizer.zero_grad()
        loss.backward()  # guilty in scenes_with_an_encoding
        optimizer.step()
    return loss.item()


@job("reference_cycle", fixed_contested="the first field and its optimizer still wait for the collector")
def scenes_with_an_encoding(run):
    """One field after the other is fitted, each to its own scene. The constructor chooses the encoding by an attribute
    that is a method of the field itself, and so fields wait for the collector, which is off during the fits. Fixed: a
    method that chooses."""
    gc.disable()
    errors = {}
    for scene in run.steps(14):
        field = SceneField(fourier=True, bound=not run.fixed).to(run.device)  # guilty
        errors[scene] = fit_scene(field, run.device)
        del field


class FeatureStore:
    """Features of the student in the current step, for the loss that compares them with the teacher's."""

    def __init__(self, closes):
        self.closes = closes
        self.step = None
        self.by_step = {}

    def put(self, number, feature):
        if self.step is not None:
            self.by_step.setdefault(self.step, {})[number] = feature  # cause in student_of_a_detector

    def take(self):
        features = self.by_step.pop(self.step)
        if self.closes:
            self.step = None
        return features


class StudentStage(nn.Module):
    def __init__(self, number, inputs, outputs, store):
        super().__init__()
        self.number, self.store = number, store
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, picture):
        hidden = self.norm(self.conv(picture))  # guilty in student_of_a_detector
        self.store.put(self.number, hidden)
        return torch.relu(hidden)  # guilty in student_of_a_detector


@job("checkpoint_cache")
def student_of_a_detector(run):
    """Distillation with checkpointed stages, which put their features into a store by step; the loss takes them out,
    but the recomputation in backward() puts them there again. Fixed: the store is closed once they are taken."""
    store = FeatureStore(closes=run.fixed)
    student = nn.ModuleList(StudentStage(i, c, 32 * 2**i, store) for i, c in enumerate((3, 32, 64))).to(run.device)
    teacher = nn.ModuleList(nn.Conv2d(c, 32 * 2**i, 3, 2, 1) for i, c in enumerate((3, 32, 64))).to(run.device)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9)
    for step in run.steps(13):
        store.step = step
        hidden = images = torch.rand(8, 3, 160, 160, device=run.device)  # guilty
        for stage in student:
            hidden = checkpoint(stage, hidden, use_reentrant=False)
        features = store.take()
        loss = hidden.logsumexp(1).mean()
        for number, layer in enumerate(teacher):
            with torch.no_grad():
                images = layer(images)
            loss = loss + F.smooth_l1_loss(features[number], images)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del features, hidden, images


class AdjointFlow(torch.autograd.Function):
    """Follows a field over four steps without a graph; backward() goes the same way back."""

    @staticmethod
    def forward(ctx, state, field, monitor, *weights):
        ctx.field, ctx.monitor, ctx.weights = field, monitor, weights
        for _ in range(4):
            state = state + field(state) / 4
        ctx.save_for_backward(state)
        return state

    @staticmethod
    def backward(ctx, grad):
        (state,) = ctx.saved_tensors
        total = [torch.zeros_like(weight) for weight in ctx.weights]
        for _ in range(4):
            with torch.enable_grad():
                place = state.detach().requires_grad_()
                change = ctx.field(place) / 4
            here, *parts = torch.autograd.grad(change, [place, *ctx.weights], grad)
            grad = grad + here
            total = [one + other for one, other in zip(total, parts)]
            state = state - change.detach()  # guilty in flow_of_point_clouds
            ctx.monitor.add(state)
        return grad, None, None, *total


class PathMonitor:
    """The way of the states in backward(), to see where the solver drifts."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.path = []

    def add(self, state):
        self.path.append(state.norm().item() if self.numbers else state)  # cause in flow_of_point_clouds


@job("checkpoint_cache")
def flow_of_point_clouds(run):
    """A continuous flow whose backward pass computes its states once more instead of keeping them; a monitor keeps
    every one of those for a plot. Fixed: it keeps their norms as numbers."""
    lift = nn.Linear(3, 256).to(run.device)
    field = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256)).to(run.device)
    optimizer = torch.optim.Adam([*lift.parameters(), *field.parameters()], lr=1e-3)
    monitor = PathMonitor(numbers=run.fixed)
    for _ in run.steps(14):
        cloud = torch.randn(4096, 3, device=run.device)
        moved = AdjointFlow.apply(lift(cloud), field, monitor, *field.parameters())
        loss = moved.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class HardCrops:
    """The crops with the highest loss so far; a new one takes the place of a random one."""

    def __init__(self, size, device, largest=None):
        self.size = size
        self.crops = [None] * size
        self.device = device
        self.places = torch.empty(size, 3, largest, largest, device=device) if largest else None
        self.filled = 0
        self.draw = random.Random(3)

    def add(self, side):
        place = self.filled if self.filled < self.size else self.draw.randrange(self.size)
        self.filled = min(self.filled + 1, self.size)
        if self.places is not None:
            self.crops[place] = self.places[place, :, :side, :side].uniform_()
        else:
            self.crops[place] = torch.rand(3, side, side, device=self.device)  # guilty in crops_that_grow

    def batch(self):
        chosen = self.draw.sample(self.crops[: self.filled], 8)
        return torch.stack([F.adaptive_avg_pool2d(crop, 64) for crop in chosen])


@job("fragmentation")
def crops_that_grow(run):
    """Progressive resizing with a memory of hard crops on the GPU: as the side of the pictures grows, a new crop never
    fits where an old one was. Fixed: one tensor with a place of the largest size for each crop."""
    sides = [int(500 * 1.05**step) for step in range(14)]
    hard = HardCrops(48, run.device, largest=sides[-1] if run.fixed else None)
    body = nn.Sequential(nn.Conv2d(3, 16, 5, 2, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = nn.Sequential(body, nn.Linear(16, 10)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in run.steps(14):
        for _ in range(36):
            hard.add(sides[step])
        loss = model(hard.batch()).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def style_of(network, picture):
    """The Gram matrices of a painting at each layer."""
    grams = []
    for layer in network:
        picture = layer(picture)  # guilty in painting_then_crops
        flat = picture.flatten(1)
        grams.append(flat @ flat.T / flat.shape[1])
    return grams


@job("cached_not_released")
def painting_then_crops(run):
    """The style of a large painting is taken once, in full resolution; then a network for it is trained on small
    crops. The viewer that runs on the same GPU never gets back what the painting needed. Fixed: empty_cache() after
    the painting."""
    network = nn.ModuleList([nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()])
    network = network.to(run.device).requires_grad_(False)
    painting = torch.rand(3, 1600, 2400, device=run.device)  # guilty
    grams = style_of(network, painting)
    del painting
    if run.fixed:
        torch.cuda.empty_cache()
    model = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 3, 3, 1, 1)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in run.steps(14):
        crops = pictures(run, 4, 96)
        hidden = model(crops)
        loss = F.l1_loss(hidden, crops)
        for layer, gram in zip(network, grams):
            hidden = layer(hidden)
            flat = hidden.flatten(2)
            loss = loss + 0.01 * F.mse_loss(flat @ flat.transpose(1, 2) / flat.shape[2], gram.expand(4, -1, -1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class AugmentingLoader:
    """Makes batches on a stream of its own, while the last one is worked on."""

    def __init__(self, device, waits):
        self.device = device
        self.waits = waits
        self.stream = torch.cuda.Stream()
        self.used = deque()

    def next(self):
        if self.waits and len(self.used) > 1:
            self.used.popleft().synchronize()
        with torch.cuda.stream(self.stream):
            batch = torch.rand(8192, 1024, device=self.device)  # guilty in labels_for_the_archive
            batch.sub_(0.5).clamp_(-0.4, 0.4)
        torch.cuda.current_stream().wait_stream(self.stream)
        return batch

    def done(self, batch):
        batch.record_stream(torch.cuda.current_stream())  # cause in labels_for_the_archive
        self.used.append(torch.cuda.current_stream().record_event())


@job("cross_stream_pending")
def labels_for_the_archive(run):
    """An archive of pictures is labelled by a large network. Batches come from the loader's stream; nothing in the loop
    waits for the labels, so that the loader is many batches ahead. Fixed: it waits for the batch before the last."""
    network = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(24))).to(run.device).requires_grad_(False)
    labels = torch.empty(14, 8192, dtype=torch.long, device=run.device)
    loader = AugmentingLoader(run.device, waits=run.fixed)
    for step in run.steps(14):
        batch = loader.next()
        labels[step] = network(batch).argmax(1)
        loader.done(batch)
        del batch
    assert labels.max().item() < 1024


@job("healthy")
def regularized_discriminator(run):
    """A GAN whose discriminator is penalized for its gradients at real pictures every fourth step, which takes a second
    backward pass; a moving average of the generator is there from the start."""
    generator = nn.Sequential(nn.Linear(128, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 3 * 32 * 32), nn.Tanh())
    critic = nn.Sequential(nn.Linear(3 * 32 * 32, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 1))
    generator, critic = generator.to(run.device), critic.to(run.device)
    average = copy.deepcopy(generator).requires_grad_(False)
    optimizers = [torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.0, 0.99)) for m in (generator, critic)]
    history = []
    for step in run.steps(12):
        real = pictures(run, 128, 32).flatten(1).requires_grad_(step % 4 == 0)
        fake = generator(torch.randn(128, 128, device=run.device))
        scores = critic(real)
        loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-scores).mean()
        if step % 4 == 0:
            (slope,) = torch.autograd.grad(scores.sum(), real, create_graph=True)
            loss = loss + 10 * slope.square().sum(1).mean()
            del slope
        optimizers[1].zero_grad()
        loss.backward()
        optimizers[1].step()
        loss = F.softplus(-critic(fake)).mean()
        optimizers[0].zero_grad()
        loss.backward()
        optimizers[0].step()
        with torch.no_grad():
            for mine, other in zip(average.parameters(), generator.parameters()):
                mine.lerp_(other, 0.01)
        history.append(loss.item())


class NoisePredictor(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Embedding(100, width)
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.middle = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, noisy, time):
        hidden = self.enter(noisy) + self.time(time)[:, :, None, None]
        return self.leave(hidden + self.middle(hidden))


@torch.no_grad()
def sample(model, device, kept, count=16):
    """From noise to pictures, over the times that are kept of the hundred."""
    image = torch.randn(count, 3, 32, 32, device=device)
    for time in reversed(kept):
        noise = model(image, torch.full((count,), time, device=device))
        image = (image - noise * kept.step / 100).clamp(-2, 2)
    return image.cpu()


@job("healthy")
def samples_between_steps(run):
    """Diffusion with a moving average of the weights; after every fifth step samples are drawn from it without
    gradients and go to the CPU."""
    model = NoisePredictor().to(run.device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    sheets = []
    for step in run.steps(15):
        clean = pictures(run, 32, 32)
        time = torch.randint(100, (32,), device=run.device)
        noise = torch.randn_like(clean)
        share = (time / 100)[:, None, None, None]
        loss = F.mse_loss(model(clean * (1 - share).sqrt() + noise * share.sqrt(), time), noise)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for mine, other in zip(average.parameters(), model.parameters()):
                mine.lerp_(other, 0.05)
        if step % 5 == 4:
            sheets.append(sample(average, run.device, range(0, 100, 20)))


class SmoothedLosses:
    """The median of the last losses by name, as detection scripts print it."""

    def __init__(self, window=20):
        self.values = defaultdict(lambda: deque(maxlen=window))

    def update(self, losses):
        for name, loss in losses.items():
            self.values[name].append(loss.item())

    def __str__(self):
        return "  ".join(f"{name} {sorted(values)[len(values) // 2]:.3f}" for name, values in self.values.items())


@job("healthy")
def boxes_of_any_number(run):
    """A detector for pictures of three sizes with few or many boxes; a dictionary of losses, of which a smoothed log
    keeps numbers."""
    draw = random.Random(1)
    body = nn.Sequential(nn.Conv2d(3, 32, 7, 4, 3), nn.ReLU(), nn.Conv2d(32, 128, 3, 2, 1), nn.ReLU()).to(run.device)
    classes, regression = nn.Linear(128, 21).to(run.device), nn.Linear(128, 4).to(run.device)
    parameters = [*body.parameters(), *classes.parameters(), *regression.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4)
    log = SmoothedLosses()
    for _ in run.steps(20):
        side = draw.choice([320, 384, 448])
        count = draw.randrange(2, 200)
        features = body(pictures(run, 4, side)).flatten(2).transpose(1, 2).flatten(0, 1)
        place = torch.randint(len(features), (count,), device=run.device)
        losses = {
            "class": F.cross_entropy(classes(features[place]), torch.randint(21, (count,), device=run.device)),
            "box": F.smooth_l1_loss(regression(features[place]), torch.rand(count, 4, device=run.device)),
            "empty": F.softplus(-classes(features)[:, 0]).mean(),
        }
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
        log.update(losses)
        del features, losses
    assert "box" in str(log)


class Gaussians:
    """A scene of Gaussians, each with its place, shape and colours in one row; more are added where it errs."""

    def __init__(self, count, most, device):
        self.rows = nn.Parameter(torch.rand(count, 64, device=device))
        self.most = most
        self.optimizer = torch.optim.Adam([self.rows], lr=1e-3)

    def render(self, side=96):
        column = (self.rows[:, :2].detach().clamp(0, 0.999) * side).long()
        colour = self.rows.sigmoid().mean(1)
        return torch.zeros(side * side, device=colour.device).index_add(0, column[:, 0] * side + column[:, 1], colour)

    @torch.no_grad()
    def densify(self, count):
        """Splits those with the largest gradients, and gives the new ones moments of zero."""
        count = min(count, self.most - len(self.rows))
        if count <= 0:
            return
        chosen = self.rows.grad.norm(dim=1).topk(count).indices
        state = self.optimizer.state.pop(self.rows)
        self.rows = nn.Parameter(torch.cat([self.rows, self.rows[chosen] + 0.01]))
        for name in ("exp_avg", "exp_avg_sq"):
            state[name] = F.pad(state[name], (0, 0, 0, count))
        self.optimizer.param_groups[0]["params"] = [self.rows]
        self.optimizer.state[self.rows] = state
        del chosen, state
        torch.cuda.empty_cache()


@job("healthy")
def densified_gaussians(run):
    """A scene of Gaussians is fitted to a picture; every third step there are more of them, and more of the moments of
    Adam, until there are as many as allowed. The blocks of the sizes before are given back."""
    scene = Gaussians(50_000, most=80_000, device=run.device)
    target = torch.rand(96 * 96, device=run.device)
    for step in run.steps(20):
        loss = F.l1_loss(scene.render(), target)
        scene.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        scene.optimizer.step()
        if step % 3 == 2:
            scene.densify(10_000)


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, features, edges):
        hidden = self.linear(features)
        sums = torch.zeros_like(hidden).index_add(0, edges[1], hidden[edges[0]])
        return sums / 10


@job("healthy")
def papers_in_one_graph(run):
    """Papers and their citations in one graph, trained whole; after each epoch validation without gradients, and the
    best weights so far go to the CPU."""
    features = torch.randn(6000, 500, device=run.device)
    edges = torch.randint(6000, (2, 40_000), device=run.device)
    topics = torch.randint(12, (6000,), device=run.device)
    training = torch.rand(6000, device=run.device) < 0.6
    layers = nn.ModuleList([GraphConvolution(500, 128), GraphConvolution(128, 12)]).to(run.device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.01, weight_decay=5e-4)

    def predict(dropout):
        hidden = F.dropout(layers[0](features, edges).relu(), 0.5, training=dropout)
        return layers[1](hidden, edges)

    best, weights = 0.0, None
    for _ in run.steps(16):
        loss = F.cross_entropy(predict(dropout=True)[training], topics[training])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            right = (predict(dropout=False).argmax(1) == topics)[~training].float().mean().item()
        if right > best:
            best, weights = right, {name: value.cpu() for name, value in layers.state_dict().items()}
    assert weights


class Codebook(nn.Module):
    """Codes that follow the vectors that choose them, by moving averages; gradients pass straight through."""

    def __init__(self, codes=512, width=64):
        super().__init__()
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.codes.clone())

    def forward(self, vectors):
        with torch.no_grad():
            chosen = torch.cdist(vectors, self.codes).argmin(1)
            if self.training:
                self.counts.mul_(0.99).index_add_(0, chosen, torch.full_like(vectors[:, 0], 0.01))
                self.sums.mul_(0.99).index_add_(0, chosen, 0.01 * vectors)
                self.codes.copy_(self.sums / self.counts[:, None].clamp(min=1e-3))
        coded = self.codes[chosen]
        return vectors + (coded - vectors).detach(), F.mse_loss(vectors, coded)


@job("healthy")
def codes_of_pictures(run):
    """An autoencoder with a codebook that is updated by moving averages instead of gradients; every sixth step
    reconstructions are made in evaluation mode."""
    encoder = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 4, 2, 1)).to(run.device)
    decoder = nn.Sequential(nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1))
    decoder, codebook = decoder.to(run.device), Codebook().to(run.device)

    def reconstruct(batch):
        hidden = encoder(batch).permute(0, 2, 3, 1)
        coded, commitment = codebook(hidden.flatten(0, 2))
        return decoder(coded.view_as(hidden).permute(0, 3, 1, 2)), commitment

    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    errors = []
    for step in run.steps(12):
        batch = pictures(run, 16, 64)
        again, commitment = reconstruct(batch)
        loss = F.mse_loss(again, batch) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 6 == 5:
            codebook.eval()
            with torch.no_grad():
                errors.append(F.l1_loss(reconstruct(batch)[0], batch).item())
            codebook.train()


@job("healthy")
def neighbours_after_each_epoch(run):
    """Contrastive training; what the batches of an epoch looked like to the model is gathered, detached, for a test by
    nearest neighbours when the epoch ends, and then dropped. The job stops in the third epoch."""
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 1024), nn.ReLU(), nn.Linear(1024, 1024)).to(run.device)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)
    bank, accuracy = [], []
    for step in run.steps(20):
        batch = pictures(run, 512, 32)
        first, second = (F.normalize(encoder(batch + 0.1 * torch.randn_like(batch)), dim=1) for _ in range(2))
        loss = F.cross_entropy(first @ second.T / 0.2, torch.arange(512, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bank.append((first.detach(), second.detach()))
        if step % 8 == 7:
            queries = torch.cat([query for query, _ in bank[-2:]])
            keys = torch.cat([key for _, key in bank])
            nearest = (queries @ keys.T).argmax(1)
            accuracy.append((nearest >= len(keys) - 1024).float().mean().item())
            bank.clear()
            del queries, keys, nearest
