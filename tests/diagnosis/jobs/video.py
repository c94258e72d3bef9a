"""Video: prediction of the next image, captions."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


class ConvolutionalGRU(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.gates = nn.Conv2d(channels + width, 2 * width, 3, padding=1)
        self.candidate = nn.Conv2d(channels + width, width, 3, padding=1)

    def forward(self, image, state):
        update, reset = torch.sigmoid(self.gates(torch.cat([image, state], 1))).chunk(2, 1)  # guilty in next_image
        candidate = torch.tanh(self.candidate(torch.cat([image, reset * state], 1)))  # guilty in next_image
        return (1 - update) * state + update * candidate  # guilty in next_image


@job("hidden_state")
def next_image(run):
    """A convolutional GRU predicts the next image of a film; its state is carried over with its graph, and
    retain_graph=True makes that work. Fixed: .detach()."""
    cell = ConvolutionalGRU(3, 32).to(run.device)
    head = nn.Conv2d(32, 3, 1).to(run.device)
    state = torch.zeros(4, 32, 96, 96, device=run.device)
    image = torch.rand(4, 3, 96, 96, device=run.device)
    for _ in run.steps(9):
        state = cell(image, state)  # guilty
        image = torch.rand(4, 3, 96, 96, device=run.device)
        loss = F.mse_loss(head(state), image)
        cell.zero_grad()
        loss.backward(retain_graph=not run.fixed)
        if run.fixed:
            state = state.detach()


@job("healthy")
def clip_windows(run):
    """A convolutional GRU over clips of four images: the graph goes through a clip and ends with it."""
    cell = ConvolutionalGRU(3, 16).to(run.device)
    head = nn.Conv2d(16, 3, 1).to(run.device)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-3)
    state = torch.zeros(4, 16, 80, 80, device=run.device)
    for _ in run.steps(6):
        clip = torch.rand(5, 4, 3, 80, 80, device=run.device)
        state = state.detach()
        loss = 0.0
        for now, after in zip(clip, clip[1:]):
            state = cell(now, state)
            loss = loss + F.mse_loss(head(state), after)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
