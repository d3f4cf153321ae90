/* test_quantity.c — counts, rates and prices with units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/command/quantity.h"
#include "tests/support/assertions.h"

static void counts_take_exponents_underscores_and_suffixes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int suffixes;
        int64_t value; /* 0: refused */
    } cases[] = {{"100000", 0, 100000}, {"1e5", 0, 100000},
                 {"1E+5", 0, 100000},   {"1_000_000", 0, 1000000},
                 {"1.5e3", 0, 1500},    {"+7", 0, 7},
                 {"1M", 1, 1000000},    {"1.5k", 1, 1500},
                 {"2g", 1, 2000000000}, {"1.5B", 1, 1500000000},
                 {"1B", 0, 0},          {"1BB", 1, 0},
                 {"1M", 0, 0},          {"1.5", 0, 0},
                 {"1e-1", 0, 0},        {"1__0", 0, 0},
                 {"_1", 0, 0},          {"1_", 0, 0},
                 {"1e", 0, 0},          {"", 1, 0},
                 {"k", 1, 0},           {"0x10", 0, 0},
                 {"inf", 0, 0},         {"nan", 0, 0},
                 {"1e5 steps", 1, 0},   {"5e9", 0, 0},
                 {"-3", 0, 0},          {"1kk", 1, 0},
                 {"1,000", 1, 0},       {"1e400", 0, 0},
                 {"1.5.2", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 0;
        const char *reason = cli_read_count(cases[i].text, cases[i].suffixes, 1, INT64_C(4000000000), &value);
        if ((reason == NULL) != (cases[i].value != 0) || value != cases[i].value)
            fail_msg("\"%s\" is %lld: %s", cases[i].text, (long long)value, reason != NULL ? reason : "read");
    }
}

/* A double holds the odd numbers below 2^53 only. 2^53 itself may stand for 2^53 + 1. */
static void counts_that_a_double_would_round_are_refused(void **state)
{
    (void)state;
    int64_t value = 0;
    assert_null(cli_read_count("9007199254740991", 0, 1, INT64_MAX, &value));
    assert_compare(value, ==, INT64_C(9007199254740991));
    assert_non_null(cli_read_count("9007199254740992", 0, 1, INT64_MAX, &value));
    assert_non_null(cli_read_count("9007199254740993", 0, 1, INT64_MAX, &value));
    assert_compare(value, ==, INT64_C(9007199254740991));
}

static void rates_distinguish_bits_from_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double gbps; /* 0: refused */
    } cases[] = {{"12.5", 12.5},
                 {"12.5GB/s", 12.5},
                 {"12.5 GB/s", 12.5},
                 {"100Gb/s", 12.5},
                 {"100 Gbit/s", 12.5},
                 {"100Gbits/s", 12.5},
                 {"400Gbps", 50},
                 {"400gbps", 50},
                 {"50GBps", 50},
                 {"600GB/s", 600},
                 {"1.8TB/s", 1800},
                 {"900000MB/s", 900},
                 {"1GiB/s", 1.073741824},
                 {"1e2Gb/s", 12.5},
                 {"100Gb", 0},
                 {"100GB", 0},
                 {"100Gb/h", 0},
                 {"100bps", 0},
                 {"0GB/s", 0},
                 {"-1", 0},
                 {"fast", 0},
                 {"", 0},
                 {"100Gx/s", 0},
                 {"100GB/s/s", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double gbps = 0;
        const char *reason = cli_read_rate(cases[i].text, &gbps);
        if ((reason == NULL) != (cases[i].gbps > 0) || gbps < cases[i].gbps * (1 - 1e-12) ||
            gbps > cases[i].gbps * (1 + 1e-12))
            fail_msg("\"%s\" is %g: %s", cases[i].text, gbps, reason != NULL ? reason : "read");
    }
    double gbps;
    assert_non_null(strstr(cli_read_rate("100Gb", &gbps), "Gb/s or Gbps (bits)"));
}

static void prices_take_currencies_and_hours(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double price; /* 0: refused */
    } cases[] = {{"2.5", 2.5},      {"2.5/h", 2.5},     {"$2.5/h", 2.5},  {"$2.5", 2.5},     {"2.5 USD/h", 2.5},
                 {"2.5USD", 2.5},   {"\u20ac2", 2},     {"2\u20ac/h", 2}, {"2 eur/hour", 2}, {"US$3/hr", 3},
                 {"3 per hour", 3}, {" 2.5/h \r", 2.5}, {"2.5/day", 0},   {"2.5/s", 0},      {"$", 0},
                 {"0", 0},          {"-3", 0},          {"2.5/h/h", 0},   {"two", 0},        {"", 0},
                 {"prices.txt", 0}, {"2,5", 0},         {"inf", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double price = 0;
        const char *currency;
        const char *reason = cli_read_price(cases[i].text, &price, &currency);
        if ((reason == NULL) != (cases[i].price > 0) || price != cases[i].price)
            fail_msg("\"%s\" is %g: %s", cases[i].text, price, reason != NULL ? reason : "read");
    }
    static const char *const currencies[][2] = {{"2.5", ""},        {"$2.5/h", "$"},       {"2.5 USD/h", "USD"},
                                                {"2eur/h", "EUR"},  {"\u20ac2", "\u20ac"}, {"2\u20ac/h", "\u20ac"},
                                                {"US$3/hr", "US$"}, {"JPY 300", "JPY"},    {"3 per hour", ""}};
    double price;
    const char *currency;
    for (size_t i = 0; i < sizeof currencies / sizeof *currencies; i++) {
        assert_null(cli_read_price(currencies[i][0], &price, &currency));
        assert_string_equal(currency, currencies[i][1]);
    }
    assert_non_null(strstr(cli_read_price("2.5/day", &price, &currency), "of an hour"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_take_exponents_underscores_and_suffixes),
        cmocka_unit_test(counts_that_a_double_would_round_are_refused),
        cmocka_unit_test(rates_distinguish_bits_from_bytes),
        cmocka_unit_test(prices_take_currencies_and_hours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
