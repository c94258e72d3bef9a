#!/usr/bin/env python3
"""check_openmetrics.py FILE... - the parser of Prometheus' Python client reads each FILE. 77: it is not installed."""
import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    print("skipped: python3-prometheus-client is not installed")
    sys.exit(77)

for path in sys.argv[1:]:
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        sys.exit(f"{path}: {error}")
    samples = [(s.name, tuple(sorted(s.labels.items()))) for f in families for s in f.samples]
    if len(samples) != len(set(samples)):
        sys.exit(f"{path}: a sample comes twice")
    if not any(name == "gmd_info" for name, _ in samples):
        sys.exit(f"{path}: no gmd_info")
print(f"{len(sys.argv) - 1} files checked")
