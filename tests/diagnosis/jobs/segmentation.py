"""Medical imaging: segmentation of scans and slides."""
import torch
from torch import nn
from torch.nn import functional as F

from job import job


def block3d(inside, outside):
    return nn.Sequential(nn.Conv3d(inside, outside, 3, padding=1), nn.InstanceNorm3d(outside), nn.ReLU(inplace=True))


def dice(prediction, target, smooth=1.0):
    overlap = (prediction * target).flatten(1).sum(1)
    return (2 * overlap + smooth) / (prediction.flatten(1).sum(1) + target.flatten(1).sum(1) + smooth)


class SlideUNet(nn.Module):
    """Two scales are enough for stained tissue."""

    def __init__(self, channels=16, classes=4):
        super().__init__()
        self.fine = nn.Conv2d(3, channels, 3, padding=1)
        self.coarse = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.merge = nn.Conv2d(3 * channels, channels, 3, padding=1)
        self.head = nn.Conv2d(channels, classes, 1)

    def forward(self, image):
        fine = F.leaky_relu(self.fine(image))  # guilty in whole_slides
        coarse = F.leaky_relu(self.coarse(F.max_pool2d(fine, 2)))  # guilty in whole_slides
        both = torch.cat([fine, F.interpolate(coarse, scale_factor=2)], 1)  # guilty in whole_slides
        return self.head(F.leaky_relu(self.merge(both)))  # guilty in whole_slides


class SlideEvaluator:
    """Runs a model over slides in windows, stitches the logits and collects a Dice score a slide."""

    def __init__(self, model, window=128, classes=4, gradients=True):
        self.model = model.eval()
        self.window = window
        self.classes = classes
        self.gradients = gradients
        self.scores = []

    def windows(self, slide):
        for top in range(0, slide.shape[2], self.window):
            for left in range(0, slide.shape[3], self.window):
                yield slice(top, top + self.window), slice(left, left + self.window)

    def stitch(self, slide):
        logits = slide.new_zeros(slide.shape[0], self.classes, *slide.shape[2:])
        for rows, columns in self.windows(slide):
            logits[:, :, rows, columns] += self.model(slide[:, :, rows, columns])
        return logits

    def add(self, slide, mask):
        with torch.set_grad_enabled(self.gradients):
            score = dice(self.stitch(slide).softmax(1)[:, 1], mask).mean()  # guilty in whole_slides
        self.scores.append(score)  # cause in whole_slides

    def mean(self):
        return torch.stack(self.scores).mean().item()


@job("eval_graph")
def whole_slides(run):
    """A network for tissue is evaluated on whole slides, window by window; the evaluator calls eval() but leaves
    gradients on, and the score of each slide holds the graph of all its windows. Fixed: gradients are off."""
    evaluator = SlideEvaluator(SlideUNet().to(run.device), gradients=not run.fixed)
    for _ in run.steps(9):
        slide = torch.rand(2, 3, 384, 384, device=run.device)  # guilty
        mask = (torch.rand(2, 384, 384, device=run.device) > 0.7).float()  # guilty
        evaluator.add(slide, mask)
    print(f"Dice {evaluator.mean():.3f}")


class GradCam:
    """Saliency maps from the activations of one layer and the gradient of the score by them."""

    def __init__(self, model, layer, clear):
        self.model = model.eval().requires_grad_(False)
        self.clear = clear
        self.activations = []
        layer.register_forward_hook(self.remember)

    def remember(self, module, inputs, output):
        output = output.detach().requires_grad_()
        self.activations.append(output)  # cause in saliency_maps
        return output

    def __call__(self, image):
        if self.clear:
            self.activations.clear()
        scores = self.model(image).amax(1).sum()  # guilty in saliency_maps
        layer = self.activations[-1]
        weights, = torch.autograd.grad(scores, layer)
        with torch.no_grad():
            cam = F.relu((layer * weights.mean((2, 3), keepdim=True)).sum(1))
        return (cam / cam.amax((1, 2), keepdim=True).clamp(min=1e-6)).cpu()


@job("checkpoint_cache", contested="nothing is recomputed: a layer's outputs are kept")
def saliency_maps(run):
    """Saliency maps for a set of X-rays: a forward hook appends the layer's activations of each image to a list of
    which only the last entry is read. Fixed: the list is emptied before each forward pass."""
    classifier = nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 32, 3, padding=1),
                               nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 14)).to(run.device)
    explain = GradCam(classifier, classifier[2], clear=run.fixed)
    maps = []
    for _ in run.steps(12):
        maps.append(explain(torch.rand(4, 1, 256, 256, device=run.device)))


@job("cached_not_released")
def sanity_check(run):
    """Before training on small patches the validation code is tried once, on a whole volume. The allocator keeps the
    memory of that volume until the job is over. Fixed: empty_cache() after the check."""
    model = nn.Sequential(block3d(1, 16), block3d(16, 16), nn.Conv3d(16, 3, 1)).to(run.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.eval()
    with torch.no_grad():
        volume = torch.rand(1, 1, 128, 160, 160, device=run.device)  # guilty
        labels = model(volume).argmax(1)  # guilty
        print("sanity check:", tuple(labels.shape))
    del volume, labels
    if run.fixed:
        torch.cuda.empty_cache()
    model.train()
    for _ in run.steps(15):
        patch = torch.rand(2, 1, 24, 24, 24, device=run.device)
        target = torch.randint(3, (2, 24, 24, 24), device=run.device)
        loss = F.cross_entropy(model(patch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("true_capacity")
def large_patches(run):
    """A network for CT volumes with patches of 112 voxels a side on a small GPU: the activations of one pass are more
    than it has. Fixed: patches of 40 voxels."""
    run.cap(900)
    side = 40 if run.fixed else 112  # cause
    model = nn.Sequential(block3d(1, 24), block3d(24, 24), block3d(24, 24), nn.Conv3d(24, 2, 1)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.99, nesterov=True)
    for _ in run.steps(8):
        patches = torch.rand(2, 1, side, side, side, device=run.device)  # guilty
        logits = model(patches)  # guilty
        loss = F.cross_entropy(logits, (patches[:, 0] > 0.5).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@job("healthy")
def stitched_volumes(run):
    """Inference over volumes with overlapping windows; each finished label map goes to the CPU, where all are kept."""
    model = nn.Sequential(block3d(1, 12), nn.Conv3d(12, 3, 1)).to(run.device).eval()
    finished = []
    with torch.no_grad():
        for step in run.steps(8):
            depth = 48 + 16 * (step % 3)
            volume = torch.rand(1, 1, depth, 96, 96, device=run.device)
            total = torch.zeros(1, 3, depth, 96, 96, device=run.device)
            count = torch.zeros(depth, device=run.device)
            for first in range(0, depth - 31, 16):
                total[:, :, first : first + 32] += model(volume[:, :, first : first + 32])
                count[first : first + 32] += 1
            finished.append((total / count[:, None, None]).argmax(1).to(torch.uint8).cpu())


@job("healthy")
def deep_supervision(run):
    """Training with losses at two scales under autocast, a decaying learning rate and a snapshot of the weights
    every third iteration, the last three of which stay on the GPU."""
    stem = nn.Sequential(nn.Conv2d(1, 48, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(48, 48, 3, stride=2, padding=1), nn.ReLU())
    heads = nn.ModuleList([nn.Conv2d(48, 3, 1), nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(48, 3, 1))])
    model = nn.ModuleList([stem, heads]).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 - step / 30) ** 0.9)
    snapshots = []
    for step in run.steps(14):
        image = torch.rand(4, 1, 192, 192, device=run.device)
        mask = torch.randint(3, (4, 192, 192), device=run.device)
        with torch.autocast(torch.device(run.device).type, dtype=torch.bfloat16):
            hidden = stem(image)
            losses = []
            for head in heads:
                logits = head(hidden)
                stride = 192 // logits.shape[2]
                losses.append(F.cross_entropy(logits.float(), mask[:, ::stride, ::stride]))
        optimizer.zero_grad()
        (losses[0] + 0.5 * losses[1]).backward()
        optimizer.step()
        schedule.step()
        if step % 3 == 0:
            snapshots = [*snapshots[-2:], {name: value.clone() for name, value in model.state_dict().items()}]
