#!/usr/bin/env python3
"""Extracts from the Open Traffic Generator models what otg.proto does not hold.

usage: extract.py MODELS > tables.json

MODELS is a checkout of open-traffic-generator/models. The output is JSON:

  messages  for each message of otg.proto: required fields, and defaults by field
            (artifacts/openapi.yaml)
  layouts   for each packet header and part of one: its fields in wire order, each with its format
            and length in bits, or the message that it refers to (flow/packet-headers/*.yaml)
"""
import json
import pathlib
import sys

import yaml

ADDRESS_BITS = {"mac": 48, "ipv4": 32, "ipv6": 128}


def read(path):
    return yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


def message_name(schema):
    """Returns the name that the proto generator gives to a schema."""
    return schema.replace(".", "")


def referred(reference):
    return message_name(reference.rsplit("/", 1)[-1])


def messages(schemas):
    found = {}
    for name, schema in schemas.items():
        properties = schema.get("properties", {})
        defaults = {key: it["default"] for key, it in properties.items() if "default" in it}
        entry = {}
        if defaults:
            entry["defaults"] = defaults
        if schema.get("required"):
            entry["required"] = schema["required"]
        if entry:
            found[message_name(name)] = entry
    return found


def field(key, schema, schemas):
    """Returns [name, format, bits] of a field, or [name, message] of a part."""
    if "x-include" in schema:
        reference = schema["x-include"].removeprefix("#/components/schemas/")
        owner, name = reference.split("/properties/")
        return [key, *field(name, schemas[owner]["properties"][name], schemas)[1:]]
    pattern = schema.get("x-field-pattern")
    if pattern is not None:
        form = pattern["format"]
        return [key, form, ADDRESS_BITS.get(form) or pattern.get("length", 0)]
    reference = schema.get("$ref") or schema.get("items", {}).get("$ref")
    if reference is not None:
        return [key, referred(reference)]
    return [key, schema.get("format", schema.get("type")), 0]


def layouts(files):
    schemas = {}
    for path in files:
        schemas.update(read(path).get("components", {}).get("schemas", {}))
    return {
        message_name(name): [
            field(key, it, schemas) for key, it in schema["properties"].items() if key != "choice"
        ]
        for name, schema in schemas.items()
        if schema.get("properties")
    }


def main():
    models = pathlib.Path(sys.argv[1])
    openapi = read(models / "artifacts" / "openapi.yaml")
    tables = {
        "version": openapi["info"]["version"],
        "messages": messages(openapi["components"]["schemas"]),
        "layouts": layouts(sorted((models / "flow" / "packet-headers").glob("*.yaml"))),
    }
    json.dump(tables, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


main()
