"""The fixes that `gmd diagnose` prints for leaking jobs, as edits of the jobs' text: (module, job, edits), an edit a
pair of the text as it is and as it is then. `record_mended.py` applies them. A job without edits is mended by
settings: its mode."""
from typing import NamedTuple


class Mended(NamedTuple):
    module: str
    job: str
    edits: tuple
    mode: str = "-"  # of the mended one; "oom": the leaking one ends so
    steps: int = 4  # times as many iterations, as leaks in practice outlive a dozen


MENDED = (
    # optimizer.zero_grad(set_to_none=True)  # after each optimizer.step(): speech.py:23 adds to what it made before
    Mended("speech", "speaker_network", ((
        "        loss.backward()  # guilty\n        optimizer.step()\n        if run.fixed:\n",
        "        loss.backward()\n        optimizer.step()\n        optimizer.zero_grad(set_to_none=True)\n"
        "        if run.fixed:\n"),)),
    # history.append(p.grad.norm().item())  # a number of each gradient [...], not the tensor; or p.grad.cpu()
    Mended("language", "task_conflicts", (
        ("kept[step, task] = torch.autograd.grad(loss, shared, retain_graph=True)",
         "kept[step, task] = [g.cpu() for g in torch.autograd.grad(loss, shared, retain_graph=True)]"),
        ("weight -= 0.01 * sum(kept[step, task][index] for task in range(3))",
         "weight -= 0.01 * sum(kept[step, task][index] for task in range(3)).to(run.device)"))),
    # cache.clear()  # after each backward(): what science.py:132 stores outside its function
    Mended("science", "recomputed_steps", ((
        "        field.square().mean().backward()\n        with torch.no_grad():\n            weight -=",
        "        field.square().mean().backward()\n        table.clear()\n        with torch.no_grad():\n"
        "            weight -="),)),
    # with torch.no_grad():  # or torch.inference_mode(), around [...]
    Mended("generative", "sampling", (("    with torch.set_grad_enabled(not run.fixed):\n        for _ in run.steps(8):\n"
                                       "            image", "    with torch.no_grad():\n"
                                       "        for _ in run.steps(8):\n            image"),)),
    # ctx.save_for_backward(result)  # instead of ctx.result = result, for generative.py:67
    Mended("generative", "own_gradient", (("            ctx.x, ctx.result = x, result",
                                           "            ctx.save_for_backward(x, result)"),
                                          ("ctx.saved_tensors if ctx.save else (ctx.x, ctx.result)",
                                           "ctx.saved_tensors"))),
    # self.other = weakref.ref(other)  # break the circle [...], or del it when done; gc.collect() every few iterations
    Mended("serving", "failed_requests", (("    return f\"{reason}\"\n",
                                           "    text = f\"{reason}\"\n    del reason\n    return text\n"),)),
    # losses.append(loss.item())  # the number, not the tensor with the graph that vision.py:55 makes
    Mended("vision", "dice_history", (("history.append(dice.item() if run.fixed else dice)",
                                       "history.append(dice.item())"),)),
    # [...]; for more than a number outputs.append(output.detach().cpu())
    Mended("reinforcement", "critic_log", (("log.append(values.detach().cpu() if run.fixed else values)",
                                            "log.append(values.detach().cpu())"),)),
    # hidden = hidden.detach()  # before language.py:78 takes it into the next iteration; [...] then backward() needs no
    # retain_graph
    Mended("language", "character_model", (
        ("        output, state = model(embed(text[:, :-1]), state)  # guilty",
         "        state = state.detach() if state is not None else None\n"
         "        output, state = model(embed(text[:, :-1]), state)"),
        ("loss.backward(retain_graph=not run.fixed)\n        norms", "loss.backward()\n        norms")), "oom"),
    # with torch.no_grad():  # or torch.inference_mode(), around vision.py:100
    Mended("vision", "validation_loss", (("    with torch.set_grad_enabled(not run.fixed):\n        for _ in run.steps(12):\n"
                                          "            images = pixels(run, 4, 96)\n            output = model",
                                          "    with torch.no_grad():\n        for _ in run.steps(12):\n"
                                          "            images = pixels(run, 4, 96)\n            output = model"),)),
    # torch.cuda.empty_cache()  # once, after the phase that needed it (vision.py:163), with its tensors deleted
    Mended("vision", "batch_size_finder", (("    if run.fixed:\n        torch.cuda.empty_cache()\n    for _ in run.steps(8):\n"
                                            "        images = pixels(run, 2, 128)",
                                            "    torch.cuda.empty_cache()\n    for _ in run.steps(8):\n"
                                            "        images = pixels(run, 2, 128)"),)),
    # torch.cuda.current_stream().wait_stream(side)  # before the last reference to what pipeline.py:56 makes goes,
    # instead of record_stream()
    Mended("pipeline", "second_opinion", (("        batch.record_stream(side)  # cause\n        if run.fixed:\n"
                                           "            flight.add(side)\n        del batch",
                                           "        main.wait_stream(side)\n        if run.fixed:\n"
                                           "            flight.add(side)\n        del batch"),)),
    # losses.append(loss.item())  # [...]; for more than a number outputs.append(output.detach().cpu())
    Mended("vision", "embedding_bank", (("bank.append(embeddings.detach() if run.fixed else embeddings)",
                                         "bank.append(embeddings.detach().cpu())"),)),
    # hidden = hidden.detach()  # before reinforcement.py:49 takes it into the next iteration
    Mended("reinforcement", "recurrent_agent", (("        state = cell(encode(observation), state)",
                                                 "        state = state.detach()\n"
                                                 "        state = cell(encode(observation), state)"),)),
    # history.append(p.grad.norm().item())  # a number of each gradient that language.py:40 makes, not the tensor
    Mended("language", "gradient_history", (("history.append([p.grad.clone() for p in model.parameters()])",
                                             "history.append([p.grad.norm().item() for p in model.parameters()])"),),
           "oom"),
    # with torch.no_grad():  # or torch.inference_mode(), around libraries.py:48
    Mended("libraries", "mobile_network", (("    with torch.set_grad_enabled(not run.fixed):\n"
                                            "        for _ in run.steps(5):\n            images = torch.randn(32",
                                            "    with torch.no_grad():\n"
                                            "        for _ in run.steps(5):\n            images = torch.randn(32"),)),
    # PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
    Mended("speech", "features_then_train", (), "expandable", 1),
)
