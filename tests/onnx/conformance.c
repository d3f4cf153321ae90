/* conformance.c — ONNX's backend node tests through compiled code: `conformance FOLDER LEAST…`.
 *
 * Every directory below FOLDER that holds a model.onnx is compiled for the best CPU level and run on its data. A wrong
 * result or an unreadable directory fails the test; unsupported operators do not, but at least LEAST directories must
 * pass. Returns 77 (skipped) where FOLDER does not exist: it is not part of the project. With MDOT_TEST_SHARD (shard.h)
 * a run takes a part of the directories, and LEAST is one number for each shard.
 */
#include "mdot/mdotc.h"
#include "tests/support/shard.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SKIPPED = 77 };

/* Data of Debian's onnx 1.12 that contradict their own model or its specification. */
static const struct {
    const char *name, *reason;
} wrong_data[] = {
    {"test_cast_FLOAT_to_BFLOAT16", "expects truncation where Cast rounds to nearest"},
    {"test_castlike_BFLOAT16_to_FLOAT", "the shape of input \"like\" is not the model's"},
    {"test_castlike_BFLOAT16_to_FLOAT_expanded", "the shape of input \"like\" is not the model's"},
    {"test_castlike_FLOAT_to_BFLOAT16", "the shape of input \"like\" is not the model's"},
    {"test_castlike_FLOAT_to_BFLOAT16_expanded", "the shape of input \"like\" is not the model's"},
};

static bool has_wrong_data(const char *name)
{
    for (size_t i = 0; i < sizeof wrong_data / sizeof wrong_data[0]; i++) {
        if (strcmp(name, wrong_data[i].name) != 0) continue;
        printf("left out: %s %s\n", name, wrong_data[i].reason);
        return true;
    }
    return false;
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : NULL, *shard = getenv("MDOT_TEST_SHARD");
    int number = shard != NULL ? atoi(shard) : 1;
    if (argc < 2 + number) {
        fprintf(stderr, "usage: conformance FOLDER LEAST…, one LEAST for each shard\n");
        return 2;
    }
    int least = 0, passed = 0, failed = 0, unsupported = 0;
    for (int i = 2; i < argc; i++)
        if (shard == NULL || i == 1 + number) least += atoi(argv[i]);
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort);
    if (count < 0) {
        printf("skipped: there is no %s\n", folder);
        return SKIPPED;
    }
    for (int i = 0; i < count; i++) {
        char directory[4096], model[4096 + 16];
        struct stat info;
        snprintf(directory, sizeof directory, "%s/%s", folder, entries[i]->d_name);
        snprintf(model, sizeof model, "%s/model.onnx", directory);
        bool left_out = !shard_has(shard, (size_t)i) || has_wrong_data(entries[i]->d_name);
        free(entries[i]);
        if (left_out || stat(model, &info) != 0) continue;
        mdotc_check_report report = MDOT_INIT(mdotc_check_report);
        mdot_error err = {0};
        mdotc_check_options options = {
            .struct_size = sizeof options, .relative_tolerance = 1e-3, .absolute_tolerance = 1e-6};
        mdot_status status = mdotc_check(directory, &options, &report, &err);
        if (status == MDOT_OK && report.result == MDOTC_CHECK_PASS) {
            passed++;
        } else if (status == MDOT_OK && report.result == MDOTC_CHECK_UNSUPPORTED) {
            unsupported++;
        } else {
            failed++;
            printf("FAIL %s: %s\n", directory, status == MDOT_OK ? report.detail : err.message);
        }
    }
    free(entries);
    printf("%d passed, %d failed, %d unsupported\n", passed, failed, unsupported);
    if (passed < least) printf("fewer than the %d that passed before\n", least);
    return failed == 0 && passed >= least ? 0 : 1;
}
