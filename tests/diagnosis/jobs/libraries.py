"""Models of libraries (transformers, torchvision): the innermost lines of a stack that are not PyTorch's are the
library's, not the user's."""
import torch

from job import job


def bert():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(vocab_size=2000, hidden_size=256, num_hidden_layers=3, num_attention_heads=4,
                        intermediate_size=1024, max_position_embeddings=256, num_labels=5)
    return BertForSequenceClassification(config)


def words(run, count, length):
    return torch.randint(2000, (count, length), device=run.device)


@job("retained_graph")
def hidden_states(run):
    """Fine-tuning that logs the hidden states of all layers, as tensors of the graph. Fixed: their norms."""
    model = bert().to(run.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    log = []
    for _ in run.steps(7):
        labels = torch.randint(5, (32,), device=run.device)
        output = model(input_ids=words(run, 32, 128), labels=labels, output_hidden_states=True)  # guilty
        optimizer.zero_grad()
        output.loss.backward()
        optimizer.step()
        if run.fixed:
            log.append([state.norm().item() for state in output.hidden_states])
        else:
            log.append(output.hidden_states)  # cause


@job("eval_graph")
def mobile_network(run):
    """A network of torchvision is tested without no_grad(), its scores collected for a report. Fixed: no_grad()."""
    from torchvision.models import mobilenet_v3_small

    model = mobilenet_v3_small(weights=None).to(run.device).eval()
    scores = []
    with torch.set_grad_enabled(not run.fixed):
        for _ in run.steps(5):
            images = torch.randn(32, 3, 160, 160, device=run.device)
            scores.append(torch.softmax(model(images), 1))  # guilty


@job("healthy")
def text_generation(run):
    """GPT-2's generate() of the transformers library: its cache of keys and values goes with each answer."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=2000, n_positions=256, n_embd=512, n_layer=2, n_head=8, bos_token_id=1,
                        eos_token_id=2)
    model = GPT2LMHeadModel(config).to(run.device).eval()
    for _ in run.steps(4):
        prompt = words(run, 16, 100)
        answer = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=10, do_sample=False,
                                pad_token_id=0)
        assert len(answer.tolist()) == 16
        del answer
