"""Checks docs/extensions/c_reference.py: it must report a public function without a required fact, and a struct, field,
type or constant without a text. A macro's table must have exactly the rows of this macro.

    facts.py SOURCE_FOLDER

Doxygen reads a header with three functions: one complete, one without facts, one without a parameter text; and with
structs and enums, some without texts.
"""
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "docs" / "extensions"))
import c_reference  # noqa: E402

HEADER = """/* mdot_sample.h — a sample.
 *
 * For a test.
 */
/* An object.
 *
 * @threads one at a time
 */
typedef struct mdot_sample mdot_sample;
/* Numbers. */
typedef struct mdot_sample_size {
    size_t struct_size;
    double width, height; /* in metres,
                           * at most 8 */
    double weight, value; /* kg; euros */
    int count;
} mdot_sample_size;
typedef struct mdot_sample_item {  /* an item */
    double count; /* of items */
} mdot_sample_item;
typedef struct mdot_sample_bare {
    int reserved; /* must be 0 */
} mdot_sample_bare;
#define MDOT_SAMPLE_MAP(X) X(GREEN, "green")
#define MDOT_SAMPLE_SHAPE_MAP(X) \\
    X(ROUND, 1, "of no corners")  \\
    X(FLAT, 2, "of " \\
               "no height")
#define MDOT_SAMPLE_SIZE_MAP(X) \\
    X(SMALL, 1, 2, "small")
/* Colours. */
typedef enum mdot_sample_colour {
    MDOT_SAMPLE_RED = 1, /* the first one */
    MDOT_SAMPLE_BLUE,
#define MDOT_SAMPLE_ENUM(id, name) MDOT_SAMPLE_##id,
    MDOT_SAMPLE_MAP(MDOT_SAMPLE_ENUM)
#undef MDOT_SAMPLE_ENUM
} mdot_sample_colour;
enum { MDOT_SAMPLE_LIMIT = 8, MDOT_SAMPLE_SIZE = 9 /* bytes */ };
typedef void (*mdot_sample_visit)(void *user);
/* Makes a sample.
 *
 * @param size number of bytes, at most 16
 * @errors OUT_OF_MEMORY
 */
mdot_status mdot_sample_create(int size, mdot_sample **out_sample, mdot_error *err);
mdot_status mdot_sample_lost(int size);
/* Measures a sample.
 *
 * @errors NOT_FOUND
 */
mdot_status mdot_sample_measure(const mdot_sample *sample, int unit, mdot_error *err);
/* Destroys a sample.
 *
 * @param sample NULL is accepted
 */
void mdot_sample_destroy(mdot_sample *sample);
"""
WANTED = {
    "mdot_sample_create": {"example"},
    "mdot_sample_lost": {"description", "parameter size", "return", "ownership", "threads", "example"},
    "mdot_sample_measure": {"parameter unit", "example"},
    "mdot_sample_destroy": {"example"},
}
FIELDS = {"struct_size": "size of this struct as the caller knows it; MDOT_INIT sets it", "width": "in metres, at most 8",
          "height": "in metres, at most 8", "weight": "kg", "value": "euros", "count": ""}
SHAPES = """|  |  |  |
| --- | --- | --- |
| `ROUND` | `1` | of no corners |
| `FLAT` | `2` | of no height |
"""
WITHOUT_TEXT = ["MDOT_SAMPLE_BLUE", "MDOT_SAMPLE_LIMIT", "mdot_sample_bare", "mdot_sample_size.count", "mdot_sample_visit"]


def fields_of(folder):
    root = xml.etree.ElementTree.parse(folder / "xml" / "structmdot__sample__size.xml").getroot()
    return {member.findtext("name"): " ".join("".join(member.find("detaileddescription").itertext()).split())
            for member in root.iter("memberdef")}


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "mdot_sample.h").write_text(HEADER)
        settings = (SOURCE / "docs" / "Doxyfile").read_text() + (
            f'INPUT = "{folder}"\nOUTPUT_DIRECTORY = "{folder}"\nWARNINGS = NO\nWARN_IF_DOC_ERROR = NO\n')
        subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=SOURCE, check=True, capture_output=True)
        fields = fields_of(folder)
        without_text = c_reference.without_text(folder / "xml", folder / "mdot_sample.h")
        found = {name: set(missing) for name, missing in c_reference.functions_without_facts(folder / "xml", "mdot_sample.h")}
    if found != WANTED:
        print(f"found {found}, expected {WANTED}")
        return 1
    if fields != FIELDS:
        print(f"fields have the texts {fields}, expected {FIELDS}")
        return 1
    if c_reference.table_of_map("MDOT_SAMPLE_SHAPE_MAP", HEADER) != SHAPES:
        print("the table of a macro has other rows:", c_reference.table_of_map("MDOT_SAMPLE_SHAPE_MAP", HEADER), sep="\n")
        return 1
    if without_text != WITHOUT_TEXT:
        print(f"without text are {without_text}, expected {WITHOUT_TEXT}")
        return 1
    print("functions that lack facts are found, and every field of a line has its text")
    return 0


sys.exit(main())
