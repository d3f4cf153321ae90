#!/usr/bin/env python3
"""Counts habits of prose per 1,000 words and compares them with the limits of the project.

    check-prose.py [--worst N] [FILE ...]     default: all files that git tracks

The script prints one row for each group of texts, then every limit that a group exceeds. With --worst it also prints
the N sentences that break most rules. The exit status is 1 if a group exceeds a limit. The limits find bad sentences,
for example a sentence of 40 words. Good sentences need a reader, who has to judge each change.

Groups: documents (.md), public headers (include/), comments in C, Python, tables (.def, .cu) and scripts (shell, CMake),
the command's help texts (tests/golden/cli), and messages (C string literals that a user can see).
"""
import io
import os
import re
import subprocess
import sys
import tokenize

WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
SENTENCE_END = re.compile(r"[.!?]\s|\n\s*\n")
RATES = {
    "what/who": re.compile(r"\b(?:what|who|whoever|whatever)\b", re.I),
    "negations": re.compile(r"\b(?:no|not|none|nothing|never|neither|nor|nobody|cannot|without)\b|n't\b", re.I),
    "told/said": re.compile(r"\b(?:tells?|told|says?|said)\b", re.I),
    "of": re.compile(r"\bof\b", re.I),
    "its/their": re.compile(r"\b(?:its|their)\b", re.I),
    "that/which": re.compile(r"\b(?:that|which)\b", re.I),
}
# Words of an older vocabulary. Each pattern is one entry of the list, so that a message names the word that was found.
REJECTED = re.compile(
    r"\b(?:rooms|armou?r|grave|graves|yard|bury|buries|buried|lent|foretold|efforts?|learnt|doubts"
    r"|stays? apart|written out"
    r"|spellings? of (?:a|the|its|each|one) pattern|pattern's spellings?"
    r"|(?:told|asked) (?:of a )?configurations?|configurations? (?:is|was|are|were) (?:told|asked)|what is (?:told|asked))\b",
    re.I)
REJECTED_IN_MESSAGES = re.compile(r"\bmodelled\b", re.I)

# An error message names the thing that is absent or invalid, for example "the job has no blocks". Messages therefore need more
# negations than documents: 38 when the rule was introduced, 25 after every message was reviewed.
MESSAGES = {"what/who": 2, "negations": 30, "told/said": 1, "words/sentence": 22}
BELOW = {"what/who": 2, "negations": 15, "told/said": 1, "words/sentence": 22}
COMMENTS = dict(BELOW, **{"of": 38, "its/their": 7, "that/which": 17})
FOR_USERS = {"of": 30, "its/their": 5, "that/which": 14}
LIMITS = {
    "documents": dict(BELOW, negations=10, **FOR_USERS),
    "public headers": dict(BELOW, **FOR_USERS),
    "C comments": COMMENTS,
    "Python comments": COMMENTS,
    "table comments": BELOW,
    "script comments": BELOW,
    "help": BELOW,
    "messages": MESSAGES,
}
MESSAGE_FOLDERS = ("base/", "benchmarks/", "cli/", "codegen/", "compiler/", "examples/", "frontend/", "include/",
                   "ir/", "plan/", "runtime/", "cluster/")
LEAST_WORDS_OF_A_MESSAGE = 4


def of_markdown(text):
    """Paragraphs and lists; code, tables and headings are left out."""
    text = re.sub(r"```.*?```", " ", text, flags=re.S)
    kept = [line for line in text.split("\n") if line[:1] not in ("\t", "|", "#") and line[:4] != "    "]
    return re.sub(r"`[^`]*`", "x", "\n".join(kept))


def of_c(text):
    found = re.findall(r"/\*(.*?)\*/|//([^\n]*)", text, flags=re.S)
    return ".\n".join(re.sub(r"^[ *\-=]+", " ", block or line, flags=re.M) for block, line in found)


def of_python(text):
    """Comments and documentation strings."""
    parts = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                parts.append(token.string.lstrip("#! "))
            elif token.type == tokenize.STRING and token.string.startswith(('"""', "'''", 'r"""')):
                parts.append(token.string.strip("r\"'"))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # the comments up to the error count
    return ".\n".join(parts)


def of_script(text):
    """Comments of shell and CMake: adjacent lines are one text, and an indented example is left out."""
    blocks, block = [], []
    for line in text.split("\n"):
        found = re.match(r"\s*#(?!!)(.*)", line)
        trailing = re.search(r"\s# (.*)", line)
        if found is not None and not found.group(1).startswith("    "):
            block.append(found.group(1))
            continue
        blocks.append("\n".join(block))
        block = []
        if found is None and trailing is not None:
            blocks.append(trailing.group(1))
    return ".\n".join(b for b in blocks + ["\n".join(block)] if b.strip())


def of_help(text):
    """Each row of an option begins a sentence."""
    return re.sub(r"^ {2,6}(?=\S)", ".\n", text, flags=re.M)


C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*|\.|\S|\n', re.S)
PRINTS = re.compile(r"(?:printf|fprintf|\w*fail|\w*refuse|\w*warn|\w*usage_error)$")
FIELDS = ("help", "description", "summary")


def of_messages(text, is_table=False):
    """String literals: of calls that print or fail, of help fields, and of tables (rows of .def files and headers)."""
    tokens = [t for t in C_TOKEN.findall(re.sub(r"\\\n", " ", text)) if t != "\n" and not t.startswith(("/*", "//"))]
    found, i = [], 0
    while i < len(tokens):
        begins_call = i + 1 < len(tokens) and PRINTS.match(tokens[i]) and tokens[i + 1] == "("
        begins_field = tokens[i - 1] == "." and tokens[i] in FIELDS and tokens[i + 1:i + 2] == ["="]
        if is_table and tokens[i].startswith('"'):
            found.append(tokens[i][1:-1])
        elif begins_call or begins_field:
            i += 2
            depth, literal = (1 if begins_call else 0), []
            while i < len(tokens) and tokens[i] != ";":
                depth += {"(": 1, ")": -1, "{": 1, "}": -1}.get(tokens[i], 0)
                if depth < 0 or (depth == 0 and tokens[i] in (",", ")")):
                    break
                if tokens[i].startswith('"'):
                    literal.append(tokens[i][1:-1])
                elif tokens[i] in (",", ":", "?") and literal and literal[-1] != ".\n":
                    literal.append(".\n")
                i += 1
            found += "".join(literal).split(".\n")
        i += 1
    texts = [re.sub(r"%[-+ #0-9.*]*(?:[hlzjt]*[a-zA-Z])", "x", re.sub(r"\\[nt]", " ", t)) for t in found]
    return ".\n".join(t for t in texts if len(WORD.findall(t)) >= LEAST_WORDS_OF_A_MESSAGE)


def texts_of(name, text):
    """Yields (group, text) for each group that the file belongs to."""
    ending = name[name.rfind("."):] if "." in name else ""
    if ending == ".md":
        yield "documents", of_markdown(text)
    elif ending in (".c", ".h"):
        is_public = name.startswith(("include/mdot/", "cluster/include/"))
        yield "public headers" if is_public else "C comments", of_c(text)
        if name.startswith(MESSAGE_FOLDERS):
            yield "messages", of_messages(text, is_table=name.startswith("include/"))
    elif ending == ".py":
        yield "Python comments", of_python(text)
    elif ending in (".def", ".cu"):
        yield "table comments", of_c(text)
        yield "messages", of_messages(text, is_table=ending == ".def")
    elif ending in (".sh", ".cmake") or os.path.basename(name) == "CMakeLists.txt":
        yield "script comments", of_script(text)
    elif "golden/cli/" in name:
        yield "help", of_help(text)


def sentences_of(text):
    return re.split(r"(?<=[.!?:;])\s+|\n\s*\n", text)


def rejected_words(group, text):
    found = [m.group(0) for m in REJECTED.finditer(text)]
    return found + ([m.group(0) for m in REJECTED_IN_MESSAGES.finditer(text)] if group in ("messages", "help") else [])


def tracked_files():
    names = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=False).stdout
    if names:
        return names.split("\n")
    return sorted(os.path.relpath(os.path.join(folder, name)) for folder, _, names in os.walk(".") for name in names
                  if not folder.startswith(("./build", "./.")))


def measure(text):
    words = len(WORD.findall(text)) or 1
    row = {name: 1000 * len(rule.findall(text)) / words for name, rule in RATES.items()}
    row["words/sentence"] = words / (len(SENTENCE_END.findall(text)) or 1)
    return row, words


def broken_limits(group, row):
    for rule, limit in LIMITS[group].items():
        if row[rule] >= limit:
            yield f"{group}: {rule} {row[rule]:.1f}, the limit is < {limit:g}"


def main(arguments):
    worst = 0
    if arguments[:1] == ["--worst"]:
        worst, arguments = int(arguments[1]), arguments[2:]
    texts, bad_sentences, faults = {}, [], []
    for name in arguments or tracked_files():
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                content = file.read() if os.path.isfile(name) else ""
        except OSError:
            continue  # a file that git tracks and that was removed
        for group, text in texts_of(name, content):
            texts[group] = texts.get(group, "") + "\n\n" + text
            faults += [f"{name}: rejected word \"{word}\"" for word in rejected_words(group, text)]
            for sentence in sentences_of(text):
                bad = sum(len(rule.findall(sentence)) for rule in RATES.values())
                words = len(sentence.split())
                weight = bad / max(words, 12) + max(words - 40, 0) / 200
                if bad > 2 or words > 40:
                    bad_sentences.append((weight, name, " ".join(sentence.split())[:200]))
    columns = (*RATES, "words/sentence")
    print(f"{'per 1,000 words':18}" + "".join(f"{name:>15}" for name in (*columns, "words")))
    for group in LIMITS:
        if group not in texts:
            continue
        row, words = measure(texts[group])
        print(f"{group:18}" + "".join(f"{row[name]:15.1f}" for name in columns) + f"{words:15d}")
        faults += broken_limits(group, row)
    for _, name, sentence in sorted(bad_sentences, reverse=True)[:worst]:
        print(f"{name}: {sentence}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
