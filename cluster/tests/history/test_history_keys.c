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
        {"3f2504e0-4f89-11d3-9a0c-0305e82c3301", "f-d-ac"},
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
        uint64_t hash = hs_keys_of(seed, &job).hash[MDOT_HISTORY_KEY_HOUR];
        uint64_t *known = &class[day.tm_wday == 0 || day.tm_wday == 6][day.tm_hour / 4];
        assert_true(hash != 0 && (*known == 0 || *known == hash));
        *known = hash;
    }
    for (int a = 0; a < 12; a++)
        for (int b = 0; b < a; b++) assert_true(class[a / 6][a % 6] != class[b / 6][b % 6]);
}

static void model_names_keep_digits_joined_to_letters(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"resnet18-run7", "resnet18-run"},
                                           {"resnet152_run9", "resnet152-run"},
                                           {"llama-7b-run3", "llama-7b-run"},
                                           {"ResNet50", "resnet50"},
                                           {"resnet50_12", "resnet50"},
                                           {"GPT2-20240501", "gpt2"},
                                           {"train_a_run77", "train-a-run"},
                                           {"job_123456", "job"},
                                           {"vit-b16-9f3ac2e1", "vit-b16"},
                                           {"bert", "bert"},
                                           {"0123-4567", ""},
                                           {"", ""}};
    char out[MDOT_HISTORY_NAME_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hs_model_name(cases[i][0], out);
        assert_string_equal(out, cases[i][1]);
    }
    hs_model_name(NULL, out);
    assert_string_equal(out, "");
    /* Runs of a model share the finest key but one; models do not. */
    static const uint64_t seed[2] = {1, 2};
    static const char *const names[] = {"resnet18-run7", "resnet18-run9", "resnet152-run9"};
    uint64_t hashes[3];
    for (int i = 0; i < 3; i++) {
        mdot_history_job job = {.struct_size = sizeof job, .user = "u", .name = names[i], .gpus = 1};
        hashes[i] = hs_keys_of(seed, &job).hash[MDOT_HISTORY_KEY_USER_NAME_RESOURCES];
    }
    assert_true(hashes[0] == hashes[1] && hashes[1] != hashes[2]);
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
    hs_keys keys = hs_keys_of(seed, &job);
    for (int i = 0; i < HS_KEYS; i++)
        expect_number((keys.hash[i] != 0), (i == MDOT_HISTORY_KEY_ALL || i == MDOT_HISTORY_KEY_HOUR));
    job.user = "anna";
    job.gpus = 2;
    keys = hs_keys_of(seed, &job);
    assert_true(keys.hash[MDOT_HISTORY_KEY_USER_RESOURCES] != 0);
    expect_number(keys.hash[MDOT_HISTORY_KEY_USER_NAME], 0);
    job.name = "train";
    keys = hs_keys_of(seed, &job);
    assert_true(keys.hash[MDOT_HISTORY_KEY_USER_NAME_RESOURCES] != 0);
    expect_number(keys.hash[MDOT_HISTORY_KEY_USER_EXACT_NAME], 0); /* it would repeat the one before */
    job.name = "train-7";
    hs_keys partner = hs_keys_of(seed, &job);
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
    hs_keys keys = hs_keys_of(seed, &job);
    for (int i = 0; i < 6; i++) {
        hs_keys partner = hs_keys_of(seed, &changed[i]);
        assert_memory_not_equal(&keys, &partner, sizeof keys);
    }
    hs_keys partner = hs_keys_of(other_seed, &job);
    assert_memory_not_equal(&keys, &partner, sizeof keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lose_digits_dates_and_hashes),
        cmocka_unit_test(hours_have_twelve_classes),
        cmocka_unit_test(model_names_keep_digits_joined_to_letters),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(hashes_are_siphash),
        cmocka_unit_test(keys_need_their_properties),
        cmocka_unit_test(every_property_and_the_seed_change_the_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
