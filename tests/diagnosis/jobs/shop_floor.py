"""Jobs of factories, warehouses and carriers: inspection, robots, machines, stock, routes."""
import copy
import gc
import random
from collections import deque
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn import functional as F

from job import job


def perceptron(sizes, activation=nn.GELU):
    layers = []
    for index in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[index], sizes[index + 1]))
        layers.append(activation())
    return nn.Sequential(*layers[:-1])


class ErrorFeedback:
    """Only the largest entries of a gradient go over the mobile network; the rest is added to the next gradient."""

    def __init__(self, parameters, share, by_parameter):
        self.parameters = list(parameters)
        self.share = share
        self.by_parameter = by_parameter
        self.residual = {}
        self.sent = 0

    def compress(self):
        for parameter in self.parameters:
            owner = parameter if self.by_parameter else parameter.grad  # cause in gradients_over_the_air
            full = parameter.grad + self.residual.get(owner, 0)
            count = max(1, int(self.share * full.numel()))
            least = full.abs().flatten().topk(count).values[-1]
            parameter.grad.copy_(full.where(full.abs() >= least, torch.zeros_like(full)))
            self.residual[owner] = full - parameter.grad  # guilty in gradients_over_the_air
            self.sent += count


@job("gradient_accumulation")
def gradients_over_the_air(run):
    """Machines in the field learn together and send compressed gradients with error feedback. What was not sent is
    looked up by the gradient instead of the parameter, and as gradients are new tensors in each step, the dictionary
    never finds anything and keeps them all. Fixed: the parameter is the key."""
    model = perceptron([480, 1024, 1024, 12]).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    uplink = ErrorFeedback(model.parameters(), share=0.01, by_parameter=run.fixed)
    for _ in run.steps(16):
        optimizer.zero_grad(set_to_none=True)
        vibration = torch.randn(256, 480, device=run.device)
        loss = F.cross_entropy(model(vibration), torch.randint(12, (256,), device=run.device))
        loss.backward()  # guilty
        uplink.compress()
        optimizer.step()
    assert uplink.sent > 0


class LineMemory(nn.Module):
    """A slow memory of each production line, mixed from summaries of its shifts at rates that are learned."""

    def __init__(self, width=512, one_step=False):
        super().__init__()
        self.encode = perceptron([96, width, width], nn.Tanh)
        self.rate = nn.Parameter(torch.full((width,), -2.0))
        self.head = nn.Linear(2 * width, 3)
        self.one_step = one_step
        self.memory = {}

    def forward(self, line, shift):
        summary = self.encode(shift)  # guilty in memory_of_each_line
        if line not in self.memory:
            self.memory[line] = torch.zeros_like(summary)  # guilty in memory_of_each_line
        before = self.memory[line].detach() if self.one_step else self.memory[line]  # cause in memory_of_each_line
        rate = self.rate.sigmoid()
        after = (1 - rate) * before + rate * summary  # guilty in memory_of_each_line
        self.memory[line] = after
        # Without detach() here backward() says that it cannot go through the graph a second time.
        recalled = after if self.one_step else before.detach()
        return self.head(torch.cat([summary, recalled], 1))


@job("hidden_state")
def memory_of_each_line(run):
    """Scrap is predicted for five production lines, two shifts to a step. Each line has a memory in a dictionary; it is
    detached where it is read, to silence backward(), but not where it is carried on. Fixed: the memory of the last
    shift is detached, and this shift's is read."""
    model = LineMemory(one_step=run.fixed).to(run.device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for step in run.steps(14):
        loss = 0.0
        for line in (2 * step % 5, (2 * step + 1) % 5):
            shift, scrap = torch.randn(2048, 96, device=run.device), torch.randint(3, (2048,), device=run.device)
            loss = loss + F.cross_entropy(model(line, shift), scrap)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        del loss


class Ledger:
    """Forecasts by the day that they were made, settled when the truth arrives four weeks later."""

    def __init__(self, delay=28):
        self.delay = delay
        self.open = {}
        self.errors = []

    def file(self, day, forecast):
        self.open[day] = forecast

    def settle(self, day, truth):
        if day - self.delay in self.open:
            self.errors.append(F.l1_loss(self.open.pop(day - self.delay), truth).item())


class ParcelForecaster:
    """Learns every night, and forecasts with averaged weights every morning."""

    def __init__(self, device, ledger):
        self.model = perceptron([256, 768, 768, 7]).to(device)
        self.averaged = copy.deepcopy(self.model).eval()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.ledger = ledger

    def night(self, features, parcels):
        loss = F.smooth_l1_loss(self.model(features), parcels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for mine, other in zip(self.averaged.parameters(), self.model.parameters()):
                mine.lerp_(other, 0.05)

    def morning(self, day, features):
        forecast = self.averaged(features)  # guilty in parcels_of_next_week
        self.ledger.file(day, forecast)
        return forecast.argmax(1)


@job("eval_graph")
def parcels_of_next_week(run):
    """Volumes for the depots of a carrier. The copy with averaged weights never trains, but its weights still require
    gradients, and what it forecasts waits in a ledger, graph and all, for the truth of four weeks later. Fixed: the
    morning's forecast is made under no_grad()."""
    forecaster = ParcelForecaster(run.device, Ledger())
    for day in run.steps(15):
        forecaster.night(torch.randn(512, 256, device=run.device), torch.randn(512, 7, device=run.device))
        features = torch.randn(3072, 256, device=run.device)  # guilty
        with torch.no_grad() if run.fixed else nullcontext():  # cause
            busiest = forecaster.morning(day, features)
        forecaster.ledger.settle(day, torch.randn(3072, 7, device=run.device))
        del features
    assert busiest.max().item() < 7


class Inspection:
    """A part under the scanner. The protocol is a generator, so that a cell can serve other parts between its stages;
    it goes on only as long as there is doubt."""

    def __init__(self, network, depth_map):
        self.network = network
        self.depth_map = depth_map
        self.verdict = None
        self.protocol = self.stages()  # cause in parts_under_the_scanner

    def stages(self):
        for coarseness in (16, 4, 1):
            answer = self.network(self.depth_map[::coarseness]).mean(0)
            self.verdict = ("good", "bad")[answer.argmax().item()]
            yield answer.softmax(0).amax().item()


class InspectionCell:
    """Has a few parts on the table at once."""

    def __init__(self, network, patience, closes):
        self.network = network
        self.patience = patience
        self.closes = closes
        self.counts = {"good": 0, "bad": 0}

    def receive(self, depth_maps):
        table = [Inspection(self.network, depth_map) for depth_map in depth_maps]
        for _ in range(self.patience):
            for inspection in table:
                next(inspection.protocol)
        for inspection in table:
            self.counts[inspection.verdict] += 1
            if self.closes:
                inspection.protocol.close()


@job("reference_cycle", fixed_contested="as recorded, close() does not free the frames: it grows like the leak")
def parts_under_the_scanner(run):
    """Inspections of parts end early when the first stages are clear. A generator that was not run to its end has a
    frame whose `self` has the generator, and the part's depth map waits for the collector, which is set to come
    rarely. Fixed: close()."""
    gc.set_threshold(500_000, 20, 20)
    cell = InspectionCell(perceptron([768, 256, 2], nn.ReLU).to(run.device), patience=2, closes=run.fixed)
    with torch.inference_mode():
        for _ in run.steps(15):
            cell.receive([torch.rand(2048, 768, device=run.device) for _ in range(3)])  # guilty
    assert sum(cell.counts.values()) == 45


class Slotting:
    """Which articles should lie beside each other, from vectors of what was ordered together."""

    def __init__(self, articles, width, device):
        self.vectors = F.normalize(torch.randn(articles, width, device=device), dim=1)
        self.place = torch.arange(articles, device=device)

    def renew(self, rounds=2):
        affinity = self.vectors @ self.vectors.T  # guilty in slots_at_the_change_of_shift
        plan = affinity.mul(8).exp()  # guilty in slots_at_the_change_of_shift
        for _ in range(rounds):
            plan = plan / plan.sum(1, keepdim=True)  # guilty in slots_at_the_change_of_shift
            plan = plan / plan.sum(0, keepdim=True)  # guilty in slots_at_the_change_of_shift
        self.place = plan.argmax(1)

    def route(self, articles):
        place = self.place[articles].sort(1).values
        return place.diff(dim=1).abs().sum(1)


@job("cached_not_released")
def slots_at_the_change_of_shift(run):
    """A warehouse answers orders with routes. Once, at the change of shift, it renews the slots of all articles by a
    few rounds of Sinkhorn's algorithm on the full matrix; what that needed stays reserved for the rest of the day,
    while the planner of the fleet, a second process, finds no memory. Fixed: empty_cache() after the renewal."""
    slotting = Slotting(9000, 128, run.device)
    scorer = perceptron([128, 512, 1]).to(run.device)
    length = 0
    with torch.inference_mode():
        for step in run.steps(20):
            if step == 4:
                slotting.renew()
                if run.fixed:
                    torch.cuda.empty_cache()
            orders = torch.randint(9000, (256, 12), device=run.device)
            urgency = scorer(slotting.vectors[orders].mean(1)).squeeze(1)
            length += slotting.route(orders[urgency.argsort()[:64]]).sum().item()
    assert length > 0


LAYERS = 24


class Inspector:
    """A large network on a stream of its own that grades panels; the grades are read at the end of the shift."""

    def __init__(self, device, panels):
        self.network = perceptron([1024] * LAYERS + [8], nn.ReLU).to(device).requires_grad_(False)
        self.stream = torch.cuda.Stream()
        self.grades = torch.zeros(panels, dtype=torch.long, device=device)
        self.done = None

    def grade(self, number, panel):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.grades[number] = self.network(panel).sum(0).argmax()
            self.done = self.stream.record_event()
        panel.record_stream(self.stream)  # cause in panels_for_two_inspectors


class PanelLine:
    """Cuts and levels panels, and gives them to the inspectors in turn."""

    def __init__(self, inspectors, device, polite):
        self.inspectors = inspectors
        self.device = device
        self.polite = polite

    def exposure(self):
        panel = torch.rand(4096, 1024, device=self.device)  # guilty in panels_for_two_inspectors
        panel.sub_(panel.mean(0))
        return panel

    def produce(self, number):
        if self.polite:
            for inspector in self.inspectors:
                if inspector.done:
                    inspector.done.synchronize()
        self.inspectors[number % len(self.inspectors)].grade(number, self.exposure())


@job("cross_stream_pending")
def panels_for_two_inspectors(run):
    """A line camera is much faster than the two inspectors' networks on their own streams, and nothing holds it back:
    panels that the line has let go wait for inspectors who are far behind. Fixed: the line waits until the inspectors
    are done with the panels before."""
    line = PanelLine([Inspector(run.device, 14) for _ in range(2)], run.device, polite=run.fixed)
    torch.cuda.synchronize()
    for number in run.steps(14):
        line.produce(number)
    torch.cuda.synchronize()
    assert sum(inspector.grades.sum().item() for inspector in line.inspectors) >= 0


class BeltVision:
    """Finds parcels on belts; each speed of a belt has exposures of another height, and buffers of its own."""

    def __init__(self, device, width=1024):
        self.device = device
        self.filters = torch.randn(width, 384, device=device)
        self.buffers = {}

    def buffer(self, rows):
        if rows not in self.buffers:
            self.buffers[rows] = (torch.empty(rows, self.filters.shape[0], device=self.device),
                                  torch.empty(rows, self.filters.shape[1], device=self.device))
        return self.buffers[rows]

    def find(self, speed):
        image, response = self.buffer(1024 + 256 * speed)
        image.uniform_()
        torch.matmul(image, self.filters, out=response)
        return response.amax(0).topk(5).indices.tolist()


@job("healthy")
def buffers_of_each_speed(run):
    """Static buffers for eight speeds of a belt, made when a speed comes up for the first time: memory grows until the
    rarest speed has been seen, and not any more."""
    vision = BeltVision(run.device)
    speeds = [0, 1, 0, 2, 3, 1, 4, 2, 5, 3, 6, 0, 7, 1, 4, 6, 2, 7, 5, 3]
    with torch.no_grad():
        found = [vision.find(speeds[step]) for step in run.steps(20)]
    assert len(vision.buffers) == 8 and len(found) == 20


class TourPlanner:
    """Assigns orders to vans by auction on the full matrix of costs."""

    def __init__(self, device, orders=6000, vans=6000):
        self.prices = torch.zeros(vans, device=device)
        self.orders = torch.rand(orders, 2, device=device)
        self.vans = torch.rand(vans, 2, device=device)

    def replan(self, rounds=3):
        cost = torch.cdist(self.orders, self.vans)
        for _ in range(rounds):
            best, van = (-cost - self.prices).topk(2, 1)
            self.prices.index_add_(0, van[:, 0], best[:, 0] - best[:, 1] + 1e-3)
        return van[:, 0]

    def insert(self, places):
        return torch.cdist(places, self.vans).add(self.prices).argmin(1)


@job("healthy")
def tours_every_fourth_wave(run):
    """Waves of orders are inserted into tours, which takes little; every fourth wave all tours are planned anew on the
    full matrix, which takes the memory that is reserved in between. The last one was two waves ago."""
    planner = TourPlanner(run.device)
    for wave in run.steps(18):
        places = torch.rand(200, 2, device=run.device)
        van = planner.insert(places)
        planner.orders[torch.randperm(6000, device=run.device)[:200]] = places
        if wave % 4 == 3:
            van = planner.replan()
    assert van.max().item() < 6000


class DoubleBuffer:
    """Two places on the GPU; one is filled from the host on a stream while the other one is worked on."""

    def __init__(self, shape, device):
        self.host = torch.rand(shape).pin_memory()
        self.places = [torch.empty(shape, device=device) for _ in range(2)]
        self.stream = torch.cuda.Stream()
        self.turn = 0

    def fill(self):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.places[self.turn].copy_(self.host, non_blocking=True)

    def take(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        ready, self.turn = self.places[self.turn], 1 - self.turn
        return ready


@job("healthy")
def castings_in_two_buffers(run):
    """X-ray images of castings arrive in two buffers that take turns, and the worst part of each goes to an archive on
    a third stream by record_stream(); the loss is read in each step, so that the streams never drift apart."""
    model = nn.Sequential(nn.Conv2d(1, 16, 5, 4, 2), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    buffer, archive = DoubleBuffer((6, 1, 768, 768), run.device), torch.cuda.Stream()
    shelf = torch.empty(768, 768).pin_memory()
    buffer.fill()
    for _ in run.steps(14):
        castings = buffer.take()
        buffer.fill()
        error = (model(castings) - F.avg_pool2d(castings, 4)).square().mean((1, 2, 3))
        loss = error.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        worst = castings[error.argmax(), 0] * 255
        archive.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(archive):
            shelf.copy_(worst, non_blocking=True)
        worst.record_stream(archive)
        del worst
        assert loss.item() >= 0
        archive.synchronize()


class BalancedTasks:
    """Weights of tasks, moved so that their gradients at the last shared layer become equally large."""

    def __init__(self, names, shared):
        self.weight = dict.fromkeys(names, 1.0)
        self.shared = shared
        self.first = {}
        self.history = []

    def combine(self, losses):
        norms = {}
        for name, loss in losses.items():
            self.first.setdefault(name, loss.item())
            (slope,) = torch.autograd.grad(loss, self.shared, retain_graph=True)
            norms[name] = self.weight[name] * slope.norm().item()
        mean = sum(norms.values()) / len(norms)
        for name, loss in losses.items():
            pace = loss.item() / self.first[name]
            self.weight[name] *= (mean * pace / (norms[name] + 1e-8)) ** 0.1
        self.history.append(dict(self.weight))
        return sum(self.weight[name] * loss for name, loss in losses.items())


@job("healthy")
def tasks_of_a_weld(run):
    """Depth, width and class of a weld from one trunk. The graph is kept for a gradient of each task before the real
    backward pass frees it; the history of the weights of the tasks is of numbers."""
    trunk = perceptron([1024, 1536, 1024]).to(run.device)
    heads = nn.ModuleDict({"depth": nn.Linear(1024, 1), "width": nn.Linear(1024, 1), "class": nn.Linear(1024, 9)})
    heads = heads.to(run.device)
    optimizer = torch.optim.RMSprop([*trunk.parameters(), *heads.parameters()], lr=1e-4, momentum=0.9)
    balance = BalancedTasks(heads, trunk[-1].weight)
    for _ in run.steps(14):
        hidden = F.gelu(trunk(torch.randn(1024, 1024, device=run.device)))
        losses = {name: F.mse_loss(heads[name](hidden), torch.rand(1024, 1, device=run.device))
                  for name in ("depth", "width")}
        losses["class"] = F.cross_entropy(heads["class"](hidden), torch.randint(9, (1024,), device=run.device))
        optimizer.zero_grad()
        balance.combine(losses).backward()
        optimizer.step()
        del hidden, losses
    assert len(balance.history) == 14


class ForceWindow:
    """The forces of a gripper over the last grasps, for normalization."""

    def __init__(self, grasps):
        self.grasps = deque(maxlen=grasps)

    def normalize(self, forces):
        self.grasps.append(forces)
        known = torch.cat([grasp[::8] for grasp in self.grasps])
        return (forces - known.mean(0)) / (known.std(0) + 1e-6)


@job("healthy", contested="seven of eight rows of the kept forces are never read: 28 MiB, a tenth of the peak")
def grasps_in_micro_batches(run):
    """A grasp network with mixed precision and gradients summed over five micro-batches on purpose, each of them an
    iteration; the last optimizer step was three of them ago. Inputs are normalized over the last eight grasps."""
    draw = random.Random(4)
    model = perceptron([512, 2048, 2048, 6]).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    window = ForceWindow(8)
    for step in run.steps(18):
        forces = window.normalize(torch.randn(draw.randrange(1500, 2500), 512, device=run.device))
        with torch.autocast(run.device, dtype=torch.bfloat16):
            loss = model(forces).float().square().mean() / 5
        loss.backward()
        if step % 5 == 4:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        del forces, loss
