/* test_history_keys.c — names, hashes and keys of jobs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "history/history_nodes.h"
#include "tests/simulator/support/numbers.h"

static void names_lose_digits_dates_and_hashes(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"ResNet50_lr0.1-20240501-9f3ac2e1", "resnet-lr"},
        {"train.py --epochs=90", "train-py-epochs"},
        {"bert-base 2024-05-01T12:00:00", "bert-base-t"},
        {"job_123456", "job"},
        {"0123-4567", ""},
        {"deadbeef", "deadbeef"}, /* a hash has digits */
        {"d3adb33f", ""},
        {"a1b2c", "abc"}, /* five characters are too few */
        {"1deadbeef", ""},
        {"k8s9x7", "ksx"}, /* seven are too few for changes */
        {"k8s9x7q", "ksxq"},
        {"kk8s9999", "kks"}, /* three changes */
        {"k8s9x7zw", ""},
        {"8k9s7xzw", ""},
        {"a1b2c3d4e5", ""},
        {"k8s9x7q2w1", ""}, /* changes between letters and digits */
        {"3f2504e0-4f89-11d3-9a0c-0305e82c3301", ""},
        {"ft-vit_3F2504E0_4F89_11D3_9A0C_0305E82C3301.out", "ft-vit-out"},
        {"3f2504e0-4f89-11d3_9a0c-0305e82c3301", "f-d-ac"},  /* two separators are no UUID */
        {"x3f2504e0-4f89-11d3-9a0c-0305e82c3301", "f-d-ac"}, /* it stands alone */
        {"3f2504e0-4f89-11d3-9a0c-0305e82c330z", "f-d-ac"},
        {"3f2504e0-4f89-11d3-9a0c-0305e82c330", "f-d-ac"},
        {"GPT2", "gpt"},
        {"gpt-2", "gpt"},
        {"étude_7", "étude"},
        {"--a--b--", "a-b"},
        {"", ""},
        {"\n\t|,;", ""},
    };
    char out[MDOT_HISTORY_NAME_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mdot_history_normalise_name(cases[i][0], out);
        assert_string_equal(out, cases[i][1]);
    }
    mdot_history_normalise_name(NULL, out);
    assert_string_equal(out, "");
}

/* Two times share a class if both are on a working day or both at a weekend, in the same four hours of the day. */
static void hours_have_twelve_classes(void **state)
{
    (void)state;
    const uint64_t seed[2] = {1, 2};
    uint64_t random = 1, class[2][6] = {{0}};
    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        time_t at = (time_t)(random >> 32) / 2;                               /* up to 2038 */
        if (i % 4 == 0) at = at / 14400 * 14400 - (i % 8 == 0 && at > 14400); /* where a class begins, and before */
        struct tm day;
        gmtime_r(&at, &day);
        mdot_history_job job = {.struct_size = sizeof job, .submit_s = (double)at};
        uint64_t hash = hs_keys_of(seed, NULL, &job).hash[MDOT_HISTORY_KEY_HOUR];
        uint64_t *known = &class[day.tm_wday == 0 || day.tm_wday == 6][day.tm_hour / 4];
        assert_true(hash != 0 && (*known == 0 || *known == hash));
        *known = hash;
    }
    for (int a = 0; a < 12; a++)
        for (int b = 0; b < a; b++) assert_true(class[a / 6][a % 6] != class[b / 6][b % 6]);
}

static const uint64_t site_seed[2] = {1, 2};

/* The key of a user's name and resources, which keeps digits joined to letters. */
static uint64_t model_key(const hs_nodes *nodes, const char *user, const char *name)
{
    mdot_history_job job = {.struct_size = sizeof job, .user = user, .name = name, .gpus = 1};
    return hs_keys_of(site_seed, nodes, &job).hash[MDOT_HISTORY_KEY_USER_NAME_RESOURCES];
}

static void see(hs_nodes *nodes, const char *user, const char *name)
{
    static double submit_s;
    mdot_history_job job = {.struct_size = sizeof job, .user = user, .name = name, .gpus = 1, .submit_s = ++submit_s};
    assert_true(hs_see_words(site_seed, nodes, &job));
}

/* Each word before it has many values keeps its digits; afterwards it is left out for this user, wherever it stands. */
static void words_with_many_values_tell_runs(void **state)
{
    (void)state;
    static const char *const words[] = {"run", "lr", "cfg", "Seed", "x", "\xc4\x80", "mk2x", "experimentwithalongname"};
    static const char *const forms[] = {"resnet18-%s%d", "%s%d_resnet18", "train/resnet18.%s%d x",
                                        "resnet18-%s%d-%s%d"};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            hs_nodes *nodes = hs_nodes_create(1000);
            char names[HS_RUN_VALUES + 2][96], without[96], other[96];
            for (int i = 0; i < HS_RUN_VALUES + 2; i++) {
                snprintf(names[i], sizeof names[i], forms[f], words[w], 100 + i, words[w], 100 + i);
                assert_true(i == 0 || model_key(nodes, "anna", names[i]) != model_key(nodes, "anna", names[0]));
            }
            for (int i = 0; i < HS_RUN_VALUES - 1; i++) see(nodes, "anna", names[i]); /* too few values */
            assert_true(model_key(nodes, "anna", names[0]) != model_key(nodes, "anna", names[1]));
            see(nodes, "anna", names[HS_RUN_VALUES]);
            uint64_t key = model_key(nodes, "anna", names[HS_RUN_VALUES + 1]);
            assert_true(key != 0 && key == model_key(nodes, "anna", names[0]));
            snprintf(without, sizeof without, f == 2 ? "train/resnet18..x" : "resnet18");
            assert_true(key == model_key(nodes, "anna", without)); /* the whole word is left out */
            snprintf(other, sizeof other, "%s", names[0]);
            memcpy(strstr(other, "18"), "34", 2);
            assert_true(key != model_key(nodes, "anna", other)); /* few values tell models */
            assert_true(model_key(nodes, "bert", names[0]) != model_key(nodes, "bert", names[1]));
            hs_nodes_destroy(nodes);
        }
}

/* Sizes that come back keep their digits beside a run, whatever their order; a word whose values are new does not. */
static void values_that_come_back_tell_models(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int sizes = 2; sizes <= 24; sizes++) {
        hs_nodes *nodes = hs_nodes_create(10000);
        char names[3][64];
        for (int i = 0; i < 500; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            snprintf(names[0], sizeof names[0], "mlp%d_run%d", 32 * (int)((random >> 33) % (unsigned)sizes), i);
            see(nodes, "anna", names[0]);
        }
        for (int i = 0; i < 3; i++) snprintf(names[i], sizeof names[i], "mlp%d_run%d", i == 2 ? 64 : 32, 1000 + i);
        assert_true(model_key(nodes, "anna", names[0]) == model_key(nodes, "anna", names[1]));
        assert_true(model_key(nodes, "anna", names[0]) != model_key(nodes, "anna", names[2]));
        hs_nodes_destroy(nodes);
    }
}

/* Numbers, identifiers and plain words never count, and a name with nothing else has no such key. */
static void other_words_tell_nothing(void **state)
{
    (void)state;
    hs_nodes *nodes = hs_nodes_create(1000);
    char name[64];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "train-%d-a1b2c3d4e%d", i, i);
        see(nodes, "anna", name);
        see(nodes, NULL, "cfg7");
        see(nodes, "anna", NULL);
    }
    assert_null(hs_nodes_next(nodes, NULL));
    for (int i = 0; i < HS_RUN_VALUES; i++) {
        snprintf(name, sizeof name, "job%d", i);
        assert_true(model_key(nodes, "anna", name) != 0);
        see(nodes, "anna", name);
    }
    assert_true(model_key(nodes, "anna", "job77") == 0 && model_key(nodes, "anna", "job") != 0);
    hs_nodes_destroy(nodes);
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char name[4096], out[MDOT_HISTORY_NAME_BYTES];
    memset(name, 'w', sizeof name);
    for (size_t i = 3; i < sizeof name; i += 4) name[i] = '_';
    name[sizeof name - 1] = '\0';
    mdot_history_normalise_name(name, out);
    assert_true(strlen(out) >= MDOT_HISTORY_NAME_BYTES - 4);
    assert_true(strlen(out) < MDOT_HISTORY_NAME_BYTES);
}

/* The test vectors of SipHash's authors: bytes 0, 1, 2 … under the key 0, 1 … 15. */
static void hashes_are_siphash(void **state)
{
    (void)state;
    static const uint64_t seed[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    static const struct {
        size_t bytes;
        uint64_t hash;
    } known[] = {{0, 0x726fdb47dd0e0e31},
                 {1, 0x74f839c593dc67fd},
                 {7, 0xab0200f58b01d137},
                 {8, 0x93f5f5799a932462},
                 {15, 0xa129ca6149be45e5}};
    unsigned char bytes[16];
    for (unsigned char i = 0; i < 16; i++) bytes[i] = i;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        expect_number(hs_hash(seed, bytes, known[i].bytes), known[i].hash);
}

static void keys_need_their_properties(void **state)
{
    (void)state;
    static const uint64_t seed[2] = {1, 2};
    mdot_history_job job = {.struct_size = sizeof job};
    hs_keys keys = hs_keys_of(seed, NULL, &job);
    for (int i = 0; i < HS_KEYS; i++)
        expect_number((keys.hash[i] != 0), (i == MDOT_HISTORY_KEY_ALL || i == MDOT_HISTORY_KEY_HOUR));
    job.user = "anna";
    job.gpus = 2;
    keys = hs_keys_of(seed, NULL, &job);
    assert_true(keys.hash[MDOT_HISTORY_KEY_USER_RESOURCES] != 0);
    expect_number(keys.hash[MDOT_HISTORY_KEY_USER_NAME], 0);
    job.name = "train";
    keys = hs_keys_of(seed, NULL, &job);
    assert_true(keys.hash[MDOT_HISTORY_KEY_USER_NAME_RESOURCES] != 0);
    expect_number(keys.hash[MDOT_HISTORY_KEY_USER_EXACT_NAME], 0); /* it would repeat the one before */
    job.name = "train-7";
    hs_keys partner = hs_keys_of(seed, NULL, &job);
    expect_number(partner.hash[MDOT_HISTORY_KEY_USER_NAME], keys.hash[MDOT_HISTORY_KEY_USER_NAME]);
    assert_true(partner.hash[MDOT_HISTORY_KEY_USER_EXACT_NAME] != 0);
}

static void every_property_and_the_seed_change_the_keys(void **state)
{
    (void)state;
    static const uint64_t seed[2] = {1, 2}, other_seed[2] = {1, 3};
    mdot_history_job job = {
        .struct_size = sizeof job, .user = "u", .group = "g", .name = "n", .gpu_type = "t", .digest = 5, .gpus = 1};
    mdot_history_job changed[6];
    for (int i = 0; i < 6; i++) changed[i] = job;
    changed[0].user = "v";
    changed[1].group = "h";
    changed[2].name = "m";
    changed[3].gpu_type = "s";
    changed[4].digest = 6;
    changed[5].gpus = 2;
    hs_keys keys = hs_keys_of(seed, NULL, &job);
    for (int i = 0; i < 6; i++) {
        hs_keys partner = hs_keys_of(seed, NULL, &changed[i]);
        assert_memory_not_equal(&keys, &partner, sizeof keys);
    }
    hs_keys partner = hs_keys_of(other_seed, NULL, &job);
    assert_memory_not_equal(&keys, &partner, sizeof keys);
}

static uint64_t seed_of_names = 1;

static unsigned below(unsigned most)
{
    seed_of_names = seed_of_names * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed_of_names >> 33) % most;
}

static bool digit(char c) { return c >= '0' && c <= '9'; }

/* Is the lower-case word to be left out as a hash or another identifier? */
static bool generated(const char *word)
{
    size_t length = strlen(word), changes = 0;
    for (size_t i = 1; i < length; i++) changes += digit(word[i - 1]) != digit(word[i]);
    if (strcspn(word, "0123456789") == length) return false;
    return (length >= 6 && strspn(word, "0123456789abcdef") == length) || (length >= 8 && changes >= 4);
}

static bool number(const char *word) { return strspn(word, "0123456789") == strlen(word); }

/* The name as the keys should use it, from a list of its words. Digits joined to letters stay if `models`. */
static void reference_name(const char *name, bool models, char *out)
{
    char copy[256], *words[256], *rest = copy;
    int count = 0;
    size_t used = 0;
    for (size_t i = 0; i <= strlen(name); i++)
        copy[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
    while (rest != NULL) {
        char *word = strsep(&rest, " -_./:=[]@`{^"); /* with the neighbours of digits and letters */
        if (*word != '\0') words[count++] = word;
    }
    for (int i = 0; i < count; i++) {
        if (generated(words[i])) continue;
        bool keeps = models && !number(words[i]);
        size_t begin = used;
        for (const char *c = words[i]; *c != '\0'; c++) {
            if (digit(*c) && !keeps) continue;
            if (used == begin && begin > 0) out[used++] = '-';
            out[used++] = *c;
        }
    }
    out[used] = '\0';
}

static void any_name_loses_the_same_words_as_a_list_of_words(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "-",    "_",        " ",        "a",        "f",   "g",   "z",       "A",        "Z",          "0",      "9",
        "1",    "7",        "-",        "@",        "[",   "`",   "{",       "/",        ":",          "resnet", "18",
        "run7", "9f3ac2e1", "\xc4\x80", "20240501", "exp", "lr3", "trials4", "attempt5", "iterations6"};
    hs_nodes *nodes = hs_nodes_create(64);
    for (int i = 0; i < 60000; i++) {
        char name[160] = "", out[MDOT_HISTORY_NAME_BYTES], wanted[256];
        for (unsigned k = below(12); k > 0; k--) strcat(name, parts[below(i % 2 == 0 ? 31 : 13)]);
        mdot_history_normalise_name(name, out);
        reference_name(name, false, wanted);
        assert_string_equal(out, wanted);
        reference_name(name, true, wanted);
        assert_true(model_key(nodes, "anna", name) == model_key(nodes, "anna", wanted));
        assert_true((model_key(nodes, "anna", name) == 0) == (*wanted == '\0'));
    }
    hs_nodes_destroy(nodes);
}

/* Names are cut at 1024 bytes, and their result at 127. */
static void names_of_any_length_are_cut_at_the_same_place(void **state)
{
    (void)state;
    char name[2048], out[MDOT_HISTORY_NAME_BYTES + 1], before[MDOT_HISTORY_NAME_BYTES] = "";
    static const uint64_t seed[2] = {1, 2};
    uint64_t known = 0;
    for (size_t length = 1; length < 1100; length++) {
        memset(name, length % 2 == 0 ? 'w' : 'W', length);
        name[length] = '\0';
        out[MDOT_HISTORY_NAME_BYTES] = '#';
        mdot_history_normalise_name(name, out);
        expect_number(strlen(out), length < MDOT_HISTORY_NAME_BYTES - 2 ? length : MDOT_HISTORY_NAME_BYTES - 2);
        expect_number(strspn(out, "w"), strlen(out));
        assert_true(out[MDOT_HISTORY_NAME_BYTES] == '#' && strncmp(before, out, strlen(before)) == 0);
        memcpy(before, out, sizeof before);
        memset(name, 'u', length);
        mdot_history_job job = {.struct_size = sizeof job, .user = name};
        uint64_t hash = hs_keys_of(seed, NULL, &job).hash[MDOT_HISTORY_KEY_USER];
        assert_true((hash == known) == (length > 1024));
        known = hash;
    }
    memset(name, '1', 1024);
    strcpy(name + 1024, "tail");
    mdot_history_normalise_name(name, out);
    assert_string_equal(out, "");
    for (size_t words = 1; words < 200; words++) { /* separators count, too */
        for (size_t i = 0; i < words; i++) memcpy(name + 2 * i, "w_", 3);
        mdot_history_normalise_name(name, out);
        assert_true(strlen(out) < MDOT_HISTORY_NAME_BYTES);
        for (size_t i = 0; out[i] != '\0'; i++) expect_number(out[i], i % 2 == 0 ? 'w' : '-');
        assert_true(strlen(out) == 2 * words - 1 || words > 60);
    }
}

/* A key changes with each of its properties, and with no other one. Without one of them, it is unknown. */
static void each_key_depends_on_its_own_properties(void **state)
{
    (void)state;
    enum { USER = 1, GROUP = 2, NAME = 4, TYPE = 8, DIGEST = 16, GPUS = 32, HOUR = 64 };
    static const int of_key[HS_KEYS] = {0,
                                        TYPE | GPUS,
                                        HOUR,
                                        GROUP,
                                        USER,
                                        USER | TYPE | GPUS,
                                        NAME,
                                        DIGEST,
                                        USER | NAME,
                                        USER | NAME | TYPE | GPUS,
                                        USER | DIGEST | TYPE | GPUS,
                                        USER | NAME | TYPE | GPUS};
    static const char *const texts[] = {"p", "q", "r", "s", "t"};
    static const uint64_t seed[2] = {5, 6};
    for (int i = 0; i < 3000; i++) {
        int missing = (int)below(64) & (int)below(64);
        mdot_history_job jobs[2];
        char name[16], next_name[16];
        snprintf(name, sizeof name, "%s-7", texts[below(5)]);
        snprintf(next_name, sizeof next_name, "%s-7", texts[(unsigned)(name[0] - 'p' + 1) % 5]);
        unsigned u = below(5), g = below(5), t = below(5);
        jobs[0] = (mdot_history_job){.struct_size = sizeof jobs[0],
                                     .user = texts[u],
                                     .group = texts[g],
                                     .name = name,
                                     .gpu_type = texts[t],
                                     .digest = 1 + below(9),
                                     .gpus = 1 + (int)below(9),
                                     .submit_s = 14400. * below(6)};
        int bit = 1 << below(7);
        for (int k = 1; k >= 0; k--) {
            mdot_history_job *job = &jobs[k];
            *job = jobs[0];
            if (k == 1 && bit == USER) job->user = texts[(u + 1) % 5];
            if (k == 1 && bit == GROUP) job->group = texts[(g + 1) % 5];
            if (k == 1 && bit == NAME) job->name = next_name;
            if (k == 1 && bit == TYPE) job->gpu_type = texts[(t + 1) % 5];
            if (k == 1 && bit == DIGEST) job->digest++;
            if (k == 1 && bit == GPUS) job->gpus++;
            if (k == 1 && bit == HOUR) job->submit_s += 14400;
            if (missing & USER) job->user = below(2) ? "" : NULL;
            if (missing & GROUP) job->group = below(2) ? "" : NULL;
            if (missing & NAME) job->name = below(2) ? "" : NULL;
            if (missing & TYPE) job->gpu_type = below(2) ? "" : NULL;
            if (missing & DIGEST) job->digest = 0;
            if (missing & GPUS) job->gpus = 0;
        }
        hs_keys a = hs_keys_of(seed, NULL, &jobs[0]), b = hs_keys_of(seed, NULL, &jobs[1]);
        for (int key = 0; key < HS_KEYS; key++) {
            int needed = of_key[key], either = TYPE | GPUS;
            bool is_known = (needed & missing & ~either) == 0 && !((needed & either) && (missing & either) == either);
            expect_number(a.hash[key] != 0, is_known);
            expect_number(b.hash[key] != 0, is_known);
            expect_number(a.hash[key] % 2, is_known);
            if (is_known) expect_number(a.hash[key] != b.hash[key], (needed & bit & ~missing) != 0);
            for (int other = 0; is_known && other < key; other++) assert_true(a.hash[other] != a.hash[key]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lose_digits_dates_and_hashes),
        cmocka_unit_test(hours_have_twelve_classes),
        cmocka_unit_test(words_with_many_values_tell_runs),
        cmocka_unit_test(values_that_come_back_tell_models),
        cmocka_unit_test(other_words_tell_nothing),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(hashes_are_siphash),
        cmocka_unit_test(keys_need_their_properties),
        cmocka_unit_test(every_property_and_the_seed_change_the_keys),
        cmocka_unit_test(any_name_loses_the_same_words_as_a_list_of_words),
        cmocka_unit_test(names_of_any_length_are_cut_at_the_same_place),
        cmocka_unit_test(each_key_depends_on_its_own_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
