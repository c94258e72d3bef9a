"""Pictures in the style of stained glass: VGG of torchvision, optimization of pixels, a fast network."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torchvision.models import vgg11, vgg16

from job import job


def gram(features):
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[2]


@job("gradient_accumulation")
def perceptual_network(run):
    """A fast network learns a style by a loss on features of VGG. The features' weights get gradients as well, which
    are added up at each step, and which no optimizer looks at or clears. Fixed: requires_grad_(False)."""
    features = vgg16(weights=None).features.to(run.device).eval()
    if run.fixed:
        features.requires_grad_(False)
    painter = nn.Sequential(nn.Conv2d(3, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 3, 5, padding=2)).to(run.device)
    optimizer = torch.optim.Adam(painter.parameters(), lr=1e-3)
    style = torch.randn(1, 512, 512, device=run.device)
    for _ in run.steps(12):
        photos = torch.rand(6, 3, 96, 96, device=run.device)
        loss = F.mse_loss(gram(features(painter(photos))), style.expand(6, -1, -1))
        optimizer.zero_grad()
        loss.backward()  # guilty
        optimizer.step()


class RecomputedLayer:
    """A layer of VGG that is computed anew in backward(). What it computed is looked up by the picture it was for."""

    def __init__(self, layer, table):
        self.layer = layer
        self.table = table

    def compute(self, hidden, picture):
        output = self.layer(hidden)  # guilty in pictures_of_a_window
        if output.requires_grad:
            self.table[picture, id(self)] = output.detach()  # cause in pictures_of_a_window
        return output

    def __call__(self, hidden, picture):
        return checkpoint(self.compute, hidden, picture, use_reentrant=True)


@job("checkpoint_cache")
def pictures_of_a_window(run):
    """The pixels of one picture after another are optimized, through layers that are recomputed. What they give in
    backward() is filed by picture, so that the next step could show it, and all pictures stay on file. Fixed: the file
    is emptied when a picture is done."""
    table = {}
    layers = [layer for layer in vgg11(weights=None).features.to(run.device).eval()][:8]
    for layer in layers:
        layer.requires_grad_(False)
        if isinstance(layer, nn.ReLU):
            layer.inplace = False
    recomputed = [RecomputedLayer(layer, table) for layer in layers]
    for picture in run.steps(11):
        pixels = torch.rand(4, 3, 96, 96, device=run.device, requires_grad=True)
        optimizer = torch.optim.Adam([pixels], lr=0.05)
        for _ in range(2):
            hidden = pixels
            for layer in recomputed:
                hidden = layer(hidden, picture)
            optimizer.zero_grad()
            gram(hidden).square().mean().backward()
            optimizer.step()
        if run.fixed:
            table.clear()
    assert run.fixed or len(table) == 11 * len(layers)


@job("healthy")
def window_by_quasi_newton(run):
    """L-BFGS on the pixels of one picture: its history grows up to twelve steps and is then as long."""
    features = vgg11(weights=None).features[:8].to(run.device).eval().requires_grad_(False)
    pixels = torch.rand(1, 3, 512, 512, device=run.device, requires_grad=True)
    style = torch.randn(1, 256, 256, device=run.device)
    optimizer = torch.optim.LBFGS([pixels], lr=0.2, history_size=12, max_iter=1)
    for _ in run.steps(20):

        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(gram(features(pixels)), style, reduction="sum")
            loss.backward()
            return loss

        optimizer.step(closure)
