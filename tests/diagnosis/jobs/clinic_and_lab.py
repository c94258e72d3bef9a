"""Jobs of hospitals and of laboratories: images, signals, dosing, assays, microscopes, spectra."""
import copy
import gc
import heapq
import math
import random
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from job import job


def conv_stack(*channels, stride=1):
    layers = []
    for inputs, outputs in zip(channels, channels[1:]):
        layers += [nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@dataclass
class Mammogram:
    pixels: torch.Tensor
    birads: torch.Tensor


class RobustTrainer:
    """Fast gradient sign training: every batch is made a little harder before the model learns from it."""

    def __init__(self, model, epsilon=0.01, fresh_leaf=False):
        self.model = model
        self.epsilon = epsilon
        self.fresh_leaf = fresh_leaf
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def harder(self, pixels, birads):
        if self.fresh_leaf:
            pixels = pixels.detach()
        pixels.requires_grad_()  # cause in perturbed_mammograms
        F.cross_entropy(self.model(pixels), birads).backward()  # guilty in perturbed_mammograms
        return (pixels + self.epsilon * pixels.grad.sign()).detach()

    def step(self, study):
        hard = self.harder(study.pixels, study.birads)
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(hard), study.birads)
        loss.backward()
        self.optimizer.step()
        return loss.item()


@job("gradient_accumulation")
def perturbed_mammograms(run):
    """All studies of a small trial stay on the GPU. Adversarial training asks for the gradient of the stored pixels
    themselves, so that each study that was visited keeps a .grad of its own size that nobody clears. Fixed: the
    gradient is asked of a detached alias, which goes with the step."""
    studies = [Mammogram(torch.rand(4, 1, 896, 768, device=run.device), torch.randint(6, (4,), device=run.device))
               for _ in range(14)]
    model = nn.Sequential(nn.Conv2d(1, 16, 7, 4, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 6)).to(run.device)
    trainer = RobustTrainer(model, fresh_leaf=run.fixed)
    losses = [trainer.step(studies[number]) for number in run.steps(14)]
    assert max(losses) < 100


class SelectiveTrainer:
    """Selective backpropagation: a study that the model finds easier than usual is looked at, but not learned from."""

    def __init__(self, model, as_numbers):
        self.model = model
        self.as_numbers = as_numbers
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        self.typical = 0.0
        self.loss_of_study = {}
        self.skipped = 0

    def learn(self, name, scan, mask):
        logits = self.model(scan)  # guilty in easy_studies_skipped
        loss = F.binary_cross_entropy_with_logits(logits, mask)
        self.loss_of_study[name] = loss.item() if self.as_numbers else loss  # cause in easy_studies_skipped
        easy = loss.item() < self.typical
        self.typical = loss.item() if not self.typical else 0.8 * self.typical + 0.2 * loss.item()
        if easy:
            self.skipped += 1
            return
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


@job("retained_graph")
def easy_studies_skipped(run):
    """Lesion segmentation with selective backpropagation. The table of losses by study, printed in the end, has the
    losses as tensors; those of the studies that were skipped still have their graphs, as backward() never came.
    Fixed: item()."""
    trainer = SelectiveTrainer(conv_stack(1, 24, 24, 1).to(run.device), as_numbers=run.fixed)
    for step in run.steps(12):
        for series in range(4):
            scan = torch.randn(4, 1, 160, 160, device=run.device)  # guilty
            share = 0.2 + 0.1 * ((step + series) % 3)
            mask = torch.rand(4, 1, 160, 160, device=run.device).lt(share).float()  # guilty
            trainer.learn(f"{step:03}/{series}", scan, mask)
    assert 0 < trainer.skipped < 48 and len(trainer.loss_of_study) == 48


STAINS = ("nucleus", "membrane", "actin", "mitochondria")


class VirtualStaining(nn.Module):
    """Predicts fluorescent stains from brightfield images, one head for each stain."""

    def __init__(self, width=32, frugal=False):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.BatchNorm2d(width), nn.ReLU())
        self.heads = nn.ModuleDict({stain: conv_stack(width, width, 1) for stain in STAINS})
        self.frugal = frugal

    def forward(self, wells, labelled):
        hidden = self.trunk(wells)  # guilty in stains_of_a_plate
        maps = {}
        for stain, head in self.heads.items():
            with torch.set_grad_enabled(stain == labelled or not self.frugal):
                maps[stain] = head(hidden)  # guilty in stains_of_a_plate
        return maps


@job("retained_graph")
def stains_of_a_plate(run):
    """Each plate was stained for one thing only, and only that head learns from it. A report for the biologists gets
    the mean intensity of all four predicted stains with the graphs of the three heads that no backward pass went
    through. Fixed: heads without a label run without gradients, and the report gets detached values."""
    model = VirtualStaining(frugal=run.fixed).to(run.device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    intensities = defaultdict(list)
    for plate in run.steps(12):
        labelled = STAINS[plate % 4]
        wells, target = torch.rand(2, 8, 1, 96, 96, device=run.device).unbind()
        maps = model(wells, labelled)
        optimizer.zero_grad()
        F.mse_loss(maps[labelled], target).backward()
        optimizer.step()
        for stain, predicted in maps.items():
            mean = predicted.mean((1, 2, 3))
            intensities[stain].append(mean.detach() if run.fixed else mean)  # cause
        del maps, predicted, mean
    assert len(torch.cat(intensities["actin"])) == 96


class VirtualWard:
    """Glucose and insulin of many virtual patients, moved on by a model that was learned earlier and is frozen."""

    def __init__(self, patients, device):
        self.physiology = nn.Sequential(nn.Linear(24, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(),
                                        nn.Linear(512, 20)).to(device).requires_grad_(False)
        self.compartments = torch.randn(patients, 20, device=device)

    def five_minutes(self, dose):
        change = self.physiology(torch.cat([self.compartments, dose], 1))  # guilty in doses_like_the_nurse
        self.compartments = self.compartments + 0.05 * change
        return self.compartments.detach()


@job("hidden_state")
def doses_like_the_nurse(run):
    """Imitation in the loop: a policy doses virtual patients, and learns at each state what the nurse would have done.
    What it sees is detached, but the dose goes into the simulator with its graph, and the simulator's state then hangs
    on all doses since the morning. Fixed: the dose is detached."""
    ward = VirtualWard(4096, run.device)
    policy = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 4), nn.Softplus()).to(run.device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    seen = ward.compartments
    for _ in run.steps(14):
        dose = policy(seen)
        nurse = F.relu(seen[:, :4])
        seen = ward.five_minutes(dose.detach() if run.fixed else dose)  # cause
        loss = F.smooth_l1_loss(dose, nurse)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del dose, nurse, loss


class DriftFilter(nn.Module):
    """A Kalman filter, diagonal, for the drift of features under a microscope; the process noise comes from a network
    that looks at the texture around each feature."""

    def __init__(self, features, size, constant_state):
        super().__init__()
        self.noise = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, size))
        self.log_measure = nn.Parameter(torch.zeros(size))
        self.register_buffer("mean", torch.zeros(features, size))
        self.register_buffer("covariance", torch.ones(features, size))
        self.constant_state = constant_state

    def surprise(self, observed, texture):
        """The negative log likelihood of what was observed; also sets the noise for the update."""
        self.process = F.softplus(self.noise(texture))
        spread = self.covariance.detach() + self.process + self.log_measure.exp()
        return ((observed - self.mean).square() / spread + spread.log()).mean()

    def update(self, observed):
        with torch.set_grad_enabled(not self.constant_state):  # cause in drift_under_the_microscope
            prior = self.covariance + self.process  # guilty in drift_under_the_microscope
            gain = prior / (prior + self.log_measure.exp())  # guilty in drift_under_the_microscope
            self.covariance = (1 - gain) * prior  # guilty in drift_under_the_microscope
        self.mean = self.mean + gain.detach() * (observed - self.mean)


@job("hidden_state")
def drift_under_the_microscope(run):
    """A filter whose noise is learned frame by frame from how surprising each frame is. The mean was detached; the
    covariance was forgotten, and its recursion drags along the products of all frames. Fixed: the update of the state
    is computed without gradients."""
    filtered = DriftFilter(65_536, 16, constant_state=run.fixed).to(run.device)
    optimizer = torch.optim.Adam(filtered.parameters(), lr=1e-3)
    surprises = []
    for _ in run.steps(14):
        observed = torch.randn(65_536, 16, device=run.device)
        loss = filtered.surprise(observed, torch.randn(65_536, 8, device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        filtered.update(observed)
        surprises.append(loss.item())
    assert all(map(math.isfinite, surprises))


class ContactSheet:
    """Pictures of what the model looks at, for the weekly meeting."""

    def __init__(self, tidy):
        self.tidy = tidy
        self.pages = []

    def draw(self, model, image):
        if self.tidy:
            with torch.enable_grad():
                self.attribute(model, image)
            return
        torch.set_grad_enabled(True)  # cause in sheet_in_the_evaluation
        self.attribute(model, image)

    def attribute(self, model, image):
        image = image.clone().requires_grad_()
        (slope,) = torch.autograd.grad(model(image).amax((2, 3)).sum(), image)
        self.pages.append((slope * image).detach().abs().cpu())


class Evaluator:
    """Collects the highest score of each image for the operating curve."""

    def __init__(self, model, sheet):
        self.model = model.eval()
        self.sheet = sheet
        self.scores, self.truth = [], []

    def batch(self, number, images, findings):
        if number % 20 == 0:
            self.sheet.draw(self.model, images[:1])
        logits = self.model(images)  # guilty in sheet_in_the_evaluation
        self.scores.append(logits.amax((2, 3)))
        self.truth.append(findings)

    def area_under_curve(self):
        scores, truth = torch.cat(self.scores).flatten(), torch.cat(self.truth).flatten()
        return (scores[truth == 1][:, None] > scores[truth == 0]).float().mean().item()


@job("eval_graph", fixed_contested="55 of 72 MiB reserved are left from the training and never needed again")
def sheet_in_the_evaluation(run):
    """Fundus pictures are evaluated with gradients switched off, but the contact sheet that is drawn for the first
    batch switches them on for an attribution and never off again. Fixed: the sheet uses enable_grad() as a context."""
    model = nn.Sequential(nn.Conv2d(3, 24, 5, 2, 2), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 48, 3, 2, 1),
                          nn.BatchNorm2d(48), nn.ReLU(), nn.Conv2d(48, 1, 1)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        logits = model(torch.rand(8, 3, 192, 192, device=run.device))
        F.softplus(-logits).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del logits
    evaluator = Evaluator(model, ContactSheet(tidy=run.fixed))
    torch.set_grad_enabled(False)
    for number in run.steps(14):
        images = torch.rand(8, 3, 192, 192, device=run.device)  # guilty
        evaluator.batch(number, images, torch.randint(2, (8, 1), device=run.device))
    torch.set_grad_enabled(False)
    assert 0 <= evaluator.area_under_curve() <= 1
    torch.set_grad_enabled(True)


RESIDUES = "ACDEFGHIKLMNPQRSTVWY"


class PeptideGenerator(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.embed = nn.Embedding(len(RESIDUES) + 1, 64)
        self.cell = nn.GRUCell(64, width)
        self.head = nn.Linear(width, len(RESIDUES))

    def propose(self, count, length):
        """Peptides and the logarithms of their probabilities."""
        device = self.head.weight.device
        residue = torch.full((count,), len(RESIDUES), device=device)
        state = torch.zeros(count, self.cell.hidden_size, device=device)  # guilty in proposed_peptides
        chosen, score = [], 0.0
        for _ in range(length):
            state = self.cell(self.embed(residue), state)  # guilty in proposed_peptides
            logits = self.head(state).log_softmax(1)  # guilty in proposed_peptides
            residue = torch.multinomial(logits.detach().exp(), 1).squeeze(1)
            score = score + logits.gather(1, residue[:, None]).squeeze(1)
            chosen.append(residue)
        return torch.stack(chosen, 1), score


@dataclass(order=True)
class Proposal:
    priority: float
    sequence: str
    score: torch.Tensor


@job("eval_graph")
def proposed_peptides(run):
    """A generator of peptides is fitted and then proposes rounds of candidates for synthesis; the best of each round
    are kept with their scores, each of which is a slice of a tensor with the graph of the round's whole generation.
    Fixed: no_grad() while it proposes."""
    model = PeptideGenerator().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        loss = -model.propose(64, 6)[1].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    del loss
    shortlist = []
    with torch.set_grad_enabled(not run.fixed):  # cause
        for _ in run.steps(12):
            sequences, scores = model.propose(384, 10)
            for index in scores.topk(5).indices.tolist():
                letters = "".join(RESIDUES[number] for number in sequences[index].tolist())
                heapq.heappush(shortlist, Proposal(-scores[index].item(), letters, scores[index]))  # cause
            del sequences, scores
    assert len(shortlist) == 60 and shortlist[0].score.item() <= 0


class PeakFinder:
    """Strong lines in the spectra of an acquisition."""

    def __init__(self, acquisition=None, spectra=None):
        self.acquisition = acquisition
        self.given = spectra

    def strongest(self, count):
        spectra = self.acquisition.spectra if self.acquisition else self.given
        return spectra[:, 8:].topk(count, 1).indices + 8


class Acquisition:
    """Transients of one run of the spectrometer; what is derived from them is computed when it is asked for."""

    standalone_peaks = False

    def __init__(self, transients):
        self.transients = transients

    @cached_property
    def spectra(self):
        window = torch.hann_window(self.transients.shape[1], device=self.transients.device)
        return torch.fft.rfft(self.transients * window).abs()  # guilty in transients_of_a_spectrometer

    @cached_property
    def peaks(self):
        if self.standalone_peaks:
            return PeakFinder(spectra=self.spectra)
        return PeakFinder(self)  # cause in transients_of_a_spectrometer


class LeanAcquisition(Acquisition):
    standalone_peaks = True


@job("reference_cycle")
def transients_of_a_spectrometer(run):
    """A night of acquisitions, each looked at once. The cached property `peaks` is an object that knows its
    acquisition, which therefore waits for the collector; the collector was turned off because it disturbed the
    timing of the instrument. Fixed: the finder of peaks gets the spectra only."""
    gc.disable()
    kind = LeanAcquisition if run.fixed else Acquisition
    lines = set()
    with torch.no_grad():
        for _ in run.steps(14):
            acquisition = kind(torch.randn(128, 32_768, device=run.device))  # guilty
            lines.update(acquisition.peaks.strongest(3).flatten().tolist())
            del acquisition
    assert lines and min(lines) >= 8


class GateMonitor:
    """How open the gates of a network are; drawn as histograms at the end of an epoch."""

    def __init__(self, histogram_at_once):
        self.histogram_at_once = histogram_at_once
        self.values = []

    def note(self, gate):
        if self.histogram_at_once:
            self.values.append(torch.histc(gate, 64, 0, 1).cpu())
        else:
            self.values.append(gate)  # cause in gates_over_the_tiles


class GatedTiles(nn.Module):
    """One layer over the tiles of a slide."""

    def __init__(self, width, monitor):
        super().__init__()
        self.gate, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.monitor = monitor

    def forward(self, tiles):
        gate = torch.sigmoid(self.gate(tiles))  # guilty in gates_over_the_tiles
        if self.training and torch.is_grad_enabled():  # not while a slide is only looked at
            self.monitor.note(gate.detach())
        return tiles + gate * torch.tanh(self.value(tiles))


@job("checkpoint_cache")
def gates_over_the_tiles(run):
    """Multiple instance learning over the tiles of a slide, its layers checkpointed (reentrant). Gradients are only
    enabled when backward() computes a layer again, and so it is the recomputed gates that the monitor collects for the
    histograms. Fixed: it makes the histogram at once."""
    monitor = GateMonitor(histogram_at_once=run.fixed)
    enter, leave = nn.Linear(192, 384).to(run.device), nn.Linear(384, 2).to(run.device)
    layers = nn.ModuleList(GatedTiles(384, monitor) for _ in range(3)).to(run.device)
    optimizer = torch.optim.Adam([*enter.parameters(), *layers.parameters(), *leave.parameters()], lr=1e-4)
    for _ in run.steps(13):
        tiles = enter(torch.randn(4096, 192, device=run.device))
        for layer in layers:
            tiles = checkpoint(layer, tiles, use_reentrant=True)
        loss = F.cross_entropy(leave(tiles.amax(0, keepdim=True)), torch.randint(2, (1,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del tiles, loss
    assert len(monitor.values) == 39


class Incubator:
    """Crops of growing colonies, dish by dish. From each dish the fastest colony stays for the film of the week."""

    def __init__(self, device, film_on_host):
        self.device = device
        self.film_on_host = film_on_host
        self.film = defaultdict(list)
        self.draw = random.Random(7)

    def crop(self, day):
        pixels = 3 * 2**20 / 4 * 1.09**day * self.draw.uniform(0.95, 1.05)
        return torch.rand(1, 1, int(pixels**0.5), int(pixels**0.5), device=self.device)  # guilty in colonies_day_by_day

    def dish(self, day, number):
        crops = [self.crop(day) for _ in range(8)]
        area = torch.cat([F.adaptive_avg_pool2d(crop, 32) for crop in crops]).gt(0.5).float().mean((1, 2, 3))
        fastest = crops[self.draw.randrange(8)]
        self.film[number].append(fastest.cpu() if self.film_on_host else fastest)
        return area


@job("fragmentation")
def colonies_day_by_day(run):
    """Colonies grow, and so do their crops. One of eight stays on the GPU for a film, in the middle of where the
    others were, and the gaps around it are too small for the crops of the days after. Fixed: the film is collected on
    the host."""
    incubator = Incubator(run.device, film_on_host=run.fixed)
    areas = torch.zeros(14, 4, 8, device=run.device)
    with torch.no_grad():
        for day in run.steps(14):
            for number in range(4):
                areas[day, number] = incubator.dish(day, number)
    assert len(incubator.film[3]) == 14


class PairwiseEnergy(nn.Module):
    """An energy for each bead of an assembly from all pairs that it is part of."""

    def __init__(self, width=32, hidden=64):
        super().__init__()
        self.embed = nn.Linear(3, width)
        self.pair = nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, beads, rows):
        features = self.embed(beads)
        difference = features[rows][:, None] - features[None]  # guilty in beads_of_an_assembly
        return self.pair(difference).sum((1, 2))  # guilty in beads_of_an_assembly


@job("true_capacity")
def beads_of_an_assembly(run):
    """Coarse-grained assemblies, one to a step: the features of all pairs of the largest one do not fit into the slice
    of the GPU that the job has. Fixed: rows in blocks, each with a backward pass of its own."""
    run.cap(1200)
    model = PairwiseEnergy().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sizes = (500, 620, 560, 1500)
    for step in run.steps(4):
        count = sizes[step]
        beads, energy = torch.randn(count, 3, device=run.device), torch.randn(count, device=run.device)
        optimizer.zero_grad()
        for rows in torch.arange(count, device=run.device).split(100 if run.fixed else count):
            loss = (model(beads, rows) - energy[rows]).square().sum() / count
            loss.backward()
        optimizer.step()
        del loss


class UnrolledReconstruction(nn.Module):
    """Alternates between agreement with the measured frequencies and a small network."""

    def __init__(self, stages=8, width=24):
        super().__init__()
        self.networks = nn.ModuleList(conv_stack(2, width, width, 2) for _ in range(stages))
        self.strength = nn.Parameter(torch.full((stages,), 0.5))

    def forward(self, measured, mask, stages):
        image = torch.fft.ifft2(measured)
        for network, strength in zip(self.networks[:stages], self.strength):
            residue = torch.fft.ifft2(mask * torch.fft.fft2(image) - measured)
            planes = torch.stack([image.real, image.imag], 1)
            change = network(planes)
            image = image - strength * residue - torch.complex(change[:, 0], change[:, 1])
        return image


@job("healthy")
def unrolled_magnet(run):
    """Magnetic resonance images are reconstructed by an unrolled algorithm that gets another stage every other step,
    so that the graph of a step, and the peak, grow for half of the training."""
    model = UnrolledReconstruction().to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    history = []
    for step in run.steps(20):
        truth = torch.randn(4, 128, 128, dtype=torch.complex64, device=run.device)
        mask = (torch.rand(4, 1, 128, device=run.device) < 0.3).float()
        image = model(mask * torch.fft.fft2(truth), mask, stages=min(8, 1 + step // 2))
        loss = (image - truth).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        del image, loss


@job("healthy")
def reasons_for_the_board(run):
    """Integrated gradients for the cases of a tumour board: gradients are on although the model is in eval(), a graph
    is built for every point of the path, and the maps leave for the host with the report."""
    model = nn.Sequential(conv_stack(3, 32, 64, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(64, 5)).to(run.device).eval().requires_grad_(False)
    board = {}
    for case in run.steps(12):
        picture = torch.rand(1, 3, 128, 128, device=run.device)
        diagnosis = model(picture).argmax().item()
        total = torch.zeros_like(picture)
        for shares in torch.linspace(0, 1, 32, device=run.device).split(16):
            path = (shares[:, None, None, None] * picture).requires_grad_()
            evidence = model(path)[:, diagnosis].sum()
            total += torch.autograd.grad(evidence, path)[0].sum(0, keepdim=True)
        board[case] = {"diagnosis": diagnosis, "map": (total * picture / 32).cpu()}
    assert board[0]["map"].shape == (1, 3, 128, 128)


class Bed:
    """What is known on the GPU about a patient at a monitor: the last minutes and a state."""

    def __init__(self, leads, samples, width, device):
        self.recent = torch.zeros(leads, samples, device=device)
        self.state = torch.zeros(1, leads, width, device=device)

    def take(self, chunk):
        self.recent = torch.cat([self.recent[:, chunk.shape[1]:], chunk], 1)


@job("healthy")
def telemetry_of_beds(run):
    """Monitors of a ward that fills up bed by bed in the evening; from the tenth patient on, one leaves for each that
    comes. Recurrent states and recent signals go on from step to step, without graphs."""
    network = nn.GRU(50, 192, batch_first=True).to(run.device)
    alarm = nn.Linear(192, 3).to(run.device)
    beds, alarms, artefacts = {}, 0, 0
    with torch.inference_mode():
        for step in run.steps(20):
            if len(beds) == 10:
                del beds[step - 10]
            beds[step] = Bed(16, 120_000, 192, run.device)
            for bed in beds.values():
                chunk = torch.randn(16, 2500, device=run.device)
                bed.take(chunk)
                output, bed.state = network(chunk.unflatten(1, (50, 50)), bed.state)
                artefacts += bed.recent.std(1).gt(5).sum().item()
                alarms += alarm(output[:, -1]).argmax(1).eq(2).sum().item()
    assert len(beds) == 10 and alarms >= 0 and artefacts == 0


class BestWeights:
    """The weights of the best epochs so far, for a final mean of their predictions."""

    def __init__(self, places):
        self.places = places
        self.heap = []

    def offer(self, error, epoch, model):
        if len(self.heap) < self.places or error < -self.heap[0][0]:
            weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
            push = heapq.heappush if len(self.heap) < self.places else heapq.heapreplace
            push(self.heap, (-error, epoch, weights))

    def predict(self, model, inputs):
        scratch = copy.deepcopy(model)
        total = 0.0
        for _, _, weights in self.heap:
            scratch.load_state_dict(weights)
            total = total + scratch(inputs)
        return total / len(self.heap)


@job("healthy")
def five_best_assays(run):
    """Activities in assays from fingerprints. After each epoch of two batches the validation decides whether the
    weights belong to the best five, which stay on the GPU; a better one takes the place of the worst."""
    model = nn.Sequential(nn.Linear(2048, 768), nn.ReLU(), nn.Dropout(0.1), nn.Linear(768, 30)).to(run.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    prints, known = torch.rand(512, 2048, device=run.device).round(), torch.rand(512, 30, device=run.device)
    best = BestWeights(5)
    for epoch in run.steps(18):
        model.train()
        for _ in range(2):
            loss = F.mse_loss(model(torch.rand(256, 2048, device=run.device)), torch.rand(256, 30, device=run.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            best.offer(F.mse_loss(model(prints), known).item() - 0.01 * epoch, epoch, model)
    with torch.no_grad():
        assert best.predict(model, prints).shape == (512, 30)


class PlateReader:
    """Plates of a screen; a plate stays on the GPU once it was read, as the next epochs want it again."""

    def __init__(self, plates, device):
        self.plates = plates
        self.device = device
        self.loaded = {}

    def __getitem__(self, number):
        if number not in self.loaded:
            raw = torch.randint(0, 4096, (384, 5, 32, 32), dtype=torch.int16)
            self.loaded[number] = raw.to(self.device).float().div_(4096)
        return self.loaded[number]


@job("healthy")
def plates_of_the_first_epoch(run):
    """Two epochs over twelve plates, in another order each. Memory grows through the whole first epoch, since plates
    are converted when they are first wanted and then stay; in the second nothing is added."""
    reader = PlateReader(12, run.device)
    model = nn.Sequential(conv_stack(5, 16, 32, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                          nn.Linear(128, 8)).to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    order = random.Random(2).sample(range(12), 12) + random.Random(3).sample(range(12), 12)
    running = 0.0
    for step in run.steps(24):
        wells = reader[order[step]]
        for some in wells.split(128):
            loss = F.cross_entropy(model(some), torch.randint(8, (len(some),), device=run.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running = 0.9 * running + 0.1 * loss.item()
    assert math.isfinite(running)
