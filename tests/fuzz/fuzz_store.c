/* fuzz_store.c — libFuzzer on the store. The first byte selects a use for the others: a store file to open, check,
 * migrate and recover; a table of measured steps; or Slurm's accounting. Any bytes are refused with a message, or
 * become records. An imported table is exported as a text that gives the same text again.
 *
 *     scripts/fuzz.sh 600 store */
#include "mdot/mdot_store.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory, because a store waits for the disk after each write. */
static char folder[] = "/dev/shm/mdot-fuzz-XXXXXX";
static char path[64], second_path[64], empty_path[64];
static char *empty; /* a store file with one job */
static size_t empty_bytes;
static char digest[MDOT_STORE_DIGEST_BYTES];

#define require(holds) require_at(holds, __LINE__)

static void require_at(bool holds, int line)
{
    if (holds) return;
    fprintf(stderr, "%s:%d: this must hold\n", __FILE__, line);
    abort();
}

/* A failure has a message. Clears it for the next call. */
static bool is_done(mdot_status status, mdot_error *err)
{
    require(status == MDOT_OK || err->message[0] != '\0');
    err->message[0] = '\0';
    return status == MDOT_OK;
}

/* Success, for a call on data from the store. */
static void require_done(mdot_status status, const mdot_error *err)
{
    if (status != MDOT_OK) fprintf(stderr, "%s\n", err->message);
    require(status == MDOT_OK);
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    require(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

/* Removes a store with the files beside it. */
static void remove_store(const char *name)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char file[80];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(file, sizeof file, "%s%s", name, suffixes[i]);
        unlink(file);
    }
}

static void remove_all(void)
{
    remove_store(path);
    remove_store(second_path);
    remove_store(empty_path);
    rmdir(folder);
}

static mdot_store *open_store(const char *name, uint32_t flags)
{
    const mdot_store_options options = {.struct_size = sizeof options, .flags = flags, .busy_ms = 1};
    mdot_store *store = NULL;
    mdot_error err = {0};
    if (!is_done(mdot_store_open(name, &options, &store, &err), &err)) require(store == NULL);
    return store;
}

/* A new store that has one job. */
static mdot_store *new_store(const char *name)
{
    remove_store(name);
    write_file(name, empty, empty_bytes);
    mdot_store *store = open_store(name, 0);
    require(store != NULL);
    return store;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    require(mkdtemp(folder) != NULL);
    atexit(remove_all);
    snprintf(path, sizeof path, "%s/a.db", folder);
    snprintf(second_path, sizeof second_path, "%s/b.db", folder);
    snprintf(empty_path, sizeof empty_path, "%s/empty.db", folder);
    const mdot_job_operator operator= {.struct_size = sizeof operator, .type = "Relu", .known = true, .parameters = 1};
    const mdot_job_description d = {.struct_size = sizeof d, .operators = &operator, .operator_count = 1, .batch = 1};
    mdot_job *job = NULL;
    mdot_store *store = open_store(empty_path, 0);
    require(mdot_job_create(&d, &job, NULL) == MDOT_OK && store != NULL);
    require(mdot_store_add_job(store, job, "job.onnx", digest, NULL) == MDOT_OK);
    mdot_store_close(store);
    mdot_job_destroy(job);
    struct stat info;
    FILE *file = fopen(empty_path, "rb");
    require(file != NULL && fstat(fileno(file), &info) == 0 && info.st_size > 0);
    empty_bytes = (size_t)info.st_size;
    empty = malloc(empty_bytes);
    require(empty != NULL && fread(empty, 1, empty_bytes, file) == empty_bytes && fclose(file) == 0);
    return 0;
}

static bool see_row(void *user, const mdot_store_row *row)
{
    *(size_t *)user += strlen(row->digest) + strlen(row->gpu_name) + strlen(row->settings) + strlen(row->note);
    require(row->ms > 0 && isfinite(row->ms) && row->batch > 0);
    return true;
}

static bool see_job(void *user, const mdot_store_job *job)
{
    *(size_t *)user += strlen(job->name) + strlen(job->digest);
    return true;
}

static bool see_outcome(void *user, const mdot_store_outcome *outcome)
{
    *(size_t *)user += strlen(outcome->job_id) + strlen(outcome->state) + strlen(outcome->user);
    require(mdot_outcome_name(outcome->outcome) != NULL);
    return true;
}

static bool see_group(void *user, const mdot_store_group *group)
{
    *(size_t *)user += strlen(group->settings);
    require(group->ms > 0 && isfinite(group->ms) && group->spread >= 0 && isfinite(group->spread));
    return true;
}

/* Reads all records, also those that refer to others. */
static void read_all(mdot_store *store)
{
    mdot_store_info info = MDOT_INIT(mdot_store_info);
    mdot_error err = {0};
    size_t letters = 0;
    (void)is_done(mdot_store_get_info(store, &info, &err), &err);
    (void)is_done(mdot_store_check(store, &err), &err);
    (void)is_done(mdot_store_visit_rows(store, NULL, see_row, &letters, &err), &err);
    (void)is_done(mdot_store_visit_jobs(store, see_job, &letters, &err), &err);
    (void)is_done(mdot_store_visit_outcomes(store, see_outcome, &letters, &err), &err);
    (void)is_done(mdot_store_visit_groups(store, NULL, "p", see_group, &letters, &err), &err);
    void *bytes = NULL;
    size_t size = 0;
    if (is_done(mdot_store_get_job(store, digest, &bytes, &size, &err), &err)) require(bytes != NULL);
    mdot_store_free(bytes);
}

static void open_hostile(const uint8_t *data, size_t size)
{
    mdot_error err = {0};
    remove_store(path);
    write_file(path, data, size);
    mdot_store *store = open_store(path, MDOT_STORE_EXISTING | MDOT_STORE_READ_ONLY);
    if (store != NULL) read_all(store);
    mdot_store_close(store);
    store = open_store(path, MDOT_STORE_EXISTING);
    if (store != NULL) {
        mdot_store_refresh_report report = MDOT_INIT(mdot_store_refresh_report);
        (void)is_done(mdot_store_refresh(store, &report, &err), &err);
        read_all(store);
    }
    mdot_store_close(store);
    uint32_t from = 0;
    (void)is_done(mdot_store_migrate(path, &from, &err), &err);
    mdot_store_recovery recovery = MDOT_INIT(mdot_store_recovery);
    remove_store(second_path);
    if (!is_done(mdot_store_recover(path, second_path, &recovery, &err), &err)) return;
    store = open_store(second_path, MDOT_STORE_EXISTING);
    require(store != NULL); /* the check may miss a row's job, which a table restores */
    read_all(store);
    mdot_store_close(store);
}

static char *export(mdot_store *store, size_t *out_size)
{
    const mdot_store_export options = {.struct_size = sizeof options};
    char *text = NULL;
    mdot_error err = {0};
    require_done(mdot_store_export_csv(store, &options, &text, out_size, &err), &err);
    return text;
}

/* A digest column written by people may name a missing job: the text DIGEST stands for the job in the store. */
static char *with_digest(const uint8_t *data, size_t size, size_t *out_size)
{
    static const char name[] = "DIGEST";
    enum { LETTERS = sizeof name - 1 };
    char *text = malloc(size * (MDOT_STORE_DIGEST_BYTES - 1) + 1);
    require(text != NULL);
    *out_size = 0;
    for (size_t i = 0; i < size;) {
        bool is_name = size - i >= LETTERS && memcmp(data + i, name, LETTERS) == 0;
        size_t letters = is_name ? MDOT_STORE_DIGEST_BYTES - 1 : 1;
        memcpy(text + *out_size, is_name ? digest : (const char *)data + i, letters);
        *out_size += letters;
        i += is_name ? LETTERS : 1;
    }
    return text;
}

static void import_table(const uint8_t *data, size_t size)
{
    size_t text_size = 0, first_size = 0, second_size = 0;
    char *text = with_digest(data, size, &text_size);
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_error err = {0};
    mdot_store *store = new_store(path);
    bool is_imported = is_done(mdot_store_import_csv(store, text, text_size, "t.csv", NULL, 0, &counts, &err), &err);
    free(text);
    if (!is_imported) {
        mdot_store_close(store);
        return;
    }
    char *first = export(store, &first_size);
    mdot_store_refresh_report report = MDOT_INIT(mdot_store_refresh_report);
    require_done(mdot_store_refresh(store, &report, &err), &err);
    read_all(store);
    mdot_store_close(store);
    store = new_store(second_path);
    require_done(mdot_store_import_csv(store, first, first_size, "u.csv", NULL, 0, &counts, &err), &err);
    char *second = export(store, &second_size);
    require(first_size == second_size && memcmp(first, second, first_size) == 0);
    mdot_store_free(first);
    mdot_store_free(second);
    mdot_store_close(store);
}

static void note_malformed(void *user, size_t line, const char *reason)
{
    require(line > 0 && reason[0] != '\0');
    ++*(size_t *)user;
}

static void import_accounting(const uint8_t *data, size_t size)
{
    size_t malformed = 0;
    const mdot_store_accounting options = {
        .struct_size = sizeof options, .name = "sacct", .malformed = note_malformed, .user = &malformed};
    mdot_store_import counts = MDOT_INIT(mdot_store_import), again = counts;
    mdot_error err = {0};
    mdot_store *store = new_store(path);
    if (is_done(mdot_store_import_sacct(store, (const char *)data, size, &options, &counts, &err), &err)) {
        require(malformed == counts.malformed_count);
        read_all(store);
        require_done(mdot_store_import_sacct(store, (const char *)data, size, &options, &again, &err), &err);
        require(again.added_count == 0);
    }
    mdot_store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return -1;
    switch (data[0]) {
    case '0': open_hostile(data + 1, size - 1); break;
    case '1': import_table(data + 1, size - 1); break;
    case '2': import_accounting(data + 1, size - 1); break;
    default: return -1; /* keeps the input out of the corpus */
    }
    return 0;
}
