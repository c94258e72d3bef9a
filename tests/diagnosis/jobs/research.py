"""Research code: adversarial training, hyper-gradients, style transfer, checkpoints in the background."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job

CYCLES = 20_000_000  # about 10 ms on a GPU of 2 GHz


def small_network(classes=10):
    return nn.Sequential(nn.Conv2d(3, 16, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.Linear(4096, classes))


class FastGradientSign:
    """Adversarial training with one step along the sign of the pictures' gradients."""

    def __init__(self, model, optimizer, size=4 / 255):
        self.model = model
        self.optimizer = optimizer
        self.size = size

    def attack(self, pictures, labels):
        F.cross_entropy(self.model(pictures), labels).backward()  # guilty in stored_pictures
        return (pictures + self.size * pictures.grad.sign()).detach().clamp(0, 1)

    def update(self, pictures, labels):
        worst = self.attack(pictures, labels)
        loss = F.cross_entropy(self.model(worst), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


@job("gradient_accumulation")
def stored_pictures(run):
    """All pictures of a small data set lie on the GPU and were made to require gradients for the attack; each batch's
    gradient stays with it after its turn. Fixed: a detached view requires them, for one turn."""
    data = [torch.rand(64, 3, 128, 128, device=run.device) for _ in range(14)]
    labels = torch.randint(10, (14, 64), device=run.device)
    model = small_network().to(run.device)
    training = FastGradientSign(model, torch.optim.SGD(model.parameters(), lr=0.01))
    if not run.fixed:
        for pictures in data:
            pictures.requires_grad_()  # cause
    for step in run.steps(14):
        pictures = data[step % 14]
        training.update(pictures.detach().requires_grad_() if run.fixed else pictures, labels[step % 14])


class VirtualAdversary:
    """The direction in which the prediction changes most, by power iterations."""

    def __init__(self, size=2.0, rounds=2, small=1e-3):
        self.size, self.rounds, self.small = size, rounds, small

    def __call__(self, model, inputs):
        with torch.no_grad():
            clean = model(inputs).log_softmax(1)
        direction = torch.randn_like(inputs)
        for _ in range(self.rounds):
            direction = (self.small * F.normalize(direction, dim=1)).requires_grad_()
            distance = self.distance(model(inputs + direction), clean)
            (direction,) = torch.autograd.grad(distance, direction)
        return self.distance(model(inputs + self.size * F.normalize(direction, dim=1)), clean)

    @staticmethod
    def distance(logits, clean):
        return F.kl_div(logits.log_softmax(1), clean, log_target=True, reduction="batchmean")


@job("healthy")
def virtual_adversary(run):
    """Semi-supervised training: gradients with respect to the inputs in an inner loop, then the loss's own."""
    model = nn.Sequential(nn.Linear(784, 1024), nn.SiLU(), nn.Linear(1024, 1024), nn.SiLU(), nn.Linear(1024, 10))
    model = model.to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    penalty = VirtualAdversary()
    for _ in run.steps(10):
        loss = penalty(model, torch.rand(2000, 784, device=run.device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


@job("healthy")
def unrolled_learning_rate(run):
    """The learning rate is learned through five unrolled steps of training with create_graph=True; the weights start
    anew for each, and the graph ends with the outer backward pass."""
    rate = torch.tensor(-3.0, device=run.device, requires_grad=True)
    outer = torch.optim.Adam([rate], lr=0.05)
    learned = []
    for _ in run.steps(10):
        weights = [torch.randn(512, 1024, device=run.device) / 23, torch.randn(1024, 10, device=run.device) / 32]
        for weight in weights:
            weight.requires_grad_()

        def loss_of(rows):
            hidden = torch.tanh(torch.randn(rows, 512, device=run.device) @ weights[0])
            return F.cross_entropy(hidden @ weights[1], torch.zeros(rows, dtype=torch.long, device=run.device))

        for _ in range(5):
            gradients = torch.autograd.grad(loss_of(512), weights, create_graph=True)
            weights = [weight - rate.exp() * gradient for weight, gradient in zip(weights, gradients)]
        outer.zero_grad(set_to_none=True)
        loss_of(1024).backward()
        outer.step()
        learned.append(rate.exp().item())
        del weights, gradients


class StyleLoss:
    """The distance between Gram matrices of features."""

    def __init__(self, network, style):
        self.network = network
        with torch.no_grad():
            self.wanted = [self.gram(feature) for feature in self.features(style)]

    def features(self, picture):
        found = []
        for layer in self.network:
            picture = torch.relu(layer(picture))
            found.append(picture)
        return found

    @staticmethod
    def gram(feature):
        flat = feature.flatten(2)[0]
        return flat @ flat.t() / flat.shape[1]

    def __call__(self, picture):
        return sum(F.mse_loss(self.gram(one), other) for one, other in zip(self.features(picture), self.wanted))


@job("healthy")
def painted_picture(run):
    """Style transfer: the picture is what is optimized, at a low resolution first and then at twice that, with a new
    optimizer; the last iterations need the most."""
    network = nn.ModuleList([nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=1)]).to(run.device)
    loss_of = StyleLoss(network.requires_grad_(False), torch.rand(1, 3, 200, 200, device=run.device))
    picture = torch.rand(1, 3, 176, 176, device=run.device, requires_grad=True)
    optimizer = torch.optim.Adam([picture], lr=0.02)
    for step in run.steps(12):
        if step == 4:
            picture = F.interpolate(picture.detach(), scale_factor=2.0, mode="bilinear").requires_grad_()
            optimizer = torch.optim.Adam([picture], lr=0.02)
        loss = loss_of(picture)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


class BackgroundCheckpoint:
    """Copies of the weights that go to the host, and to a slow file system, beside the training."""

    def __init__(self, model, wait):
        self.model = model
        self.wait = wait
        self.stream = torch.cuda.Stream()
        self.host = [torch.empty(weight.shape, pin_memory=True) for weight in model.parameters()]

    def save(self):
        copies = [weight.detach().clone() for weight in self.model.parameters()]  # guilty in checkpoint_each_step
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for host, copy in zip(self.host, copies):
                host.copy_(copy, non_blocking=True)
            torch.cuda._sleep(CYCLES)
        if self.wait:
            torch.cuda.current_stream().wait_stream(self.stream)
            return
        for copy in copies:
            copy.record_stream(self.stream)  # cause in checkpoint_each_step


@job("cross_stream_pending")
def checkpoint_each_step(run):
    """A checkpoint of each step is written from a second stream, slower than steps are made; the copies of the
    weights that wait for it become more and more. Fixed: training waits until it is written."""
    model = nn.Sequential(nn.Linear(2048, 2048), nn.Tanh(), nn.Linear(2048, 2048)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    checkpoint = BackgroundCheckpoint(model, wait=run.fixed)
    for _ in run.steps(14):
        loss = model(torch.randn(128, 2048, device=run.device)).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        checkpoint.save()
