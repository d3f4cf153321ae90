"""Checks that the files and links that documents name exist.

    references.py SOURCE_FOLDER

Documents name files in code font: as a path from the root (`plan/plan.h`), as a path below a folder that the text names
(`core/core.h`), or alone (`plan.h`). Names with placeholders (NAME, <kind>, *), files made by a build or a user, and code blocks
are left out. A relative link must lead to a file, and its anchor to a heading of that file. Sphinx checks the manual's links, too,
but needs packages.
"""
import os
import pathlib
import re
import subprocess
import sys

ENDINGS = "c|h|cc|cu|def|py|sh|cmake|md|txt|json|jsonl|toml|svg|csv|onnx|yml|cff"
NAME = re.compile(rf"`((?:[\w.+-]+/)*[\w.+-]+\.(?:{ENDINGS}))`")
LINK = re.compile(r"\]\(([^)\s]*)\)")
PLACEHOLDER = re.compile(r"NAME|FILE|DIGEST|VERSION|<|\*")
MADE = re.compile(r"(?:fp32|bf16|plot|results|rows|table|log|round|report|prices|coverage|measured|steps|job|model|predictor|mine"
                  r"|config|tensors)\.\w+|build/.*|share/.*")
COMPANIONS = ("cluster/", "lab/")  # their pages name data files of other projects
LEAST_NAMES, LEAST_LINKS = 300, 200


def tracked_files(root):
    try:
        names = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        names = [str(p.relative_to(root)) for p in pathlib.Path(root).rglob("*") if p.is_file()]
    return {name for name in names if name and not name.startswith("build") and os.path.isfile(os.path.join(root, name))}


def anchors_of(text):
    """The anchors that Sphinx and GitHub make of headings, and MyST's labels."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-") for heading in headings)
    return set(plain) | set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))


def names_in(page, text):
    names = {name for name in NAME.findall(text) if not PLACEHOLDER.search(name) and not MADE.fullmatch(name)}
    return sorted(name for name in names if not (page.startswith(COMPANIONS) and name.endswith((".csv", ".json"))))


def links_in(text):
    return sorted({link for link in LINK.findall(text) if "://" not in link and not link.startswith("mailto:")})


def link_fault(root, page, link):
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(root, os.path.dirname(page), path)) if path else os.path.join(root, page)
    if not os.path.exists(target):
        return f"{page} links to {link}, which is missing"
    if anchor and target.endswith(".md") and anchor not in anchors_of(pathlib.Path(target).read_text(encoding="utf-8")):
        return f"{page} links to {link}, whose anchor is missing"
    return None


def main(root):
    files = tracked_files(root)
    ends = {"/".join(parts[i:]) for parts in (name.split("/") for name in files) for i in range(len(parts))}
    faults, name_count, link_count = [], 0, 0
    for page in sorted(name for name in files if name.endswith(".md")):
        text = re.sub(r"```.*?```", "", pathlib.Path(root, page).read_text(encoding="utf-8"), flags=re.S)
        names, links = names_in(page, text), links_in(re.sub(r"`[^`]*`", "", text))
        name_count, link_count = name_count + len(names), link_count + len(links)
        beside = os.path.join(root, os.path.dirname(page))
        faults += [f"{page} names {name}, which is missing" for name in names
                   if name not in ends and not os.path.exists(os.path.join(beside, name))]
        faults += [fault for fault in (link_fault(root, page, link) for link in links) if fault]
    if name_count < LEAST_NAMES or link_count < LEAST_LINKS:
        faults.append(f"only {name_count} names and {link_count} links were found")
    print("\n".join(faults) if faults else f"{name_count} files and {link_count} links of documents exist")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
