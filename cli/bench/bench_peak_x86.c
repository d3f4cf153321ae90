/* bench_peak_x86.c — the loops of bench_peak.c for x86-64.
 *
 * The loops are in assembly so that the result is independent of the compiler's options. Twelve independent
 * accumulators cover every x86-64 core to date (at most two FMAs per cycle, four to five cycles each). Six tiles of
 * sums cover its matrix unit (a matmul every sixteen cycles, with a latency of 52: Intel's optimization manual,
 * chapter on AMX).
 */
#include "cli/bench/bench.h"

#if defined(__x86_64__)
#include <string.h>

#define TWELVE(ONE, r)                                                                                                 \
    ONE(r, "0")                                                                                                        \
    ONE(r, "1")                                                                                                        \
    ONE(r, "2")                                                                                                        \
    ONE(r, "3") ONE(r, "4") ONE(r, "5") ONE(r, "6") ONE(r, "7") ONE(r, "8") ONE(r, "9") ONE(r, "10") ONE(r, "11")
#define CLEAR(r, n) "vxorps %%xmm" n ", %%xmm" n ", %%xmm" n "\n\t"
#define FMA(r, n) "vfmadd231ps %%" r "14, %%" r "15, %%" r n "\n\t"
#define DOT(r, n) "vdpbf16ps %%" r "14, %%" r "15, %%" r n "\n\t" /* dot product of bf16 pairs, sums in f32 */

/* With zero accumulators and a product of 2^-40, all values stay normal numbers for any number of turns. Read as a
 * pair of bf16, the operand is itself and 0. */
#define PEAK_FUNCTION(name, r, ONE)                                                                                    \
    static void name(int64_t turns)                                                                                    \
    {                                                                                                                  \
        const float operand = 0x1p-20f;                                                                                \
        __asm__ volatile("vbroadcastss %1, %%" r "14\n\t"                                                              \
                         "vbroadcastss %1, %%" r "15\n\t" TWELVE(CLEAR, r) "1:\n\t" TWELVE(ONE, r) "dec %0\n\t"        \
                                                                                                   "jnz 1b\n\t"        \
                                                                                                   "vzeroupper"        \
                         : "+r"(turns)                                                                                 \
                         : "m"(operand)                                                                                \
                         : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",       \
                           "xmm10", "xmm11", "xmm14", "xmm15");                                                        \
    }

PEAK_FUNCTION(turn_ymm, "ymm", FMA)
PEAK_FUNCTION(turn_zmm, "zmm", FMA)
PEAK_FUNCTION(turn_pairs, "zmm", DOT)

/* Eight tiles of 16 rows of 64 bytes (Intel SDM volume 1, 18.3): six for sums, two for operands. */
typedef struct tile_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_configuration;

#define TILE_ZERO(n) "tilezero %%tmm" n "\n\t"
#define TILE_DOT(n) "tdpbf16ps %%tmm7, %%tmm6, %%tmm" n "\n\t"

static void turn_tiles(int64_t turns)
{
    const tile_configuration configuration = {
        .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    __asm__ volatile("ldtilecfg %1\n\t" TILE_ZERO("0") TILE_ZERO("1") TILE_ZERO("2") TILE_ZERO("3") TILE_ZERO("4")
                         TILE_ZERO("5") TILE_ZERO("6") TILE_ZERO("7") "1:\n\t" TILE_DOT("0") TILE_DOT("1") TILE_DOT("2")
                             TILE_DOT("3") TILE_DOT("4") TILE_DOT("5") "dec %0\n\t"
                                                                       "jnz 1b\n\t"
                                                                       "tilerelease"
                     : "+r"(turns)
                     : "m"(configuration)
                     : "cc");
}

static const bench_peak_loop loops[] = {
    {"x86-64-v3", turn_ymm, 8, 12, 20000},
    {"x86-64-v4", turn_zmm, 16, 12, 20000},
    {"x86-64-bf16", turn_pairs, 32, 12, 20000},
    {"x86-64-amx", turn_tiles, 16 * 16 * 32, 6, 1000},
};

const bench_peak_loop *bench_peak_find_loop(const char *level)
{
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
        if (strcmp(loops[i].level, level) == 0) return &loops[i];
    return NULL;
}

#endif
