/* test_open.c — opening and creating stores, table versions, and migrations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/database.h"
#include "tests/store/support/store_fixture.h"
#include "tests/support/process.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *text_of(mdot_store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    mdot_error err = {0};
    store_expect_ok(st_prepare(store, sql, &statement, &err), &err);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    char *text = strdup(st_column_text(statement, 0));
    sqlite3_finalize(statement);
    return text;
}

static void expect_text(mdot_store *store, const char *sql, const char *wanted)
{
    char *text = text_of(store, sql);
    assert_string_equal(text, wanted);
    free(text);
}

static void a_new_store_is_durable(void **state)
{
    store_fixture *f = *state;
    expect_text(f->store, "PRAGMA journal_mode", "wal");
    expect_text(f->store, "PRAGMA synchronous", "2");
    assert_int_equal(store_count(f->store).schema_version, 1);
    assert_string_equal(mdotstore_version(), MDOT_VERSION_STRING);
    assert_int_equal(mdotstore_version_number(), MDOT_VERSION_NUMBER);
}

/* WAL needs memory that all processes share, so that a network file system gets a rollback journal. */
static void a_network_file_system_gets_a_rollback_journal(void **state)
{
    store_fixture *f = *state;
    char *path = process_in_folder(f->folder, "network.store");
    mdot_store *store = NULL;
    store_expect_ok(st_open(path, NULL, &st_schema, false, 1, NULL, &store, &f->err), &f->err);
    expect_text(store, "PRAGMA journal_mode", "delete");
    expect_text(store, "PRAGMA synchronous", "2");
    assert_int_equal(store_count(store).is_shared_disk, 1);
    store_expect_ok(mdot_store_add_job(store, f->job, "x", NULL, &f->err), &f->err);
    mdot_store_close(store);
    free(path);
}

/* Another process may hold the file for longer than the caller waits, whatever it is about to do there. */
static void a_held_file_is_reported_after_the_wait(void **state)
{
    store_fixture *f = *state;
    static const char *const holds[] = {"BEGIN EXCLUSIVE", "BEGIN IMMEDIATE; CREATE TABLE t(a)", "BEGIN IMMEDIATE"};
    for (size_t i = 0; i < 3; i++)
        for (int disk = 0; disk < 2; disk++) {
            char *path = process_in_folder(f->folder, "held.store");
            sqlite3 *holder = NULL;
            assert_int_equal(sqlite3_open(path, &holder), SQLITE_OK);
            assert_int_equal(sqlite3_exec(holder, holds[i], NULL, NULL, NULL), SQLITE_OK);
            for (uint32_t busy_ms = 1; busy_ms < 30; busy_ms += 7) {
                mdot_store_options options = {.struct_size = sizeof options, .busy_ms = busy_ms};
                mdot_store *store = NULL;
                mdot_status status = st_open(path, &options, &st_schema, false, disk, NULL, &store, &f->err);
                store_expect_failure(status, &f->err, MDOT_IO, "another process");
                assert_null(store);
            }
            sqlite3_close(holder);
            unlink(path);
            free(path);
        }
}

/* Numbers by Linux's header where it has them, otherwise by the file systems' own sources. */
static void file_systems_of_a_network_are_known(void **state)
{
    (void)state;
    static const unsigned long shared[] = {NFS_SUPER_MAGIC,         SMB_SUPER_MAGIC,        CIFS_SUPER_MAGIC,
                                           SMB2_SUPER_MAGIC,        CEPH_SUPER_MAGIC,       V9FS_MAGIC,
                                           AFS_SUPER_MAGIC,         AFS_FS_MAGIC,           OCFS2_SUPER_MAGIC,
                                           FUSE_SUPER_MAGIC,        0x01161970 /* GFS2 */,  0x786f4256 /* VirtualBox */,
                                           CODA_SUPER_MAGIC,        198183888 /* Lustre */, 0x47504653 /* "GPFS" */,
                                           0x19830326 /* BeeGFS */, 0xaad7aaea /* PanFS */, 0xbacbacbc /* vmhgfs */};
    static const unsigned long local[] = {EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC,      BTRFS_SUPER_MAGIC,
                                          TMPFS_MAGIC,           RAMFS_MAGIC,          F2FS_SUPER_MAGIC,
                                          OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */, SQUASHFS_MAGIC,
                                          ISOFS_SUPER_MAGIC,     MSDOS_SUPER_MAGIC,    PROC_SUPER_MAGIC};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (!st_is_network(shared[i])) fail_msg("%lx is local", shared[i]);
        assert_true(st_is_network(shared[i] | 0xffffffff00000000ul)); /* a sign-extended number */
        assert_false(st_is_network(shared[i] + 1) || st_is_network(shared[i] - 1));
    }
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (st_is_network(local[i])) fail_msg("%lx is shared", local[i]);
}

/* Every reason for which the name itself cannot be followed, with every way to open. */
static void a_path_that_cannot_be_followed_has_its_reason(void **state)
{
    store_fixture *f = *state;
    char *loop = process_in_folder(f->folder, "loop"), *inside = process_in_folder(f->path, "x"), *name, *length;
    static char letters[300];
    memset(letters, 'a', sizeof letters - 1);
    name = process_in_folder(f->folder, letters);
    assert_int_equal(symlink("loop", loop), 0);
    length = strdup(letters);
    const struct {
        const char *path;
        int reason;
    } cases[] = {{inside, ENOTDIR}, {loop, ELOOP}, {name, ENAMETOOLONG}, {length, ENAMETOOLONG}};
    static const uint32_t flags[] = {0, MDOT_STORE_READ_ONLY, MDOT_STORE_EXISTING};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
            const mdot_store_options options = {.struct_size = sizeof options, .flags = flags[k]};
            mdot_store *store = NULL;
            mdot_status status = mdot_store_open(cases[i].path, &options, &store, &f->err);
            store_expect_failure(status, &f->err, MDOT_IO, strerror(cases[i].reason));
            expect_contains(f->err.message, cases[i].path);
            assert_null(store);
        }
    free(loop);
    free(inside);
    free(name);
    free(length);
}

static void flags_are_respected(void **state)
{
    store_fixture *f = *state;
    mdot_store *store = NULL;
    mdot_store_options options = {.struct_size = sizeof options, .flags = MDOT_STORE_EXISTING};
    char *path = process_in_folder(f->folder, "absent.store");
    store_expect_failure(mdot_store_open(path, &options, &store, &f->err), &f->err, MDOT_NOT_FOUND, "absent.store");
    assert_int_not_equal(access(path, F_OK), 0);
    options.flags = 1u << 30;
    store_expect_failure(mdot_store_open(path, &options, &store, &f->err), &f->err, MDOT_INVALID_ARGUMENT, "flags");
    options.flags = MDOT_STORE_READ_ONLY;
    store_fixture_add(f, store_fixture_row(f, 5));
    store_expect_ok(mdot_store_open(f->path, &options, &store, &f->err), &f->err);
    mdot_store_row row = store_fixture_row(f, 1);
    store_expect_failure(mdot_store_add_rows(store, &row, 1, NULL, &f->err), &f->err, MDOT_INVALID_ARGUMENT,
                         "reading only");
    store_expect_ok(mdot_store_refresh(store, NULL, &f->err), &f->err); /* in memory; the file stays as it is */
    expect_text(store, "SELECT count(*) FROM members", "1");
    expect_text(f->store, "SELECT count(*) FROM members", "0");
    mdot_store_close(store);
    free(path);
}

static void other_files_are_refused(void **state)
{
    store_fixture *f = *state;
    mdot_store *store = NULL;
    char *path = process_in_folder(f->folder, "file");
    assert_int_equal(mkfifo(path, 0600), 0);
    store_expect_failure(mdot_store_open(path, NULL, &store, &f->err), &f->err, MDOT_IO, "not a regular file");
    unlink(path);
    store_expect_failure(mdot_store_open(f->folder, NULL, &store, &f->err), &f->err, MDOT_IO, "not a regular file");
    char *absent = process_in_folder(f->folder, "absent/folder/x");
    assert_int_equal(mdot_store_open(absent, NULL, &store, &f->err), MDOT_IO);
    free(absent);
    assert_int_equal(mdot_store_open("", NULL, &store, &f->err), MDOT_INVALID_ARGUMENT);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 2000; i++) fputs("not a database\n", file);
    fclose(file);
    store_expect_failure(mdot_store_open(path, NULL, &store, &f->err), &f->err, MDOT_CORRUPT, "mdot-store recover");
    unlink(path);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE recipes (name TEXT)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    store_expect_failure(mdot_store_open(path, NULL, &store, &f->err), &f->err, MDOT_MALFORMED, "another program");
    assert_null(store);
    free(path);
}

static const char faulty[] = "ALTER TABLE rows ADD COLUMN watts REAL NOT NULL DEFAULT 0; SELECT nothing FROM nowhere;";
static const char second[] = "ALTER TABLE rows ADD COLUMN watts REAL NOT NULL DEFAULT 0;";
static const char third[] = "CREATE TABLE sites (name TEXT); INSERT INTO sites SELECT 'here' FROM rows;";

/* Later versions of the tables, as a later library would have them. */
static st_steps later(const char *sql[3], const char *step_2, const char *step_3)
{
    sql[0] = st_schema.sql[0];
    sql[1] = step_2;
    sql[2] = step_3;
    return (st_steps){.sql = sql, .count = step_3 != NULL ? 3 : 2};
}

static int version_of(mdot_store *store) { return (int)store_count(store).schema_version; }

static void an_older_store_is_migrated_only_on_request(void **state)
{
    store_fixture *f = *state;
    const char *sql[3];
    st_steps steps = later(sql, second, NULL);
    mdot_store *store = NULL;
    int from = 0;
    store_fixture_add(f, store_fixture_row(f, 5));
    store_expect_failure(st_open(f->path, NULL, &steps, false, 0, NULL, &store, &f->err), &f->err, MDOT_INCOMPATIBLE,
                         "mdot-store migrate");
    assert_int_equal(version_of(f->store), 1);
    store_expect_ok(st_open(f->path, NULL, &steps, true, 0, &from, &store, &f->err), &f->err);
    assert_int_equal(from, 1);
    assert_int_equal(version_of(store), 2);
    assert_int_equal(store_count(store).row_count, 1);
    expect_text(store, "SELECT watts FROM rows", "0.0");
    mdot_store_close(store);
}

static void every_older_version_reaches_the_newest(void **state)
{
    store_fixture *f = *state;
    for (int start = 1; start <= 3; start++) {
        const char *sql[3];
        st_steps old = later(sql, second, third), all = old;
        char name[32];
        int from = 0;
        mdot_store *store = NULL;
        snprintf(name, sizeof name, "from%d.store", start);
        char *path = process_in_folder(f->folder, name);
        old.count = start;
        store_expect_ok(st_open(path, NULL, &old, false, 0, NULL, &store, &f->err), &f->err);
        mdot_store_close(store);
        store_expect_ok(st_open(path, NULL, &all, true, 0, &from, &store, &f->err), &f->err);
        assert_int_equal(from, start);
        assert_int_equal(version_of(store), 3);
        expect_text(store, "SELECT count(*) FROM pragma_table_info('rows') WHERE name = 'watts'", "1");
        expect_text(store, "SELECT count(*) FROM sqlite_master WHERE name = 'sites'", "1");
        mdot_store_close(store);
        free(path);
    }
}

/* Runs SQL on the file as another program. */
static void tamper(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

/* The last one of the list, which every list has behind the tables of this version. */
static void a_missing_last_table_is_named(void **state)
{
    store_fixture *f = *state;
    const char *sql[3];
    st_steps steps = later(sql, second, third);
    mdot_store *store = NULL;
    store_expect_ok(st_open(f->path, NULL, &steps, true, 0, NULL, &store, &f->err), &f->err);
    mdot_store_close(store);
    store = NULL;
    tamper(f->path, "DROP TABLE sites");
    store_expect_failure(st_open(f->path, NULL, &steps, true, 0, NULL, &store, &f->err), &f->err, MDOT_CORRUPT,
                         "the table \"sites\" differs");
    tamper(f->path, third);
    tamper(f->path, "CREATE TABLE zones (name TEXT)");
    store_expect_failure(st_open(f->path, NULL, &steps, true, 0, NULL, &store, &f->err), &f->err, MDOT_CORRUPT,
                         "the table \"zones\" differs");
    assert_null(store);
}

static bool count_row(void *user, const mdot_store_row *row)
{
    ++*(int *)user;
    return row->ms > 0;
}

/* Reads the store as a user who may not write; exits with the number of rows, or with 100 and a message. */
static void read_as_nobody(const char *path)
{
    const mdot_store_options reading = {.struct_size = sizeof reading, .flags = MDOT_STORE_READ_ONLY};
    mdot_store *store = NULL;
    mdot_error err = {0};
    int rows = 0;
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(101);
    mdot_status status = mdot_store_open(path, &reading, &store, &err);
    if (status == MDOT_OK) status = mdot_store_visit_rows(store, NULL, count_row, &rows, &err);
    if (status == MDOT_OK) status = mdot_store_refresh(store, NULL, &err);
    if (status != MDOT_OK) fprintf(stderr, "%s\n", err.message);
    _exit(status == MDOT_OK ? rows : 100);
}

static int read_in_child(const char *path)
{
    int status;
    pid_t child = fork();
    if (child == 0) read_as_nobody(path);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void a_foreign_schema_is_refused_and_its_records_are_recovered(void **state)
{
    store_fixture *f = *state;
    static const struct {
        const char *sql, *message;
    } cases[] = {{"create trigger t after insert on rows begin delete from jobs; end", "the trigger \"t\""},
                 {"alter table rows rename to rows_; create view rows as with recursive n(x) as (select 1 union all "
                  "select x + 1 from n) select rows_.* from rows_, n where x < 0",
                  "differs"},
                 {"create view v as select * from jobs", "the view \"v\""},
                 {"create table extra (a)", "the table \"extra\""},
                 {"create index i on rows (ms)", "the index \"i\""},
                 {"drop index changed_groups", "the index \"changed_groups\""},
                 {"drop table predictions; create table predictions (predictor, group_id, ms, lower_ms, upper_ms)",
                  "the table \"predictions\""},
                 {"pragma writable_schema = on; update sqlite_master set sql = replace(sql, 'ms REAL', 'ms REAL "
                  "DEFAULT 5') where name = 'rows'",
                  "the table \"rows\""}};
    store_fixture_add(f, store_fixture_row(f, 5));
    mdot_store_close(f->store);
    f->store = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[32];
        snprintf(name, sizeof name, "copy%zu.store", i);
        char *path = process_in_folder(f->folder, name), *saved = NULL;
        snprintf(name, sizeof name, "saved%zu.store", i);
        saved = process_in_folder(f->folder, name);
        assert_int_equal(mdot_store_recover(f->path, path, NULL, &f->err), MDOT_OK); /* a copy of the store */
        tamper(path, cases[i].sql);
        mdot_store *store = NULL;
        const mdot_store_options reading = {.struct_size = sizeof reading, .flags = MDOT_STORE_READ_ONLY};
        store_expect_failure(mdot_store_open(path, NULL, &store, &f->err), &f->err, MDOT_CORRUPT, cases[i].message);
        store_expect_failure(mdot_store_open(path, &reading, &store, &f->err), &f->err, MDOT_CORRUPT, "recover");
        assert_null(store);
        for (int end = 0; end < 2; end++) { /* left by the reader: without them, SQLite opens the file in another way */
            char *beside = NULL;
            assert_true(asprintf(&beside, "%s%s", path, end == 0 ? "-wal" : "-shm") > 0);
            unlink(beside);
            free(beside);
        }
        assert_int_equal(chmod(f->folder, 0555), 0);
        assert_int_equal(read_in_child(path), 100);
        assert_int_equal(chmod(f->folder, 0755), 0);
        mdot_store_recovery recovery = MDOT_INIT(mdot_store_recovery);
        store_expect_ok(mdot_store_recover(path, saved, &recovery, &f->err), &f->err);
        assert_int_equal(recovery.row_count, 1);
        assert_int_equal(recovery.job_count, 2);
        free(path);
        free(saved);
    }
    tamper(f->path, "analyze"); /* SQLite's own tables */
    store_expect_ok(mdot_store_open(f->path, NULL, &f->store, &f->err), &f->err);
}

static void a_read_only_folder_can_be_read(void **state)
{
    store_fixture *f = *state;
    char *folder = process_in_folder(f->folder, "r#%20?"), *path = process_in_folder(folder, "a?b.store");
    mdot_store *store = NULL;
    assert_int_equal(mkdir(folder, 0777), 0);
    store_expect_ok(mdot_store_open(path, NULL, &store, &f->err), &f->err);
    store_expect_ok(mdot_store_add_job(store, f->job, "x", NULL, &f->err), &f->err);
    store_expect_ok(st_execute(store, "PRAGMA wal_checkpoint(TRUNCATE)", "act", &f->err), &f->err);
    mdot_store_row row = store_fixture_row(f, 5); /* in the log alone, without which the file is an older store */
    store_expect_ok(mdot_store_add_rows(store, &row, 1, NULL, &f->err), &f->err);
    char *copied = process_in_folder(f->folder, "copied"), *copied_path = process_in_folder(copied, "a?b.store");
    static process_result result;
    process_run((const char *const[]){"/bin/cp", "-r", folder, copied, NULL}, &result);
    assert_int_equal(chmod(f->folder, 0555) | chmod(folder, 0555) | chmod(copied, 0755), 0);
    assert_int_equal(read_in_child(path), 1); /* beside the writer */
    char *shared = process_in_folder(copied, "a?b.store-shm");
    assert_int_equal(unlink(shared) | chmod(copied, 0555), 0);
    if (geteuid() == 0) assert_int_equal(read_in_child(copied_path), 100); /* the log needs a file beside it */
    free(shared);
    free(copied);
    free(copied_path);
    mdot_store_close(store);
    assert_int_equal(read_in_child(path), 1);
    assert_int_equal(chmod(f->folder, 0755) | chmod(folder, 0755), 0);
    free(folder);
    free(path);
}

static void a_failed_migration_leaves_the_store_as_it_was(void **state)
{
    store_fixture *f = *state;
    const char *sql[3];
    st_steps steps = later(sql, faulty, NULL);
    mdot_store *store = NULL;
    assert_int_not_equal(st_open(f->path, NULL, &steps, true, 0, NULL, &store, &f->err), MDOT_OK);
    assert_null(store);
    assert_int_equal(version_of(f->store), 1);
    expect_text(f->store, "SELECT count(*) FROM pragma_table_info('rows') WHERE name = 'watts'", "0");
    store_fixture_add(f, store_fixture_row(f, 5));
}

static void a_newer_store_is_refused(void **state)
{
    store_fixture *f = *state;
    const char *sql[3];
    st_steps steps = later(sql, second, NULL);
    mdot_store *store = NULL;
    store_expect_ok(st_open(f->path, NULL, &steps, true, 0, NULL, &store, &f->err), &f->err);
    mdot_store_close(store);
    store = NULL;
    store_expect_failure(mdot_store_open(f->path, NULL, &store, &f->err), &f->err, MDOT_INCOMPATIBLE,
                         "use a newer mdot");
    store_expect_failure(mdot_store_migrate(f->path, NULL, &f->err), &f->err, MDOT_INCOMPATIBLE, "use a newer mdot");
    assert_null(store);
}

static void a_migration_of_the_newest_version_changes_nothing(void **state)
{
    store_fixture *f = *state;
    uint32_t from = 0;
    store_expect_ok(mdot_store_migrate(f->path, &from, &f->err), &f->err);
    assert_int_equal(from, 1);
    char *absent = process_in_folder(f->folder, "absent.store");
    assert_int_equal(mdot_store_migrate(absent, &from, &f->err), MDOT_NOT_FOUND);
    free(absent);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

/* Whatever SQLite answers, the message names the file, the action and the reason. */
static void each_failure_of_sqlite_has_a_reason(void **state)
{
    store_fixture *f = *state;
    static const struct {
        int code;
        mdot_status status;
        const char *part;
    } cases[] = {{SQLITE_NOMEM, MDOT_OUT_OF_MEMORY, "memory ran out"},
                 {SQLITE_BUSY, MDOT_IO, "another process holds the store; try again"},
                 {SQLITE_BUSY_SNAPSHOT, MDOT_IO, "another process holds the store"},
                 {SQLITE_LOCKED, MDOT_IO, "another process holds the store"},
                 {SQLITE_FULL, MDOT_IO, "the disk is full; earlier records are intact. Free space and repeat"},
                 {SQLITE_ERROR, MDOT_CORRUPT, "is damaged"},
                 {SQLITE_CORRUPT, MDOT_CORRUPT, "mdot-store recover"},
                 {SQLITE_NOTADB, MDOT_CORRUPT, "copies all records that can be read"},
                 {SQLITE_READONLY, MDOT_IO, "the file or its folder is read-only"},
                 {SQLITE_PERM, MDOT_IO, "read-only"},
                 {SQLITE_AUTH, MDOT_IO, "read-only"},
                 {SQLITE_IOERR_WRITE, MDOT_IO, "Check free space, quota and the limit of file sizes"},
                 {SQLITE_IOERR_SHMSIZE, MDOT_IO, "Check free space, quota"},
                 {SQLITE_IOERR_READ, MDOT_IO, "(errno 0); earlier records are intact"},
                 {SQLITE_CANTOPEN, MDOT_IO, "the file or one beside it cannot be opened"},
                 {SQLITE_INTERRUPT, MDOT_IO, "cannot act"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_error err = {0};
        store_expect_failure(st_fail(f->store, cases[i].code, "act", &err), &err, cases[i].status, cases[i].part);
        expect_contains(err.message, "cannot act");
        assert_ptr_equal(strstr(err.message, f->path), err.message);
        bool is_full = strstr(err.message, "quota") != NULL;
        assert_int_equal(is_full, cases[i].code == SQLITE_IOERR_WRITE || cases[i].code == SQLITE_IOERR_SHMSIZE);
    }
}

static void missing_arguments_are_named(void **state)
{
    store_fixture *f = *state;
    mdot_error *e = &f->err;
    mdot_store *store = NULL;
    mdot_store_info small = {.struct_size = 1}, info = MDOT_INIT(mdot_store_info);
    store_expect_missing(mdot_store_open(NULL, NULL, &store, e), e);
    store_expect_missing(mdot_store_open("", NULL, &store, e), e);
    store_expect_missing(mdot_store_open(f->path, NULL, NULL, e), e);
    store_expect_missing(mdot_store_get_info(NULL, &info, e), e);
    store_expect_missing(mdot_store_check(NULL, e), e);
    assert_int_equal(mdot_store_get_info(f->store, &small, e), MDOT_INVALID_ARGUMENT);
    assert_null(store);
    mdot_store_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_new_store_is_durable),
        CASE(a_network_file_system_gets_a_rollback_journal),
        CASE(a_held_file_is_reported_after_the_wait),
        CASE(file_systems_of_a_network_are_known),
        CASE(a_path_that_cannot_be_followed_has_its_reason),
        CASE(flags_are_respected),
        CASE(other_files_are_refused),
        CASE(an_older_store_is_migrated_only_on_request),
        CASE(every_older_version_reaches_the_newest),
        CASE(a_missing_last_table_is_named),
        CASE(a_foreign_schema_is_refused_and_its_records_are_recovered),
        CASE(a_read_only_folder_can_be_read),
        CASE(a_failed_migration_leaves_the_store_as_it_was),
        CASE(a_newer_store_is_refused),
        CASE(a_migration_of_the_newest_version_changes_nothing),
        CASE(each_failure_of_sqlite_has_a_reason),
        CASE(missing_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
