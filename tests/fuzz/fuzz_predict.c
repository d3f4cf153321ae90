/* fuzz_predict.c — libFuzzer on predictions of hostile jobs. The first bytes draw a few configurations, the others
 * are a job. hostile_job.h lists the invariants.
 *
 *     scripts/fuzz.sh 600 predict
 */
#include "tests/fuzz/hostile_job.h"
#include "tests/fuzz/hostile_mutate.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

HOSTILE_MUTATORS(HOSTILE_DRAWN_BYTES)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    setenv("MDOT_DEVICE", "cpu", 1);
    hostile_predict_open();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mdot_job *job = NULL;
    if (size <= HOSTILE_DRAWN_BYTES) return -1; /* keeps the input out of the corpus */
    if (hostile_job(data + HOSTILE_DRAWN_BYTES, size - HOSTILE_DRAWN_BYTES, &job) != MDOT_OK) return 0;
    (void)hostile_predict(job, data);
    mdot_job_destroy(job);
    return 0;
}
