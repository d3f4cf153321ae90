/* compiler.c — examples of mdotc.h for the reference: compile a model, verify its code, run a test of ONNX.
 *
 *     compiler MODEL.onnx ARTEFACT.mdot [FOLDER_OF_AN_ONNX_TEST]
 */
#include "mdot/mdotc.h"

#include <stdio.h>

static void print_row(void *user, const mdotc_verify_row *row)
{
    (void)user;
    printf("%s, %s: worst error %.1e of %.1e\n", row->entry, row->level, row->worst_error, row->bound);
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: compiler MODEL.onnx ARTEFACT.mdot [FOLDER_OF_AN_ONNX_TEST]\n"), 2;
    mdot_error err = {0};

    /* [example: mdotc_version, mdotc_version_number] */
    if (mdotc_version_number() != MDOT_VERSION_NUMBER)
        printf("libmdotc %s and its headers, %s, differ\n", mdotc_version(), MDOT_VERSION_STRING);
    /* [end of example] */

    /* [example: mdotc_compile] */
    const char *const target = "cpu:x86-64-v3";
    const mdotc_entry entry = {.struct_size = sizeof entry, .name = "predict", .model_path = argv[1]};
    const mdotc_options options = {.struct_size = sizeof options, .targets = &target, .target_count = 1};
    mdot_status status = mdotc_compile(&entry, 1, argv[2], &options, &err);
    /* [end of example] */

    /* [example: mdotc_verify] */
    bool passed = false;
    const mdotc_verify_options verify = {.struct_size = sizeof verify, .row = print_row};
    if (status == MDOT_OK) status = mdotc_verify(argv[2], argv[1], &verify, &passed, &err);
    if (status == MDOT_OK) printf("%s\n", passed ? "verified" : "wrong");
    /* [end of example] */

    if (status == MDOT_OK && argc > 3) {
        /* [example: mdotc_check] */
        mdotc_check_report report = MDOT_INIT(mdotc_check_report);
        status = mdotc_check(argv[3], NULL, &report, &err);
        if (status == MDOT_OK && report.result != MDOTC_CHECK_PASS) printf("%s\n", report.detail);
        /* [end of example] */
    }
    if (status != MDOT_OK) fprintf(stderr, "error %d: %s\n", (int)status, err.message);
    return status == MDOT_OK && passed ? 0 : 1;
}
