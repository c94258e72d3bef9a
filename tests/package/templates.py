#!/usr/bin/env python3
"""templates.py PREFIX: the installed CI templates are YAML, and the options and files that they name exist."""
import pathlib
import re
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("skipped, no PyYAML")
    sys.exit(77)

prefix = pathlib.Path(sys.argv[1])


def texts(node):
    """Every string of a document."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, (dict, list)):
        for child in node.values() if isinstance(node, dict) else node:
            yield from texts(child)


def check_commands(text):
    """Counts the calls of gmd in a script."""
    calls = re.findall(r'bin/gmd"? (run|fuzz|gate|replay) ((?:\\\n|[^\n])*)', text)
    for command, arguments in calls:
        known = subprocess.run([prefix / "bin/gmd", command, "--help"], capture_output=True, text=True, check=True).stdout
        for option in re.findall(r"(?<!\S)--[a-z-]+", arguments):
            assert re.search(rf"{option}\b", known), f"gmd {command} has no {option}"
    return len(calls)


module = (prefix / "lib/cmake/gmd/GmdAllocatorTest.cmake").read_text()
for name in ("github-actions.yml", "gitlab-ci.yml"):
    path = prefix / "share/doc/gmd/ci" / name
    document = yaml.safe_load(path.read_text())
    calls = sum(check_commands(text) for text in texts(document))
    assert calls >= 2, f"{name}: {calls} calls of gmd"
    reports = set(re.findall(r"gate\.[a-z]+", "\n".join(texts(document))))
    assert reports and all(report in module for report in reports), f"{name}: {reports}"
    print(f"{name}: {calls} calls, {sorted(reports)}")

# Without its variables GitLab's job would only say that git clone has no repository.
steps = yaml.safe_load((prefix / "share/doc/gmd/ci/gitlab-ci.yml").read_text())["gmd:simulated"]["before_script"]
for given, status in (({}, 1), ({"GMD_URL": "https://a/gmd"}, 1), ({"GMD_URL": "https://a/gmd", "GMD_REF": "v1"}, 0)):
    done = subprocess.run(["bash", "-c", steps[0]], env={"PATH": "/usr/bin:/bin", **given}, capture_output=True, text=True,
                          check=False)
    assert done.returncode == status, f"{given}: {done.returncode}"
    assert status == 0 or "GMD_URL" in done.stderr, f"{given}: {done.stderr}"

# Without the variable GitHub's checkout takes the user's own repository.
steps = yaml.safe_load((prefix / "share/doc/gmd/ci/github-actions.yml").read_text())["jobs"]["simulated"]["steps"]
guard = next(step["run"] for step in steps if "GMD_REPOSITORY" in step.get("env", {}))
for repository, status in (("", 1), ("owner/gmd", 0)):
    done = subprocess.run(["bash", "-c", guard], env={"GMD_REPOSITORY": repository, "PATH": "/usr/bin:/bin"},
                          capture_output=True, check=False)
    assert done.returncode == status, f"GMD_REPOSITORY={repository!r}: {done.returncode}"
