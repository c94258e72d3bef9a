#!/usr/bin/env python3
"""check_schema.py SCHEMA FILE... - each FILE is JSON that follows the JSON schema. 77: no python3-jsonschema.

With --closed, keys that the schema does not name are an error too: a published schema lets a reader ignore what a
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


def main():
    arguments = sys.argv[1:]
    is_closed = arguments[0] == "--closed"
    schema_path, *paths = arguments[is_closed:]
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    if is_closed:
        close(schema)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failed = False
    for path in paths:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        for error in validator.iter_errors(document):
            failed = True
            where = "/".join(str(step) for step in error.absolute_path)
            print(f"{path}: at /{where}: {error.message[:400]}")
    print(f"{len(paths)} files checked")
    if not paths:
        print("nothing to check")
    sys.exit(1 if failed or not paths else 0)


main()
