/* open.c — opens a store, and migrates it (database.h). */
#include "base/file.h"
#include "base/status.h"
#include "base/struct_version.h"
#include "store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { BUSY_MS = 30000 };

static const bs_struct_version options_type = BS_SIZED(mdot_store_options, busy_ms);
static const bs_struct_version info_type = BS_SIZED(mdot_store_info, outcome_count);

const char *mdotstore_version(void) { return MDOT_VERSION_STRING; }

uint32_t mdotstore_version_number(void) { return MDOT_VERSION_NUMBER; }

void mdot_store_free(void *memory) { free(memory); }

bool st_is_network(unsigned long file_system)
{
    static const uint32_t shared[] = {
        0x00006969, /* NFS */
        0x0000517b, /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
        0x00c36400, /* Ceph */
        0x01021997, /* 9p */
        0x5346414f, /* AFS */
        0x6b414653, /* AFS of the Linux kernel */
        0x73757245, /* Coda */
        0x7461636f, /* OCFS2 */
        0x01161970, /* GFS2 */
        0xaad7aaea, /* PanFS */
        0x65735546, /* FUSE: sshfs, s3fs, gcsfuse … */
        0x786f4256, /* VirtualBox' shared folders */
        0xbacbacbc, /* VMware's shared folders */
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if ((uint32_t)file_system == shared[i]) return true;
    return false;
}

/* Checks the name before SQLite opens it: SQLite would wait for a pipe, and create a file of any kind. */
static mdot_status check_file(const char *path, uint32_t flags, mdot_error *err)
{
    struct stat file;
    if (path == NULL || *path == '\0') return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the path of a store is missing");
    if (stat(path, &file) == 0) {
        if (!S_ISREG(file.st_mode))
            return mdot_fail(err, MDOT_IO, "%s: not a regular file, which a store must be", path);
        return MDOT_OK;
    }
    if (errno != ENOENT) return mdot_fail(err, MDOT_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if ((flags & (MDOT_STORE_READ_ONLY | MDOT_STORE_EXISTING)) != 0)
        return mdot_fail(err, MDOT_NOT_FOUND, "%s: there is no such store", path);
    return bs_check_output(path, err);
}

/* A change of the mode needs the file alone, and SQLite fails at once if two processes try it. */
static mdot_status set_journal(mdot_store *s, uint32_t busy_ms, mdot_error *err)
{
    enum { PAUSE_MS = 5 };
    const char *wanted = s->is_shared_disk ? "delete" : "wal";
    for (uint32_t waited_ms = 0;; waited_ms += PAUSE_MS) {
        sqlite3_stmt *mode = NULL;
        mdot_status status = st_prepare(s, "PRAGMA journal_mode", &mode, err);
        bool is_set =
            status == MDOT_OK && sqlite3_step(mode) == SQLITE_ROW && strcmp(st_column_text(mode, 0), wanted) == 0;
        sqlite3_finalize(mode);
        if (status != MDOT_OK || is_set) return status;
        status = st_execute(s, s->is_shared_disk ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL", "open",
                            err);
        if (status == MDOT_OK) return status;
        if ((sqlite3_errcode(s->db) & 0xff) != SQLITE_BUSY || waited_ms >= busy_ms) return status;
        sqlite3_sleep(PAUSE_MS);
    }
}

static mdot_status set_up(mdot_store *s, uint32_t busy_ms, int disk, mdot_error *err)
{
    struct statfs system;
    sqlite3_extended_result_codes(s->db, 1);
    busy_ms = busy_ms != 0 && busy_ms < INT32_MAX ? busy_ms : BUSY_MS;
    sqlite3_busy_timeout(s->db, (int)busy_ms);
    s->is_shared_disk = disk != 0 || (statfs(s->path, &system) == 0 && st_is_network((unsigned long)system.f_type));
    /* A damaged file must not run SQL of its own, and a damaged value must not be taken for another type. */
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    mdot_status status = st_execute(s, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", "open", err);
    if (status != MDOT_OK || s->is_read_only) return status;
    /* FULL: a commit returns after the data are on the disk, also for power failures. */
    status = st_execute(s, "PRAGMA synchronous = FULL", "open", err);
    if (status == MDOT_OK) status = set_journal(s, busy_ms, err);
    return status;
}

static mdot_status check_version(mdot_store *s, const st_steps *steps, bool migrates, int *out_from, mdot_error *err)
{
    int version = 0;
    mdot_status status = st_schema_version(s, steps, &version, err);
    if (status != MDOT_OK) return status;
    if (version > 0) status = st_check_schema(s, steps, version, err);
    if (status != MDOT_OK) return status;
    if (out_from != NULL) *out_from = version;
    if (version == steps->count) return MDOT_OK;
    if (version == 0 && s->is_read_only)
        return mdot_fail(err, MDOT_MALFORMED, "%s: an empty file, which is not a store yet", s->path);
    if (version == 0 || migrates) return st_migrate(s, steps, &version, err);
    return mdot_fail(
        err, MDOT_INCOMPATIBLE,
        "%s: the store has version %d of its tables, and this mdot writes %d; run `mdot-store migrate %s`, "
        "after which older versions of mdot refuse it",
        s->path, version, steps->count, s->path);
}

/* A log that SQLite cannot read without writing beside the store. */
static bool has_log(const char *path)
{
    struct stat file;
    char *log = NULL;
    bool has_any = asprintf(&log, "%s-wal", path) < 0 || (stat(log, &file) == 0 && file.st_size > 0);
    free(log);
    return has_any;
}

/* Opens the file for reading as one that nobody changes: SQLite then needs no file beside it. */
static int open_unchanging(mdot_store *s)
{
    static const char safe[] = "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    static const char end[] = "?immutable=1";
    char *uri = malloc(3 * strlen(s->path) + sizeof "file:" + sizeof end), *next = uri;
    if (uri == NULL) return SQLITE_NOMEM;
    next += sprintf(next, "file:");
    for (const char *c = s->path; *c != '\0'; c++)
        next += strchr(safe, *c) != NULL ? sprintf(next, "%c", *c) : sprintf(next, "%%%02x", (unsigned char)*c);
    strcpy(next, end);
    sqlite3_close(s->db);
    s->db = NULL;
    int code = sqlite3_open_v2(uri, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    free(uri);
    return code;
}

/* Opens a store in a folder, or on a file system, that this process may not write. */
static mdot_status open_read_only_place(mdot_store *s, uint32_t busy_ms, int disk, mdot_error *err)
{
    if (has_log(s->path))
        return mdot_fail(err, MDOT_IO,
                         "%s: cannot be read from a read-only folder, because %s-wal holds newer records; copy both "
                         "files to a folder that you may write",
                         s->path, s->path);
    int code = open_unchanging(s);
    return code == SQLITE_OK ? set_up(s, busy_ms, disk, err) : st_fail(s, code, "open", err);
}

mdot_status st_open(const char *path, const mdot_store_options *options, const st_steps *steps, bool migrates, int disk,
                    int *out_from, mdot_store **out_store, mdot_error *err)
{
    mdot_store_options o = {0};
    mdot_status status = options != NULL ? bs_read_struct(&options_type, options, &o, err) : MDOT_OK;
    if (status == MDOT_OK && out_store == NULL)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "the place for the store is missing");
    if (status == MDOT_OK && (o.flags & ~(uint32_t)(MDOT_STORE_READ_ONLY | MDOT_STORE_EXISTING)) != 0)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "flags 0x%x are not those of a store", o.flags);
    if (status == MDOT_OK) status = check_file(path, o.flags, err);
    if (status != MDOT_OK) return status;
    mdot_store *s = calloc(1, sizeof *s);
    if (s != NULL) s->path = strdup(path);
    if (s == NULL || s->path == NULL) {
        mdot_store_close(s);
        return BS_OUT_OF_MEMORY(err, "%s", path);
    }
    s->is_read_only = (o.flags & MDOT_STORE_READ_ONLY) != 0;
    int flags = s->is_read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int code = sqlite3_open_v2(path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) status = st_fail(s, code, "open", err);
    if (status == MDOT_OK) status = set_up(s, o.busy_ms, disk, err);
    if (status == MDOT_OK) status = check_version(s, steps, migrates, out_from, err);
    int fault = s->db != NULL ? sqlite3_errcode(s->db) & 0xff : SQLITE_NOMEM;
    if (status == MDOT_IO && s->is_read_only && (fault == SQLITE_CANTOPEN || fault == SQLITE_READONLY)) {
        status = open_read_only_place(s, o.busy_ms, disk, err);
        if (status == MDOT_OK) status = check_version(s, steps, migrates, out_from, err);
    }
    if (status == MDOT_OK)
        *out_store = s;
    else
        mdot_store_close(s);
    return status;
}

mdot_status mdot_store_open(const char *path, const mdot_store_options *options, mdot_store **out_store,
                            mdot_error *err)
{
    return st_open(path, options, &st_schema, false, 0, NULL, out_store, err);
}

mdot_status mdot_store_migrate(const char *path, uint32_t *out_from, mdot_error *err)
{
    mdot_store_options existing = {.struct_size = sizeof existing, .flags = MDOT_STORE_EXISTING};
    mdot_store *store = NULL;
    int version = 0;
    mdot_status status = st_open(path, &existing, &st_schema, true, 0, &version, &store, err);
    if (status == MDOT_OK && out_from != NULL) *out_from = (uint32_t)version;
    mdot_store_close(store);
    return status;
}

void mdot_store_close(mdot_store *store)
{
    if (store == NULL) return;
    sqlite3_close(store->db);
    free(store->path);
    free(store);
}

mdot_status mdot_store_get_info(mdot_store *store, mdot_store_info *out_info, mdot_error *err)
{
    if (store == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the store is missing");
    mdot_status status = bs_check_struct(&info_type, out_info, err);
    int64_t version = 0, rows = 0, jobs = 0, outcomes = 0;
    if (status == MDOT_OK) status = st_query_number(store, "PRAGMA user_version", &version, err);
    if (status == MDOT_OK) status = st_query_number(store, "SELECT count(*) FROM rows", &rows, err);
    if (status == MDOT_OK) status = st_query_number(store, "SELECT count(*) FROM jobs", &jobs, err);
    if (status == MDOT_OK) status = st_query_number(store, "SELECT count(*) FROM outcomes", &outcomes, err);
    if (status != MDOT_OK) return status;
    mdot_store_info info = {.schema_version = (uint32_t)version,
                            .is_shared_disk = store->is_shared_disk,
                            .row_count = (uint64_t)rows,
                            .job_count = (uint64_t)jobs,
                            .outcome_count = (uint64_t)outcomes};
    bs_write_struct(&info_type, &info, out_info, bs_struct_bytes(out_info));
    return MDOT_OK;
}
