"""Checks that docs/reference/environment.md lists the environment variables that the tree reads, and no others.

    environment.py SOURCE_FOLDER

Reads C (getenv), Python (os.environ and os.getenv) and shell (${MDOT_NAME:-default} and similar). Python files in
tests/ are left out, because ctest sets those variables.
"""
import pathlib
import re
import subprocess
import sys

PATTERNS = {
    (".c", ".h", ".cc", ".cu"): [r'getenv\(\s*"(\w+)"'],
    (".py",): [r'os\.environ(?:\.get\(|\[)"(\w+)"', r'os\.getenv\("(\w+)"', r'_of_environment\("(\w+)"'],
    (".sh",): [r"\$\{(MDOT_\w+):?[-+?]"],
}
LOCAL = {"PYTORCH_CUDA_ALLOC_CONF", "PYTHONPATH",  # recorded or passed on as they are
         "TRANSFORMERS_DISABLE_TORCH_CHECK"}  # set for transformers
PAGE = "docs/reference/environment.md"


def files_of(root):
    """Paths of files that git tracks, or, without git, of all files outside build folders."""
    try:
        files = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True)
        return files.stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        paths = (p.relative_to(root) for p in pathlib.Path(root).rglob("*"))
        return [str(p) for p in paths if not p.parts[0].startswith("build")]


def names_in_tree(root):
    found = {}
    for name in files_of(root):
        path = pathlib.Path(root, name)
        for suffixes, patterns in PATTERNS.items():
            if path.suffix not in suffixes or not path.is_file() or name.startswith("tests/") and path.suffix == ".py":
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            for pattern in patterns:
                for variable in re.findall(pattern, text):
                    found.setdefault(variable, name)
    return {variable: place for variable, place in found.items() if variable not in LOCAL}


def names_in_page(root):
    found = set()
    for line in pathlib.Path(root, PAGE).read_text(encoding="utf-8").split("\n"):
        if line.startswith("| `"):
            found.update(re.findall(r"`(\w+)`", line.split("|")[1]))
    return found


def main(root):
    tree, page = names_in_tree(root), names_in_page(root)
    for variable in sorted(set(tree) - page):
        print(f"{PAGE} lacks {variable}, which {tree[variable]} reads")
    for variable in sorted(page - set(tree)):
        print(f"{PAGE} lists {variable}, which no file reads")
    if len(tree) < 10:
        print(f"only {len(tree)} variables were found in {root}")
    return 1 if set(tree) != page or len(tree) < 10 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
