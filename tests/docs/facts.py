"""Checks the check of docs/extensions/c_reference.py: a public function that lacks a fact must be reported.

    facts.py SOURCE_FOLDER

Doxygen reads a header with three functions: one complete, one without any fact, and one that lacks the text of a parameter.
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
} mdot_sample_size;
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
          "height": "in metres, at most 8", "weight": "kg", "value": "euros"}


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
        found = {name: set(missing) for name, missing in c_reference.functions_without_facts(folder / "xml", "mdot_sample.h")}
    if found != WANTED:
        print(f"found {found}, expected {WANTED}")
        return 1
    if fields != FIELDS:
        print(f"fields have the texts {fields}, expected {FIELDS}")
        return 1
    print("functions that lack facts are found, and every field of a line has its text")
    return 0


sys.exit(main())
