/* quantity.h — numbers with units on the command line: counts, rates of links, prices. Each function returns NULL after
 * success, and otherwise the reason for a usage error, which is a static sentence without a full stop. */
#pragma once

#include <stdint.h>

/* Reads a whole number: "100000", "100_000", "1e5". `suffixes`: also "100k", "1.5M", "2G" or "2B", and "1T".
 * Numbers from 2^53 on are refused, because a double rounds them. */
const char *cli_read_count(const char *text, int suffixes, int64_t least, int64_t most, int64_t *out);

/* Reads a rate in GB/s (10^9 bytes per second): "12.5", "12.5GB/s", "100Gb/s", "100 Gbit/s", "400Gbps". B is a byte; b
 * and bit are an eighth. Prefixes are K, M, G and T, and Ki to Ti for powers of 1024. */
const char *cli_read_rate(const char *text, double *out_gbps);

/* Reads a duration in hours: "7d", "36h", "90min", "30s", "2w", above 0. */
const char *cli_read_duration(const char *text, double *out_hours);

/* Reads the price of an hour: "2.5", "2.5/h", "$2.5/h", "2.5 USD/h", "€2". Currencies are not converted.
 * out_currency receives the sign or the code, "" without one. */
const char *cli_read_price(const char *text, double *out_an_hour, const char **out_currency);
