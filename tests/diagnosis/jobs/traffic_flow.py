"""Forecasts of traffic from the loop detectors of a city."""
import torch
import torch.nn.functional as F
from torch import nn

from job import job

SENSORS = 4096
WIDTH = 256


class SensorMemory(nn.Module):
    """Forecasts from the latest readings and a memory of each sensor, kept by a GRU cell from an earlier training."""

    def __init__(self, carry_graph):
        super().__init__()
        self.encode = nn.Linear(12, WIDTH)
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.head = nn.Linear(2 * WIDTH, 3)
        self.carry_graph = carry_graph
        self.register_buffer("memory", torch.zeros(SENSORS, WIDTH))

    def forward(self, readings):
        encoded = torch.tanh(self.encode(readings))  # guilty in sensor_memory
        return self.head(torch.cat([encoded, self.memory.detach()], 1)), encoded.detach()

    def remember(self, encoded):
        with torch.set_grad_enabled(self.carry_graph):  # cause in sensor_memory
            self.memory = self.cell(encoded, self.memory)  # guilty in sensor_memory


@job("hidden_state")
def sensor_memory(run):
    """The memory of each sensor is detached where it is read, but not where it is written: every update of it stays
    chained to the one before. Fixed: it is updated under no_grad()."""
    model = SensorMemory(carry_graph=not run.fixed).to(run.device)  # guilty
    optimizer = torch.optim.Adam([*model.encode.parameters(), *model.head.parameters()], lr=1e-3)
    for _ in run.steps(12):
        readings = torch.randn(SENSORS, 12, device=run.device)
        forecast, encoded = model(readings)
        loss = F.smooth_l1_loss(forecast, readings[:, -3:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.remember(encoded)


def road_network(detectors, device):
    """How near the detectors of a city are to each other."""
    places = torch.rand(detectors, 2, device=device)
    nearness = torch.cdist(places, places).mul_(-20).exp_()
    return nearness.half()  # guilty in cities_by_size


@job("fragmentation")
def cities_by_size(run):
    """The road networks of cities are loaded, the smallest first, and kept in half precision. What is computed in
    single precision is larger each time, so that it never fits where the one before was, and of that place the kept
    half takes only a part. Fixed: the largest city first."""
    cities = [int(2600 * 1.05**city) for city in range(16)]
    networks = {}
    for city in run.steps(16):
        detectors = cities[-1 - city] if run.fixed else cities[city]  # cause
        networks[detectors] = road_network(detectors, run.device)


class Seq2Seq(nn.Module):
    """Predicts one step after the other from its own predictions."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(8, 192, batch_first=True)
        self.decoder = nn.GRUCell(8, 192)
        self.out = nn.Linear(192, 8)

    def forward(self, past, horizon):
        state = self.encoder(past)[1][0]
        value, forecast = past[:, -1], []
        for _ in range(horizon):
            state = self.decoder(value, state)
            value = self.out(state)
            forecast.append(value)
        return torch.stack(forecast, 1)


@job("healthy", contested="a hole of 280 MiB that the RNN's workspace does not fit into: reserve of 1.6 peaks")
def stretched_horizon(run):
    """The horizon of the forecast is stretched by a step per epoch, from 1 to 8, and with it what an iteration needs;
    from then on it stays."""
    model = Seq2Seq().to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    log = []
    for epoch in run.steps(14):
        horizon = min(1 + epoch, 8)
        series = torch.randn(2048, 12 + horizon, 8, device=run.device)
        loss = F.l1_loss(model(series[:, :12], horizon), series[:, 12:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        log.append({"epoch": epoch, "horizon": horizon, "loss": loss.item()})


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs, adjacency):
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        self.mix = nn.Linear(2 * inputs, outputs)

    def forward(self, nodes):
        return F.relu(self.mix(torch.cat([nodes, self.adjacency @ nodes], -1)))


def backtest(model, weeks, nodes, device):
    """The predictions of all weeks, in the memory of the host."""
    model.eval()
    predicted = []
    with torch.no_grad():
        for _ in range(weeks):
            predicted.append(model(torch.randn(16, nodes, 12, device=device)).cpu())
    model.train()
    return torch.cat(predicted)


@job("healthy")
def rolling_backtest(run):
    """After each month of training the model is tried on ever more weeks; the predictions are collected on the CPU."""
    nodes = 512
    adjacency = torch.softmax(torch.randn(nodes, nodes, device=run.device), 1)
    model = nn.Sequential(GraphConvolution(12, 128, adjacency), GraphConvolution(128, 128, adjacency),
                          nn.Linear(128, 128)).to(run.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
    backtests = {}
    for month in run.steps(10):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(32, nodes, 12, device=run.device)).square().mean().backward()
            optimizer.step()
        backtests[month] = backtest(model, 1 + month, nodes, run.device)
    assert len(backtests) == 10
