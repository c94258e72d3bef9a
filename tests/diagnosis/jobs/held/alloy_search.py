"""The search for alloys with Gaussian processes (gpytorch)."""
import gpytorch
import torch

from job import job


class AlloyProcess(gpytorch.models.ExactGP):
    def __init__(self, recipes, strengths, likelihood):
        super().__init__(recipes, strengths, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=recipes.shape[1]))

    def forward(self, recipes):
        mean = self.mean_module(recipes)
        covariance = self.covar_module(recipes)
        return gpytorch.distributions.MultivariateNormal(mean, covariance)


def process_of(recipes, strengths):
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(recipes.device)
    return AlloyProcess(recipes, strengths, likelihood).to(recipes.device), likelihood


def fit(model, likelihood, recipes, strengths, rounds):
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(rounds):
        optimizer.zero_grad()
        loss = -marginal(model(recipes), strengths)
        loss.backward()
        optimizer.step()
    model.eval()
    likelihood.eval()


@job("eval_graph")
def posterior_of_candidates(run):
    """The posterior of each batch of candidates is kept for ranking. eval() was called, no_grad() was not: each keeps
    the kernel between candidates and data. Fixed: no_grad()."""
    recipes, strengths = torch.rand(600, 12, device=run.device), torch.rand(600, device=run.device)
    model, likelihood = process_of(recipes, strengths)
    fit(model, likelihood, recipes, strengths, 3)
    ranking = []
    with torch.set_grad_enabled(not run.fixed):
        for _ in run.steps(10):
            candidates = torch.rand(4000, 12, device=run.device)
            posterior = model(candidates)  # guilty
            ranking.append((posterior.mean, posterior.variance))  # guilty
    assert len(ranking) == 10


@job("true_capacity")
def every_alloy_at_once(run):
    """The kernel of all alloys that were ever measured is computed in one piece: it fits for the small foundries, not
    for the last one. Fixed: rows in parts of 1,000."""
    run.cap(420)
    foundries = [2000, 3000, 2500, 4000, 3500, 11_000, 3000]
    kernel = gpytorch.kernels.RBFKernel().to(run.device)
    with torch.no_grad():
        for step in run.steps(len(foundries)):
            recipes = torch.rand(foundries[step % len(foundries)], 12, device=run.device)
            rows = 1000 if run.fixed else len(recipes)
            nearest = []
            for part in recipes.split(rows):
                similarity = kernel(part, recipes).to_dense()  # guilty
                nearest.append(similarity.topk(5).indices.cpu())
                del similarity
            assert len(torch.cat(nearest)) == len(recipes)


@job("healthy")
def eight_more_experiments(run):
    """Bayesian optimization: each round fits a new process to the experiments, of which there are eight more."""
    recipes = torch.rand(200, 12, device=run.device)
    strengths = recipes.sum(1).sin()
    for _ in run.steps(10):
        model, likelihood = process_of(recipes, strengths)
        fit(model, likelihood, recipes, strengths, 2)
        with torch.no_grad():
            candidates = torch.rand(2000, 12, device=run.device)
            posterior = model(candidates)
            promise = posterior.mean + 2 * posterior.variance.clamp(min=0).sqrt()
            chosen = candidates[promise.topk(8).indices]
            recipes = torch.cat([recipes, chosen])
            strengths = torch.cat([strengths, chosen.sum(1).sin()])
    assert len(recipes) == 280
