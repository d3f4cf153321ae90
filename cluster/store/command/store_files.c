/* store_files.c — opening stores for mdot-store, job files, and actions on the store file. */
#include "base/file.h"
#include "store/command/store_actions.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

mdot_status store_open_existing(const char *path, mdot_store **out_store, mdot_error *err)
{
    mdot_store_options existing = {.struct_size = sizeof existing, .flags = MDOT_STORE_EXISTING};
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1, slash == NULL ? "." : path);
    /* SQLite writes beside the store, too */
    if (access(path, W_OK) != 0 || access(folder, W_OK) != 0) existing.flags = MDOT_STORE_READ_ONLY;
    return mdot_store_open(path, &existing, out_store, err);
}

mdot_store *store_open_to_read(const char *path)
{
    mdot_store *store = NULL;
    mdot_error err = {0};
    if (store_open_existing(path, &store, &err) != MDOT_OK) cli_report(PROGRAM, &err);
    return store;
}

const char *store_print_time(store_time *buffer, int64_t seconds)
{
    time_t moment = (time_t)seconds;
    struct tm parts;
    buffer->text[0] = '\0';
    if (seconds != 0 && gmtime_r(&moment, &parts) != NULL)
        strftime(buffer->text, sizeof buffer->text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return buffer->text;
}

bool store_filter(const store_request *request, mdot_store_filter *out)
{
    *out = (mdot_store_filter){
        .struct_size = sizeof *out, .gpu = request->gpu, .digest = request->digest, .software = request->software};
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    if (request->gpu != NULL && mdot_gpu_find(request->gpu, &gpu, &err) != MDOT_OK) {
        cli_usage_error(PROGRAM, "--gpu: %s", err.message);
        return false;
    }
    if (request->since == NULL) return true;
    struct tm day = {0};
    const char *end = strptime(request->since, "%Y-%m-%d", &day);
    if (end == NULL || *end != '\0') {
        cli_usage_error(PROGRAM, "--since takes a day, for example 2026-11-24, not \"%s\"", request->since);
        return false;
    }
    out->since = (int64_t)timegm(&day);
    return true;
}

typedef struct digests {
    char (*item)[MDOT_STORE_DIGEST_BYTES];
    size_t count, capacity;
    bool failed_memory;
} digests;

static bool take_digest(void *user, const mdot_store_job *job)
{
    digests *d = user;
    if (d->count == d->capacity) {
        size_t capacity = 2 * d->capacity + 64;
        void *larger = realloc(d->item, capacity * sizeof *d->item);
        if (larger == NULL) {
            d->failed_memory = true;
            return false;
        }
        d->item = larger;
        d->capacity = capacity;
    }
    snprintf(d->item[d->count++], sizeof *d->item, "%s", job->digest);
    return true;
}

static mdot_status write_job(mdot_store *store, const char *folder, const char *digest, mdot_error *err)
{
    char *path = NULL;
    void *bytes = NULL;
    size_t size = 0;
    if (asprintf(&path, "%s/%s.job", folder, digest) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = MDOT_OK;
    if (access(path, F_OK) != 0) {
        status = mdot_store_get_job(store, digest, &bytes, &size, err);
        if (status == MDOT_OK) status = bs_write_file(path, bytes, size, err);
    }
    mdot_store_free(bytes);
    free(path);
    return status;
}

mdot_status store_write_jobs(mdot_store *store, const char *folder, mdot_error *err)
{
    digests d = {0};
    mdot_status status = mdot_store_visit_jobs(store, take_digest, &d, err);
    if (status == MDOT_OK && d.failed_memory) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < d.count; i++) status = write_job(store, folder, d.item[i], err);
    free(d.item);
    return status;
}

mdot_status store_make_folder(mdot_store *store, char **out_folder, mdot_error *err)
{
    const char *parent = secure_getenv("TMPDIR");
    if (parent == NULL || *parent == '\0') parent = "/tmp";
    *out_folder = NULL;
    char *folder = NULL;
    if (asprintf(&folder, "%s/mdot-store-XXXXXX", parent) < 0) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (mkdtemp(folder) == NULL) {
        mdot_status status =
            mdot_fail(err, MDOT_IO, "%s: cannot make a temporary folder: %s; set TMPDIR", folder, strerror(errno));
        free(folder);
        return status;
    }
    *out_folder = folder;
    return store_write_jobs(store, folder, err);
}

void store_remove_folder(char *folder)
{
    DIR *dir = folder != NULL ? opendir(folder) : NULL;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL) closedir(dir);
    if (folder != NULL) rmdir(folder);
    free(folder);
}

int store_check(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    mdot_store_info info = MDOT_INIT(mdot_store_info);
    mdot_store *store = store_open_to_read(operands[0]);
    if (store == NULL) return CLI_FAILED;
    mdot_status status = mdot_store_check(store, &err);
    if (status == MDOT_OK) status = mdot_store_get_info(store, &info, &err);
    mdot_store_close(store);
    if (status != MDOT_OK) return cli_report(PROGRAM, &err);
    printf("  intact: %s, %s, %s; version %u of the tables%s\n", store_count_of(info.row_count, "row").text,
           store_count_of(info.job_count, "job").text, store_count_of(info.outcome_count, "outcome").text,
           info.schema_version, info.is_shared_disk != 0 ? "; on a network file system" : "");
    return cli_finish(PROGRAM, CLI_OK);
}

store_counted store_count_of(uint64_t count, const char *noun)
{
    store_counted counted;
    snprintf(counted.text, sizeof counted.text, "%llu %s%s", (unsigned long long)count, noun, count == 1 ? "" : "s");
    return counted;
}

int store_recover(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    mdot_store_recovery r = MDOT_INIT(mdot_store_recovery);
    if (mdot_store_recover(operands[0], operands[1], &r, &err) != MDOT_OK) return cli_report(PROGRAM, &err);
    printf("  %s, %s and %s copied to %s\n", store_count_of(r.row_count, "row").text,
           store_count_of(r.job_count, "job").text, store_count_of(r.outcome_count, "outcome").text, operands[1]);
    printf("  found outside of the damaged tables: %s; left out for a wrong checksum: %s\n",
           store_count_of(r.scanned_count, "record").text, store_count_of(r.damaged_count, "record").text);
    return cli_finish(PROGRAM, CLI_OK);
}

int store_migrate(const store_request *request, char **operands, int count)
{
    mdot_error err = {0};
    uint32_t from = 0;
    mdot_store_info info = MDOT_INIT(mdot_store_info);
    if (mdot_store_migrate(operands[0], &from, &err) != MDOT_OK) return cli_report(PROGRAM, &err);
    mdot_store *store = store_open_to_read(operands[0]);
    if (store == NULL) return CLI_FAILED;
    mdot_status status = mdot_store_get_info(store, &info, &err);
    mdot_store_close(store);
    if (status != MDOT_OK) return cli_report(PROGRAM, &err);
    if (from == info.schema_version)
        printf("  version %u of the tables is the newest\n", from);
    else
        printf("  version %u of the tables became version %u\n", from, info.schema_version);
    return cli_finish(PROGRAM, CLI_OK);
}
