/* mdot.h — predict how long a deep-learning training step takes, in microseconds, from a scheduler's loop.
 *
 * This header includes the others. Two layers share one artefact (predictor.mdot):
 *
 *   mdot_job.h         describes training jobs.
 *   mdot_configuration.h  describes GPUs, and how a job trains on them.
 *   mdot_predict.h     mdot_job + mdot_configuration → mdot_prediction. The layer for schedulers.
 *   mdot_plan.h        searches layouts on several GPUs, and prices a whole training.
 *   mdot_program.h     describes a job's PyTorch program.
 *   mdot_explain.h     divides a prediction among operators.
 *   mdot_calibrate.h   corrects predictions with a site's own measurements.
 *   mdot_record.h      records measured steps, as rows of a table for calibrations.
 *   mdot_run.h         opens an artefact and runs an entry point on named tensors. The job layer is built on it.
 *
 * libmdotjob (mdotjob.h) reads jobs from ONNX; mdot_job_load reads them from .job files.
 *
 *   Ownership   create and open give the caller an object; destroy and close release it and accept NULL. Accessors
 *               return borrowed pointers, valid as long as the object. The caller owns arrays and strings passed in.
 *   Threading   A predictor and a job are immutable: any number of threads may share them. A context belongs to
 *               one thread at a time. The library is free of locks unless MDOT_VALIDATE=1 is set in the environment.
 *               That setting validates handles and refuses misuse: for example, a destroyed object or a context in use.
 *   Memory      Opening and creating allocate, map and touch all memory. Running and predicting on the CPU are free of
 *               allocations and, unless MDOT_VALIDATE=1 is set, of system calls. CUDA's driver library manages its own
 *               memory and may make system calls.
 *   Units       Times are milliseconds of wall clock; sizes are bytes. Names carry the unit.
 *   Errors      See mdot_base.h. On failure, results stay as they were. NULL for a required argument is
 *               INVALID_ARGUMENT; an index beyond its count is OUT_OF_RANGE.
 *   Trust       An artefact is native code. Checksums detect damage only, so open only artefacts that you trust. */
#ifndef MDOT_H
#define MDOT_H

#include "mdot_base.h"
#include "mdot_beside.h"
#include "mdot_calibrate.h"
#include "mdot_configuration.h"
#include "mdot_explain.h"
#include "mdot_job.h"
#include "mdot_plan.h"
#include "mdot_predict.h"
#include "mdot_program.h"
#include "mdot_record.h"
#include "mdot_run.h"

MDOT_BEGIN_DECLARATIONS

/* Returns the version of libmdot as text.
 *
 * @return for example "0.4.0"; static
 */
const char *mdot_version(void);
/* Returns the version of libmdot as a number, for comparison with MDOT_VERSION_NUMBER.
 *
 * @return 1000000 * major + 1000 * minor + patch: 0.4.0 is 4000
 */
uint32_t mdot_version_number(void);

MDOT_END_DECLARATIONS
#endif
