"""Prints a C header in the form that Doxygen reads, with the facts of each function complete.

    doxygen_filter.py HEADER

The headers use plain comments, for people who read them in an editor. A comment that begins a line describes the
declaration below it and becomes /** … */. A comment behind code describes this code and becomes /**< … */, except
behind the brace that opens a struct, which it describes. If it stands behind several fields, every field gets it, or its
own part, if it has one part for each field, divided by semicolons. Titles of sections (/* ---- Title ---- */) stay as they
are, and so does the comment at the top, which describes the header.

Facts that follow from types are stated once, with the type, and added to every function here:

    @param    `err`, objects that the function uses, and objects that it makes
    @return   of functions that return a status
    @owner    the function that releases the objects that it makes
    @threads  the rule of its objects, from the comment of their typedef

Fields that mean the same in every struct get their text here, too.
"""

import functools
import pathlib
import re
import sys

COMMENT = r"/\*(?:(?!\*/).)*?\*/"
PROTOTYPE = re.compile(rf"^(?P<comment>{COMMENT})\n(?P<attribute>#if[^\n]*\n__attribute__[^\n]*\n#endif\n)?"
                       r"(?P<type>[a-z][\w ]*?[ \n]\*?(?:const \*)?)(?P<name>mdot\w*)\((?P<arguments>[^;{}]*)\);$",
                       re.M | re.S)
FIELDS = re.compile(rf"^(?P<indent> +)(?P<type>(?:const )?\w+ )(?P<names>\*?\w+(?:\[\w+\])?(?:, \*?\w+(?:\[\w+\])?)+);"
                    rf" *(?P<comment>{COMMENT})$", re.M | re.S)
FIELDS_BELOW = re.compile(rf"^(?P<comment> +{COMMENT})\n(?P<indent> +)(?P<type>(?:const )?\w+ )"
                          rf"(?P<names>\*?\w+(?:, \*?\w+)+);$", re.M | re.S)
COMMON_FIELDS = {
    "size_t struct_size;": "size of this struct as the caller knows it; MDOT_INIT sets it",
    "void *user;": "passed to the callbacks",
    "uint32_t reserved;": "must be 0",
}
HANDLE = re.compile(rf"^(?P<comment>{COMMENT})\ntypedef struct (\w+) \2;$", re.M | re.S)


def arguments_of(text):
    """[(type, name), …]. Commas within the parameters of a callback do not divide."""
    found = []
    for argument in re.split(r",(?![^(]*\))", " ".join(text.split())):
        match = re.match(r"(.*?[ *])(\w+)(\[\w*\])?$", argument.strip())
        if match and argument.strip() != "void":
            found.append((match.group(1).replace(" *", "*").strip(), match.group(2)))
    return found


@functools.lru_cache
def handles(folder):
    """{type: (rule for threads, [functions that make it], function that releases it)} of headers in the folder and the product."""
    product = pathlib.Path(__file__).resolve().parents[2] / "include" / "mdot"
    folders = sorted({pathlib.Path(folder).resolve(), product})
    texts = [path.read_text(encoding="utf-8") for place in folders for path in sorted(place.glob("*.h"))]
    rules = {}
    for text in texts:
        for match in HANDLE.finditer(text):
            rule = re.search(r"@threads (.*?)(?:\n \*\s*@|\n? \*/)", match.group("comment"), re.S)
            rules[match.group(2)] = [" ".join(rule.group(1).replace("\n *", " ").split()) if rule else "", [], ""]
    for text in texts:
        for match in PROTOTYPE.finditer(text):
            for kind, _ in arguments_of(match.group("arguments")):
                name = match.group("name")
                base = kind.replace("const ", "").rstrip("*")
                if base in rules and kind == base + "**":
                    rules[base][1].append(name)
                elif base in rules and re.search(r"_(destroy|close)$", name):
                    rules[base][2] = name
    return {kind: tuple(rule) for kind, rule in rules.items()}


def listed(words):
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def missing_facts(match, rules):
    """Lines to add to the comment of a function."""
    comment, name, lines = match.group("comment"), match.group("name"), []
    releases = re.search(r"_(destroy|close)$", name) is not None
    threads, made = [], []
    for kind, argument in arguments_of(match.group("arguments")):
        base = kind.replace("const ", "").rstrip("*")
        text = ""
        if argument == "err":
            text = "receives the status and the reason of a failure; may be NULL"
        elif base in rules and kind == base + "**":
            text = "receives the new object"
            made.append(f"release *{argument} with {rules[base][2]}")
        elif base in rules:
            text = f"object of {listed(rules[base][1])}" if rules[base][1] else ""
            threads.append(rules[base][0])
        if text and not re.search(rf"@param {argument}\b", comment):
            lines.append(f"@param {argument} {text}")
    if match.group("type").strip() == "mdot_status" and "@return" not in comment:
        lines.append("@return MDOT_OK, or the status of the failure")
    if "@owner" not in comment:
        lines.append("@owner " + ("Releases the object." if releases else
                                  f"The caller owns the new object: {listed(made)}." if made else
                                  "The caller keeps the ownership of all arguments."))
    if "@threads" not in comment:
        rule = "; ".join(dict.fromkeys(t for t in threads if t))
        if releases:
            rule = "no other thread may use the object at the same time or later"
        lines.append("@threads " + (rule or "any number may call it at once"))
    return lines


def with_facts(text, rules):
    def complete(match):
        comment = match.group("comment")
        added = "".join(f"\n * {line}" for line in missing_facts(match, rules))
        body = comment[:-2].rstrip().removesuffix("\n *")
        return body + ("\n *" if "@" not in body else "") + added + "\n */" + match.group(0)[len(comment):]
    return PROTOTYPE.sub(complete, text)


def with_common_fields(text):
    for field, words in COMMON_FIELDS.items():
        text = re.sub(rf"^( +{re.escape(field)})$", rf"\1 /* {words} */", text, flags=re.M)
    return text


def with_single_fields(text):
    def divide(match):
        names, words = match.group("names").split(", "), " ".join(re.sub(r"\n *\*", " ", match.group("comment")[2:-2]).split())
        parts = words.split("; ")
        parts = parts if len(parts) == len(names) else [words] * len(names)
        return "\n".join(f"{match.group('indent')}{match.group('type')}{name}; /* {part} */"
                         for name, part in zip(names, parts))
    def repeat(match):
        return "\n".join(f"{match.group('comment')}\n{match.group('indent')}{match.group('type')}{name};"
                         for name in match.group("names").split(", "))
    return FIELDS_BELOW.sub(repeat, FIELDS.sub(divide, text))


def with_markers(text):
    lines, is_inside = [], False
    for number, line in enumerate(text.split("\n")):
        opening = re.match(r"(typedef (?:struct|enum) \w+ \{) +/\* (.*) \*/$", line)
        if opening:
            lines += [f"/** {opening.group(2)} */", opening.group(1)]
            continue
        if number > 0 and re.match(r"\s*/\* (?!----)", line):
            line = line.replace("/* ", "/** ", 1)
        elif not is_inside and re.search(r"\S.*/\* ", line) and not line.endswith("\\"):
            line = re.sub(r"/\* ", "/**< ", line, count=1)
        is_inside = "/*" in line and "*/" not in line or is_inside and "*/" not in line
        lines.append(line)
    return "\n".join(lines)


def filtered(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    return with_markers(with_facts(with_single_fields(with_common_fields(text)), handles(str(pathlib.Path(path).parent))))


if __name__ == "__main__":
    sys.stdout.write(filtered(sys.argv[1]))
