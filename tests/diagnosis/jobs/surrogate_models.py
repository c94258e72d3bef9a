"""Weather and ocean models, molecules."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


class Ocean:
    """A coarse ocean model with a learned closure for what it does not resolve."""

    def __init__(self, closure, device, cut):
        self.closure, self.cut = closure, cut
        self.field = torch.randn(4, 4, 96, 128, device=device)

    def advance(self, step=0.01):
        smooth = F.avg_pool2d(F.pad(self.field, (1, 1, 1, 1), mode="circular"), 3, 1)  # guilty in online_ocean
        tendency = self.closure(self.field) + smooth - self.field  # guilty in online_ocean
        self.field = self.field + step * tendency  # guilty in online_ocean
        if self.cut:
            self.field = self.field.detach()


@job("hidden_state")
def online_ocean(run):
    """The closure is trained on single states, detached as they should be; the ocean that provides them is advanced
    with the same closure, and its field carries the graph of all steps. Fixed: the field is detached."""
    closure = nn.Sequential(nn.Conv2d(4, 24, 3, padding=1), nn.SiLU(), nn.Conv2d(24, 4, 3, padding=1)).to(run.device)
    ocean = Ocean(closure, run.device, cut=run.fixed)
    optimizer = torch.optim.SGD(closure.parameters(), lr=1e-3, momentum=0.9)
    for _ in run.steps(14):
        ocean.advance()
        state = ocean.field.detach()
        loss = F.mse_loss(closure(state), torch.randn_like(state))
        run.middle()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class HalfStore:
    """Keeps what autograd saves in half precision."""

    def __init__(self, model):
        self.weights = {weight.data_ptr() for weight in model.parameters()}
        self.kept = []

    def pack(self, tensor):
        if not tensor.is_floating_point() or tensor.data_ptr() in self.weights:
            return tensor
        self.kept.append(tensor.half())  # guilty in half_activations
        return len(self.kept) - 1

    def pack_itself(self, tensor):
        if not tensor.is_floating_point() or tensor.data_ptr() in self.weights:
            return tensor
        return tensor.half()

    def unpack(self, packed):
        if isinstance(packed, int):
            packed = self.kept[packed]  # cause in half_activations
        return packed.float() if packed.dtype == torch.float16 else packed


@job("checkpoint_cache")
def half_activations(run):
    """A surrogate of a reactor whose activations are saved in half precision by saved_tensors_hooks; the store hands
    them out by number and forgets none. Fixed: the packed tensor itself is returned, without a store."""
    model = nn.Sequential(nn.Linear(64, 1024), nn.SiLU(), nn.Linear(1024, 1024), nn.SiLU(), nn.Linear(1024, 64))
    model = model.to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    store = HalfStore(model)
    for _ in run.steps(12):
        inputs = torch.randn(1536, 64, device=run.device)
        with torch.autograd.graph.saved_tensors_hooks(store.pack_itself if run.fixed else store.pack, store.unpack):
            loss = F.mse_loss(model(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Potential(nn.Module):
    """The energy of molecules from the distances of their atoms."""

    def __init__(self, basis=16, width=64):
        super().__init__()
        self.centers = nn.Parameter(torch.linspace(0, 6, basis))
        self.net = nn.Sequential(nn.Linear(basis, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, positions):
        offset = positions[:, :, None] - positions[:, None]  # guilty in force_errors
        distance = (offset.square().sum(-1) + 1e-6).sqrt()  # guilty in force_errors
        basis = torch.exp(-(distance[..., None] - self.centers).square())  # guilty in force_errors
        return self.net(basis).sum((1, 2, 3))  # guilty in force_errors

    def energy_and_forces(self, positions, create_graph=True):
        positions = positions.detach().requires_grad_()
        energy = self(positions)  # guilty in force_errors
        (slope,) = torch.autograd.grad(energy.sum(), positions, create_graph=create_graph)  # guilty in force_errors
        return energy, -slope


@job("eval_graph")
def force_errors(run):
    """Evaluation of a potential: forces are gradients, so no_grad() is out of the question, and the graph that training
    needs is made here as well and kept with the predictions. Fixed: create_graph=False, and detached."""
    potential = Potential().to(run.device).eval()
    predicted = []
    for _ in run.steps(10):
        positions = 3 * torch.randn(4, 40, 3, device=run.device)
        energy, forces = potential.energy_and_forces(positions, create_graph=not run.fixed)
        predicted.append((energy.detach(), forces.detach()) if run.fixed else (energy, forces))  # cause
    errors = [forces.detach().abs().mean().item() for _, forces in predicted]
    assert min(errors) >= 0


@job("healthy")
def force_matching(run):
    """Training on energies and forces: the second derivatives need a graph through the first, in each iteration."""
    potential = Potential().to(run.device)
    optimizer = torch.optim.Adam(potential.parameters(), lr=1e-3, amsgrad=True)
    for _ in run.steps(12):
        positions = 3 * torch.randn(6, 48, 3, device=run.device)
        energy, forces = potential.energy_and_forces(positions)
        loss = 0.01 * energy.square().mean() + forces.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del energy, forces, loss


@job("healthy")
def rollout_curriculum(run):
    """A weather model is trained through more and more steps of its own forecast, five in the end; each forecast
    begins with an analysis."""
    model = nn.Sequential(nn.Conv2d(6, 32, 3, padding=1), nn.GELU(), nn.Conv2d(32, 6, 3, padding=1)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for step in run.steps(16):
        state = torch.randn(2, 6, 90, 180, device=run.device)
        loss = 0.0
        for _ in range(min(1 + step // 2, 5)):
            state = state + 0.1 * model(state)
            loss = loss + F.mse_loss(state, torch.randn_like(state))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del state, loss
