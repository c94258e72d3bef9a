#!/usr/bin/env python3
"""check_schema.py SCHEMA FILE... - each FILE is JSON that follows the JSON schema. 77: no python3-jsonschema.

With --lines, each line of a FILE is such a document. With --closed, keys that the schema does not name are an error too: a published schema lets a reader ignore what a
later version adds, but this version must write nothing that is not in it.
"""
import json
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)


def close(schema):
    """Objects with named keys take no others, unless the schema says what the others are."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for key, part in schema.items():
            if key != "if":  # a condition, which is not about the other keys
                close(part)
    elif isinstance(schema, list):
        for part in schema:
            close(part)


def documents(path, is_lines):
    with open(path, encoding="utf-8") as file:
        if not is_lines:
            yield path, json.load(file)
            return
        for number, line in enumerate(file, 1):
            yield f"{path}:{number}", json.loads(line)


def main():
    options = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    schema_path, *paths = [argument for argument in sys.argv[1:] if argument not in options]
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    if "--closed" in options:
        close(schema)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failed = False
    count = 0
    for path in paths:
        for place, document in documents(path, "--lines" in options):
            count += 1
            for error in validator.iter_errors(document):
                failed = True
                where = "/".join(str(step) for step in error.absolute_path)
                print(f"{place}: at /{where}: {error.message[:400]}")
    print(f"{count} documents checked")
    if not count:
        print("nothing to check")
    sys.exit(1 if failed or not count else 0)


main()
