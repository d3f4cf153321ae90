/* mdot.h — predict how long a deep-learning training step takes, in microseconds, from a scheduler's loop.
 *
 * Two layers share one artefact (predictor.mdot), in headers which this one includes:
 *
 *   mdot_predict.h     mdot_job + mdot_configuration → mdot_prediction. What a scheduler uses.
 *   mdot_calibrate.h   predictions corrected to a site's own measurements.
 *   mdot_run.h         an artefact opened, and an entry point of it on named tensors. What the job layer is built on.
 *
 * Jobs are read from ONNX by libmdotjob (mdotjob.h) or loaded from .job files.
 *
 * Ownership   create and open hand over an object, destroy and close take it back and accept NULL. Pointers got by an
 *             accessor are lent and live as long as their object. Arrays and strings passed in are the caller's.
 * Threading   A predictor and a job are immutable once made: any number of threads may share them. A context belongs to
 *             one thread at a time. Nothing takes a lock. With MDOT_VALIDATE=1 in the environment misuse is refused.
 * Memory      Opening and creating allocate, map and touch everything. Running and predicting allocate nothing and, on
 *             the CPU, make no system call, but with MDOT_VALIDATE=1. CUDA's driver library keeps its own house.
 * Units       Times are milliseconds of wall clock, sizes are bytes, as the names say.
 * Errors      See mdot_base.h. On failure results are untouched. NULL for what a function needs is INVALID_ARGUMENT, an
 *             index beyond its count OUT_OF_RANGE.
 * Trust       An artefact is native code. Checksums find damage, not malice: open only what you trust.
 */
#ifndef MDOT_H
#define MDOT_H

#include "mdot_base.h"
#include "mdot_calibrate.h"
#include "mdot_predict.h"
#include "mdot_run.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* The library's version: "0.3.0", static, and as MDOT_VERSION_NUMBER. */
const char *mdot_version(void);
uint32_t mdot_version_number(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
